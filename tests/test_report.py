"""A page that leaves out a verdict, shows a stale picture or asks the network for something is worse than none: what is
in the archive is what the run's manifests list, and it is readable as it lies on a disk."""

import re
import shutil
import zipfile
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
import yaml

from jumpboard.artefacts import paths
from jumpboard.artefacts.archive import write_zip
from jumpboard.artefacts.compute import settings, stage_costs
from jumpboard.artefacts.files import sha256_of
from jumpboard.artefacts.job import Job, write_json
from jumpboard.artefacts.provenance import Provenance
from jumpboard.artefacts.tables import write_table
from jumpboard.claims.ledger import evaluate
from jumpboard.errors import InputError
from jumpboard.figures.registry import figure_module
from jumpboard.schemas.chain import CHAIN
from jumpboard.schemas.claims import CLAIMS
from jumpboard.schemas.registry import MODULES
from jumpboard.schemas.widening import WIDENING
from jumpboard.stages import draw_figure, report
from jumpboard.stages.write_manifest import entry
from planted_expansions import chains, nets, widenings

ROOT = Path(__file__).parents[1]
LEDGER: dict[str, Any] = yaml.safe_load((ROOT / "config/claims.yaml").read_text())
PAGE = ROOT / "workflow/report/page.html"
PROVENANCE = Provenance("c0de", "c0f1", {}, (0, 1, 2), "bytes", 1, "cpu", {"torch": "9.9", "numpy": "1.0"})
ODD = '<b>&"o\'dd" name'
VOID = {"meta", "img", "br", "link", "hr"}


