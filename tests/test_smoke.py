"""The smoke config runs every rule in a clean copy of the checkout: if it fails, so does the reader's first command."""

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from jumpboard.artefacts import paths
from jumpboard.artefacts.checkpoints import read_checkpoint_header, read_member
from jumpboard.artefacts.files import sha256_of
from jumpboard.artefacts.provenance import TIERS
from jumpboard.artefacts.tables import read_header, read_table
from jumpboard.artefacts.verification import digest_faults
from jumpboard.audit.audit import audit
from jumpboard.configuration.load import load_files
from jumpboard.configuration.plan import Artefact, Plan
from jumpboard.configuration.selection import RULES
from jumpboard.data.splits import read_splits
from jumpboard.figures.registry import FIGURES, RUN_FIGURES, figure_module
from jumpboard.schemas.card import CARD
from jumpboard.schemas.claims import CLAIMS
from jumpboard.schemas.registry import MODULES as TABLES
from jumpboard.schemas.registry import table_schema
from test_workflow import copy_checkout, snakemake

ROOT = Path(__file__).parents[1]
CONFIGS = [ROOT / "config" / name for name in ("config.yaml", "smoke.yaml")]


@pytest.fixture(scope="module")
def plan() -> Plan:
    return Plan(load_files(CONFIGS))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, plan: Plan) -> Path:
    """A clean copy in which the smoke config was run as the README says."""
    place = copy_checkout(tmp_path_factory.mktemp("smoke"))
    for one in plan.artefacts():
        plan.digests(one.rule, one.keys)  # kept by the process: those of the source as it was copied
    before = {path.relative_to(place).parts[0] for path in place.iterdir()}
    done = snakemake(place, "--cores", "2", "--configfile", "config/smoke.yaml")
    assert done.returncode == 0, done.stdout[-5000:]
    new = {path.relative_to(place).parts[0] for path in place.iterdir()} - before
    assert new == {"runs", ".snakemake"}, "smoke wrote into folders of other configs"
    return place


@pytest.fixture(scope="module")
def files(run: Path, plan: Plan) -> dict[Path, Artefact]:
    """Every artefact of the run by its file."""
    config = plan.configuration.config
    return {run / config[one.place] / one.path: one for one in plan.artefacts()}


MAY_BE_EMPTY = {"betas", "fitted_chain", "vacuity_map", "extrapolation", "rival_laws"}
"""Of a net without a chain, that no route covers, or with too few sizes to fit."""
MOMENTS = {
    "train_baseline": ("init", "final"),
    "expand_depth": ("site_0/jumpboard_train", "site_0/jumpboard_all"),
    "expand_chain": ("k_0", "k_1"),
}


@pytest.fixture(scope="module")
def results(run: Path, plan: Plan) -> Path:
    return run / plan.configuration.config["results"]


def test_every_artefact_is_there(files: Mapping[Path, Artefact]) -> None:
    """A rule without a file is a rule that nobody runs."""
    assert [path for path in files if not path.is_file() or path.stat().st_size == 0] == []
    assert {one.keys["figure"] for one in files.values() if one.rule == "draw_figure"} == {*FIGURES, *RUN_FIGURES}


def test_every_header_is_of_this_code_and_config(files: Mapping[Path, Artefact], plan: Plan) -> None:
    """A table that does not say what made it cannot be audited."""
    with_header = {path: one for path, one in files.items() if path.suffix in (".parquet", ".safetensors")}
    assert list(digest_faults({path: plan.digests(one.rule, one.keys) for path, one in with_header.items()})) == []


def test_every_parent_is_the_file_that_it_was(results: Path, files: Mapping[Path, Artefact]) -> None:
    """The chain from a figure down to the data must hold link by link."""
    linked = 0
    for path in files:
        if path.suffix not in (".parquet", ".safetensors"):
            continue
        header = read_checkpoint_header(path) if path.suffix == ".safetensors" else read_header(path)
        for parent, digest in header["parents"].items():
            assert sha256_of(results / parent) == digest, (path, parent)
            linked += 1
        assert header["tier"] in TIERS
        assert header["threads"] >= 1
        assert header["versions"]["jumpboard"]
        assert "train_baseline" not in path.parts or (header["seeds"] and header["versions"]["torch"])
    assert linked > len(files) / 2


def test_every_table_fits_its_schema(files: Mapping[Path, Artefact]) -> None:
    """Types, units, keys: what `read_table` refuses, no reader should meet."""
    seen, filled = set(), set()
    for path, one in files.items():
        if path.suffix != ".parquet":
            continue
        table = Path(one.path).parts[-1] if one.rule == "draw_figure" else Path(one.path).parts[1]
        seen.add((one.rule, table))
        if table in ("splits", "rows"):
            assert read_splits(path).sizes
            continue
        schema = {"card": CARD, "claims.parquet": CLAIMS}.get(table)
        if one.rule == "draw_figure":
            schema = figure_module(one.keys["figure"]).SCHEMA
        schema = schema or table_schema(table)
        rows = read_table(path, schema).to_pylist()
        keys = [tuple(row[key] for key in schema.keys) for row in rows]
        assert keys == sorted(set(keys)), path
        name = one.keys.get("figure", table)
        assert keys or name in MAY_BE_EMPTY, path
        filled |= {name} if keys else set()
        for column in pq.read_schema(path):
            assert set(column.metadata) == {b"unit", b"description"}, (path, column.name)
    assert filled >= MAY_BE_EMPTY, "some net has each of them"
    assert {table for rule, table in seen if rule in ("collect", "fit_power_law")} == set(TABLES)


def test_every_seed_of_every_cell_has_rows_and_checkpoints(files: Mapping[Path, Artefact], plan: Plan) -> None:
    """token-optimizer-mcp #404: a table that has fewer runs than its config says must not pass."""
    for path, one in files.items():
        if one.rule not in RULES:
            continue
        cell = plan.cell(one.keys)
        if path.suffix == ".safetensors":
            names = read_checkpoint_header(path)["checkpoints"]
            moments = MOMENTS[one.rule]
            assert {f"seed_{seed}/{moment}" for seed in cell.seeds for moment in moments} <= set(names)
            assert read_member(path, cell.seeds[0], moments[1])
            continue
        rows = pq.ParquetFile(path).read().to_pylist()
        assert {row["seed"] for row in rows} == set(cell.seeds)
        assert {tuple(row[key] for key in paths.CELL_KEYS) for row in rows} == {cell.key}


def test_every_claim_has_a_verdict(results: Path, plan: Plan) -> None:
    """A claim that is silently left out looks like one that was never made."""
    rows = read_table(results / paths.CLAIMS, CLAIMS).to_pylist()
    assert {row["claim"] for row in rows} == set(plan.configuration.claims)
    accepted = {"supported", "contradicted", "inconclusive", "not evaluated"}
    assert {row["verdict"] for row in rows} <= accepted
    assert all(row["reason"] or row["missing"] for row in rows if row["verdict"] == "not evaluated")


def test_the_report_is_made_of_the_run(run: Path, results: Path, plan: Plan) -> None:
    """The target, in a run with folders of its own: all figures in one archive, nothing else made again."""
    for _ in range(2):
        done = snakemake(run, "--cores", "1", "report", "--configfile", "config/smoke.yaml")
        assert done.returncode == 0, done.stdout[-5000:]
    assert "Nothing to be done" in done.stdout
    with zipfile.ZipFile(results / paths.REPORT) as archive:
        names = {name.removeprefix("report/") for name in archive.namelist()}
    figures = {f"figures/{one.path}" for one in plan.artefacts() if one.place == "figures"}
    assert names == figures | {"index.html", "claims.parquet", "config.json"}


def test_every_record_lies_where_its_output_does(results: Path, plan: Plan) -> None:
    """A record's path must not hold the name of the folder that figures are written to."""
    found = {
        path.relative_to(results / paths.RECORDS) for path in (results / paths.RECORDS / "draw_figure").rglob("*.json")
    }
    figures = {Path("draw_figure", one.path).with_suffix(".json") for one in plan.artefacts() if one.place == "figures"}
    assert found == figures


def test_run_holds_together(run: Path, results: Path, plan: Plan) -> None:
    """It passes its audit, figures included; and the config in the run is the one that it was started with."""
    report = audit(results)
    assert report.failed == {}
    readme, pictures = report.not_verified
    assert readme == "README: it shows the released run, not this one"
    assert "not drawn again" in pictures
    assert report.checked["pictures"] > 0
    stored: dict[str, Any] = json.loads((results / paths.CONFIG).read_text())
    assert stored == json.loads(json.dumps(plan.configuration.as_json()))