class Reader(HTMLParser):
    """Links, pictures and text of a page; tags must close in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.pictures: list[str] = []
        self.anchors: list[str] = []
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.tags.add(tag)
        self.links += [str(values["href"])] if "href" in values else []
        self.pictures += [str(values["src"])] if "src" in values else []
        self.anchors += [str(values["id"])] if "id" in values else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self.text += " " if tag in ("td", "th") else ""

    def handle_data(self, data: str) -> None:
        self.text += data


def record(stage: str, seconds: float, **changed: Any) -> dict[str, Any]:
    told = {"system": "Linux", "machine": "x86_64", "cores": 2, "device": "cpu", "threads": 1, "python": "3.11.7"}
    cost = {"started": 0.0, "wall_seconds": 60.0, "cpu_seconds": seconds, "peak_memory_bytes": 3_000_000}
    return {"stage": stage, "tier": "bytes", "outputs": [], **told, **cost, **changed}


def draw(root: Path, name: str, source: str, **net: str) -> None:
    outputs = {suffix: root / "figures" / "/".join([name, *net.values()]) for suffix in ("svg", "png", "table")}
    outputs = {
        key: path.parent / f"{path.name}.{'parquet' if key == 'table' else key}" for key, path in outputs.items()
    }
    inputs = {"table": root / "results" / source}
    draw_figure.body(Job("draw_figure", root / "results", {"figure": name, **net}, "c0de", 1, inputs, outputs))


def list_files(root: Path) -> None:
    """Both manifests of what is there."""
    results = root / "results"
    for name in (paths.MANIFEST, f"{paths.RECORDS}/{paths.MANIFEST}"):
        (results / name).unlink(missing_ok=True)
    listed: dict[str, dict[str, Any]] = {"results": {}, "figures": {}}
    records: dict[str, Any] = {}
    for place, found in listed.items():
        for path in sorted(path for path in (root / place).rglob("*") if path.is_file()):
            name = path.relative_to(root / place).as_posix()
            (records if name.startswith(paths.RECORDS) else found)[name] = entry(path)
    write_json(results / paths.MANIFEST, listed)
    write_json(
        results / paths.RECORDS / paths.MANIFEST,
        {"results": records | {paths.MANIFEST: entry(results / paths.MANIFEST)}},
    )


def make_run(root: Path, dataset: str = "mnist1d", arch: str = "resmlp") -> Path:
    """A run with two tables of expansions, their figures and the whole ledger; all but one claim not evaluated."""
    results, net = root / "results", {"dataset": dataset, "arch": arch}
    runs = [run | net for run in nets((2, 4), (8, 16), 4000, (0, 1, 2))]
    claims = {name: dict(one) for name, one in LEDGER.items()}
    claims["widening_beats_training_on"]["evaluated_on"] = [net | {"split": "test"}]
    claims["widening_beats_training_on"]["statement"] = f"5 < 6 & {ODD}"
    tables = {"widening": widenings(runs), "chain": chains(runs)}
    for schema in (WIDENING, CHAIN):
        write_table(
            results / f"collect/{schema.name}/{dataset}/{arch}.parquet", schema, tables[schema.name], PROVENANCE
        )
    cells = [
        {**net, "depth": depth, "width": width, "samples": 4000, "seeds": [0, 1, 2], "reference": "final"}
        for depth in (2, 4)
        for width in (8, 16)
    ]
    made = {name: cells if name == "widening" else [] for name in MODULES}
    rows = evaluate(claims, made, {"widening": tables["widening"]})
    write_table(results / paths.CLAIMS, CLAIMS, rows, PROVENANCE)
    datasets = {dataset: {"source": "<made> here", "version": "1", "licence": "none"}}
    write_json(results / paths.CONFIG, {"config": {"grid": [net]}, "datasets": datasets, "claims": claims})
    for stage, seconds in (("train_baseline", 70.4), ("evaluate_claims", 2.0)):
        write_json(results / paths.RECORDS / f"{stage}.json", record(stage, seconds))
    for figure, table in (("gain_over_training_on_width", "widening"), ("chain", "chain")):
        draw(root, figure, f"collect/{table}/{dataset}/{arch}.parquet", **net)
    draw(root, "claims_overview", paths.CLAIMS)
    list_files(root)
    return root


def build(root: Path) -> Path:
    out = root / "results" / paths.REPORT
    params = {"figures": str(root / "figures")}
    report.body(Job("report", root / "results", params, "c0de", 1, {"page": PAGE}, {"report": out}))
    return out


def read(archive: Path) -> tuple[Reader, dict[str, bytes]]:
    with zipfile.ZipFile(archive) as opened:
        contents = {name.removeprefix("report/"): opened.read(name) for name in opened.namelist()}
    reader = Reader()
    reader.feed(contents["index.html"].decode())
    assert reader.open == []
    return reader, contents


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def parts(run: Path) -> tuple[Reader, dict[str, bytes]]:
    return read(build(run))


def test_every_claim_is_told_with_its_verdict_rule_and_source(parts: tuple[Reader, dict[str, bytes]]) -> None:
    text = " ".join(parts[0].text.split())
    for claim, one in LEDGER.items():
        told = text[text.index(f" {claim} {one['source']} ") :]
        for key in ("place", "statistic", "supported", "contradicted", "control"):
            assert " ".join(one[key].split()) in told, (claim, key)
    assert "table alignment" in text
    row = text[text.index("widening_beats_training_on stated") :]
    assert re.search(r"mnist1d/resmlp 4,000 reference, test ●.supported 0\.0\d+ \[0\.0\d+, 0\.0\d+\] 3 0\.\d{3}", row)
    assert text.index("width_raises_observability") < text.index("Figures Paper depth") < text.index("Config As")


def test_every_figure_has_its_caption_claims_table_and_digest(
    run: Path, parts: tuple[Reader, dict[str, bytes]]
) -> None:
    reader, _ = parts
    text = " ".join(reader.text.split())
    for name, table in (("gain_over_training_on_width", "widening"), ("chain", "chain")):
        source = f"collect/{table}/mnist1d/resmlp.parquet"
        told = text[text.index(f"{name.replace('_', ' ')}: mnist1d, resmlp") :]
        caption = told.index(" ".join(figure_module(name).CAPTION.split()))
        assert caption < told.index(f"Drawn from {source}, SHA-256 {sha256_of(run / 'results' / source)}")
    shown = text[text.index("gain over training on width: mnist1d, resmlp") :].split("Drawn from")[0]
    assert re.search(r"Claims: widening_beats_training_on ●.supported", shown)
    shown = text[text.index("chain: mnist1d, resmlp") :].split("Drawn from")[0]
    assert re.search(r"Claims: two_betas_agree .{1,3}not evaluated", shown)
    overview = text[text.index(" ".join(figure_module("claims_overview").CAPTION.split())) :].split("Drawn from")[0]
    assert "Claims:" not in overview, "no claim names it: it shows them all"


def test_environment_and_cost_are_those_of_headers_and_records(parts: tuple[Reader, dict[str, bytes]]) -> None:
    text = " ".join(parts[0].text.split())
    assert "Linux x86_64 2 cpu 1 3.11.7 2" in text
    assert "torch 9.9" in text
    assert "numpy 1.0, " in text, "figures and tables of different versions must both be told"
    assert "over 1 minutes" in text
    assert text.endswith("evaluate_claims 1 2 3 train_baseline 1 70 3 all 2 72 3")


def test_all_that_the_page_names_lies_in_the_archive(run: Path, parts: tuple[Reader, dict[str, bytes]]) -> None:
    """Opened from a disk without a network, and without scripts."""
    reader, contents = parts
    assert not reader.tags & {"script", "link", "iframe", "object", "form"}
    assert "@import" not in contents["index.html"].decode()
    for link in [*reader.links, *reader.pictures]:
        place = urlsplit(link)
        assert (place.scheme, place.netloc) == ("", "")
        assert unquote(place.path) in contents if place.path else place.fragment in reader.anchors, link
    figures = {path.relative_to(run) for path in (run / "figures").rglob("*") if path.is_file()}
    assert {path.as_posix() for path in figures} | {"index.html", "claims.parquet", "config.json"} == contents.keys()
    assert len(reader.pictures) == len(figures) / 3 == 3
    assert contents["claims.parquet"] == (run / "results" / paths.CLAIMS).read_bytes()


def test_the_same_run_gives_the_same_bytes(run: Path, tmp_path: Path) -> None:
    """Else the archive would look changed at every call; its clock is not that of the machine."""
    first = build(run).read_bytes()
    shutil.copytree(run, tmp_path / "elsewhere")
    assert build(tmp_path / "elsewhere").read_bytes() == first
    write_zip(tmp_path / "a.zip", {"b": b"2", "a": b"1"})
    write_zip(tmp_path / "b.zip", {"a": b"1", "b": b"2"})
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert [(one.filename, one.date_time[0]) for one in archive.infolist()] == [("a", 1980), ("b", 1980)]


def test_odd_names_are_text_and_their_files_are_found(tmp_path: Path) -> None:
    """A name must not become markup, nor end a link early."""
    odd = ODD.replace("<b>", "<i> #?%")
    reader, contents = read(build(make_run(tmp_path, dataset=odd)))
    assert "b" not in reader.tags
    assert "i" not in reader.tags
    assert f"5 < 6 & {ODD}" in reader.text
    assert f"chain: {odd}, resmlp" in reader.text
    assert "<made> here" in reader.text
    named = [unquote(urlsplit(link).path) for link in [*reader.links, *reader.pictures] if not link.startswith("#")]
    assert set(named) <= contents.keys()
    assert f"figures/chain/{odd}/resmlp.svg" in named


def test_a_run_without_expansions_has_a_page_too(tmp_path: Path) -> None:
    """A config of one's own may have no such figures; what there is is shown."""
    root = make_run(tmp_path)
    for place in ("figures/chain", "figures/gain_over_training_on_width", "results/collect"):
        shutil.rmtree(root / place)
    list_files(root)
    reader, _ = read(build(root))
    assert reader.pictures == ["figures/claims_overview.svg"]


def lose_a_table(root: Path) -> str:
    (root / "results/collect/chain/mnist1d/resmlp.parquet").unlink()
    return "missing"


def change_a_verdict(root: Path) -> str:
    table = root / "results" / paths.CLAIMS
    table.write_bytes(table.read_bytes()[:-1])
    return "differs from its manifest entry"


def change_a_record(root: Path) -> str:
    write_json(root / "results" / paths.RECORDS / "train_baseline.json", record("train_baseline", 1.0))
    return "differs from its manifest entry"


def draw_from_another_table(root: Path) -> str:
    table = root / "results/collect/chain/mnist1d/resmlp.parquet"
    write_table(table, CHAIN, [], PROVENANCE)
    list_files(root)
    return "figures/chain/mnist1d/resmlp.parquet: drawn from another collect/chain/mnist1d/resmlp.parquet"


@pytest.mark.parametrize("fault", [lose_a_table, change_a_verdict, change_a_record, draw_from_another_table])
def test_a_run_that_does_not_hold_together_is_not_shown(run: Path, tmp_path: Path, fault: Any) -> None:
    """A page of a damaged run would carry its digests and be wrong; and nothing half-written stays."""
    root = shutil.copytree(run, tmp_path / "run")
    (root / "results" / paths.REPORT).unlink(missing_ok=True)
    reason = fault(root)
    with pytest.raises(InputError, match=reason):
        build(root)
    assert not list((root / "results").glob("*report*"))


def test_machines_and_stages_are_counted() -> None:
    """Jobs of a cluster run on more than one kind of machine."""
    records = [record("a", 1.0), record("a", 2.0, threads=4), record("b", 4.0, peak_memory_bytes=9_000_000)]
    kinds: list[Mapping[str, Any]] = settings(records)
    assert [(one["threads"], one["jobs"]) for one in kinds] == [(1, 2), (4, 1)]
    assert stage_costs(records) == [("a", 2, 3.0, 3.0), ("b", 1, 4.0, 9.0), ("all", 3, 7.0, 9.0)]
