"""The audit finds what is not as it was made: damage, loss, swaps, and forgeries whose digests were made to fit.

One small run of every rule is made once; each test changes a copy of it. Where a forger is at work, all parent digests
and both manifests fit again after the change.
"""

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from jumpboard.artefacts import paths
from jumpboard.artefacts.checkpoints import read_checkpoint_header, read_member, write_checkpoints
from jumpboard.artefacts.job import json_text
from jumpboard.artefacts.provenance import Provenance
from jumpboard.artefacts.tables import read_table
from jumpboard.artefacts.verification import stored_header
from jumpboard.audit.ancestry import record_fault
from jumpboard.audit.audit import audit, opened
from jumpboard.audit.manifests import OLDER, listed_faults
from jumpboard.audit.report import Report
from jumpboard.audit.run import Run, open_folders
from jumpboard.cli import main
from jumpboard.configuration.plan import Artefact
from jumpboard.errors import InputError
from jumpboard.schemas.claims import CLAIMS
from jumpboard.stages.release import copy_run
from small_run import FIGURES_FOLDER, RESULTS, collected_from, forge, inside, make, rehash, with_header, with_rows

CELL = "mnist1d/resmlp/depth_{}/width_{}/samples_200"
METRICS = f"train_baseline/metrics/{CELL.format(2, 4)}.parquet"
SIGNAL = f"measure_gradients/signal/{CELL.format(2, 4)}.parquet"
TRAINED = f"checkpoints/train_baseline/{CELL.format(2, 4)}.safetensors"
OTHER = f"checkpoints/train_baseline/{CELL.format(4, 8)}.safetensors"
CHAIN = f"checkpoints/expand_chain/{CELL.format(2, 4)}.safetensors"
Row = dict[str, Any]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the run lies below. Tests must not change it."""
    place = tmp_path_factory.mktemp("small")
    make(place)
    return place


@pytest.fixture
def copied(made: Path, tmp_path: Path) -> Path:
    """A copy of the run's results and figures, without Snakemake's records."""
    shutil.copytree(made / "run", tmp_path / "run")
    return tmp_path


def faults(place: Path) -> dict[str, str]:
    """What the audit finds, by path from `run`."""
    found = audit(place / RESULTS).failed
    return {Path(file).relative_to(place / "run").as_posix(): reason for file, reason in found.items()}


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1 << random.Random(f"{path.name} {at}").randrange(8)
    path.write_bytes(content)


def listing(place: Path) -> dict[str, tuple[int, int]]:
    """Size and time of everything below a folder."""
    found = [path for path in place.rglob("*") if not path.is_symlink()]
    return {path.as_posix(): (path.stat().st_size, path.stat().st_mtime_ns) for path in found}


# A run as it was made


def test_whole_run_passes(made: Path) -> None:
    """An audit that finds fault with an honest run is one that nobody reads."""
    report = audit(made / RESULTS)
    assert report.failed == {}
    assert report.not_verified == ["README: it shows the released run, not this one"]
    manifests = [made / RESULTS / name for name in (paths.MANIFEST, f"{paths.RECORDS}/{paths.MANIFEST}")]
    listed = [json.loads(path.read_text()) for path in manifests]
    assert sum(report.checked.values()) == sum(len(files) for manifest in listed for files in manifest.values())
    rows = read_table(made / RESULTS / paths.CLAIMS, CLAIMS).to_pylist()
    assert [one["verdict"] for one in report.verdicts] == [row["verdict"] for row in rows]
    assert all(one["recomputed"] == one["verdict"] for one in report.verdicts)
    assert {"inconclusive", "not evaluated", "supported"} <= {one["verdict"] for one in report.verdicts}


def test_copied_results_alone_pass_without_torch(copied: Path) -> None:
    """nextstrain/cli #373: a reviewer has the results folder, no cluster, no Snakemake records and perhaps no torch."""
    (copied / RESULTS).rename(copied / "mine")
    shutil.rmtree(copied / "run")
    before = listing(copied)
    code = (
        "import sys; from jumpboard.cli import main; status = main(['audit', 'mine', '--json'])\n"
        "assert not {'torch', 'torchvision', 'timm', 'snakemake'} & set(sys.modules); sys.exit(status)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=copied, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert set(told) == {"checked", "failed", "verdicts", "not_verified", "not_shipped"}
    assert told["failed"] == []
    assert any(one.startswith("figures: no folder at hand") for one in told["not_verified"])
    assert listing(copied) == before


def test_released_layout_passes_and_says_what_is_not_shipped(copied: Path) -> None:
    """Released results hold no checkpoints and no splits: known by digest, not missing; a damaged table still fails."""
    with inside(copied):
        copy_run(RESULTS, FIGURES_FOLDER)
    released = copied / RESULTS / paths.RELEASED
    report = audit(released)
    assert report.failed == {}
    assert {name.split("/")[0] for name in report.not_shipped} == {"checkpoints", "prepare_dataset", "prepare_fresh"}
    flip(released / SIGNAL, 100)
    assert list(audit(released).failed) == [str(released / SIGNAL)]
    assert audit(copied / RESULTS).failed == {}, "the released run is no part of the run"


def test_run_without_measurements_and_expansions_passes(tmp_path: Path) -> None:
    """Some configs only train."""
    only = {"product": {"depth": [1], "width": [4], "samples": [200]}}
    grid = [{"dataset": "mnist1d", "arch": "resmlp", "training": "resmlp", "seeds": [0, 1], **only}]
    empty: Mapping[str, Any] = {name: [] for name in ("measurements", "expansions", "widenings", "chains")}
    make(tmp_path, {"grid": grid, **empty})
    assert faults(tmp_path) == {}


# Damage


def test_a_flipped_byte_in_any_file_is_found(copied: Path) -> None:
    """Each listed file at its first, last and some other byte; of the manifests, which list the rest, many bytes."""
    results = copied / RESULTS
    figures = copied / FIGURES_FOLDER
    folders = open_folders(results, figures)
    files = [results / name for name in (*folders.listed["results"], *folders.records) if name != paths.MANIFEST]
    files += [figures / name for name in folders.listed["figures"]]
    draws = random.Random(0)
    for path in files:
        whole = path.read_bytes()
        for at in (0, len(whole) - 1, draws.randrange(len(whole))):
            flip(path, at)
            place, root = ("figures", figures) if figures in path.parents else ("results", results)
            assert set(listed_faults(folders)) == {(place, path.relative_to(root).as_posix())}
            path.write_bytes(whole)
    for path in (results / paths.MANIFEST, results / paths.RECORDS / paths.MANIFEST):
        whole = path.read_bytes()
        for at in [*range(120), *draws.sample(range(len(whole)), 60), len(whole) - 1]:
            flip(path, at)
            try:
                found = bool(listed_faults(open_folders(results, figures)))
            except InputError as error:
                found = str(path) in str(error)
            assert found, (path, at)
            path.write_bytes(whole)


@pytest.mark.parametrize(
    ("name", "at"),
    [
        ("results/config.json", 5),
        ("results/config.json", 0),  # no longer JSON
        (f"results/records/train_baseline/metrics/{CELL.format(2, 4)}.json", 40),
        (f"results/{METRICS}", 40),  # a data page
        (f"results/{METRICS}", -200),  # the footer
        (f"results/{TRAINED}", 3),  # the length of the header
        (f"results/{TRAINED}", 60),
        (f"results/{TRAINED}", -3),
        ("figures/joint_scaling/mnist1d/resmlp.svg", 900),
        ("figures/joint_scaling/mnist1d/resmlp.png", 900),
    ],
)
def test_damaged_file_is_named_and_no_other(copied: Path, capsys: Any, name: str, at: int) -> None:
    """The one file to fetch again must not drown among those that were made from it."""
    path = copied / "run" / name
    flip(path, at)
    assert main(["audit", str(copied / RESULTS)]) == 1
    out = capsys.readouterr().out
    assert out.splitlines()[-1].startswith(f"audit failed: {path}: ")
    assert "failed (1 files)" in out


def test_missing_and_unlisted_files_are_named(copied: Path) -> None:
    """A file that was lost, one that somebody left, a link, and a record of a job that the run did not have."""
    results = copied / RESULTS
    (results / METRICS).unlink()
    (results / "collect" / "notes.txt").write_text("mine")
    (copied / FIGURES_FOLDER / "link.svg").symlink_to(results / "config.json")
    shutil.copy(results / "records/config.json", results / "records/other.json")
    found = faults(copied)
    assert found.pop(f"results/{METRICS}") == "listed but missing"
    wanted = {"results/collect/notes.txt", "figures/link.svg", "results/records/other.json"}
    assert found == dict.fromkeys(wanted, "not listed in the manifest")


def test_older_manifest_is_told_from_damage(copied: Path) -> None:
    """A target built alone leaves a whole file and a younger record: run again, nothing is lost. Without the record, or
    with parents that are not there, the same bytes are damage."""
    results = copied / RESULTS
    record = results / f"records/measure_gradients/signal/{CELL.format(2, 4)}.json"
    with_header(results / SIGNAL, lambda old: {**old, "versions": {**old["versions"], "numpy": "9"}})
    assert faults(copied)[f"results/{SIGNAL}"].startswith("damaged")
    younger = json.loads(record.read_text())
    younger["started"] += 1e6
    record.write_text(json_text(younger))
    found = faults(copied)
    assert found.pop(f"results/{SIGNAL}") == OLDER
    assert found.pop(record.relative_to(copied / "run").as_posix()) == OLDER
    assert set(found) == {"results/collect/signal/mnist1d/resmlp.parquet"}, "made from the older file"
    with_header(results / SIGNAL, lambda old: {**old, "parents": dict.fromkeys(old["parents"], "0" * 64)})
    assert faults(copied)[f"results/{SIGNAL}"].startswith("damaged")


# Checkpoints


def test_swapped_and_copied_checkpoint_files_are_named_as_a_pair(copied: Path) -> None:
    """pythia #203, #195, #108."""
    one, other = (copied / RESULTS / name for name in (TRAINED, OTHER))
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    assert faults(copied) == {f"results/{TRAINED}": f"is a copy of {OTHER}"}
    other.write_bytes(first)
    assert faults(copied) == {f"results/{a}": f"is a copy of {b}" for a, b in ((TRAINED, OTHER), (OTHER, TRAINED))}
    forge(copied)
    found = faults(copied)
    assert f"it is results/{OTHER}" in found[f"results/{TRAINED}"]
    assert f"it is results/{TRAINED}" in found[f"results/{OTHER}"]


def test_copy_under_a_header_of_its_own_is_named_as_a_pair(copied: Path) -> None:
    """Somebody who lost one cell's nets passes another's off as them."""
    results = copied / RESULTS
    header = stored_header(results / TRAINED)
    shutil.copy(results / OTHER, results / TRAINED)
    with_header(results / TRAINED, lambda old: {**header, "checkpoints": old["checkpoints"]})
    forge(copied)
    found = faults(copied)
    assert f"in {OTHER}" in found[f"results/{TRAINED}"]
    assert f"in {TRAINED}" in found[f"results/{OTHER}"]


def swap_seeds(header: Row) -> Row:
    records = dict(header["checkpoints"])
    records["seed_0/final"], records["seed_1/final"] = records["seed_1/final"], records["seed_0/final"]
    return {**header, "checkpoints": records}


def rewritten(path: Path, change: Callable[[dict[tuple[int, str], Any]], None]) -> None:
    """Write a checkpoint file again with other members, ancestors and provenance as they were."""
    header = stored_header(path)
    names = {name: name.removeprefix("seed_").split("/", 1) for name in header["checkpoints"]}
    members = {
        (int(seed), moment): (header["checkpoints"][name]["step"], read_member(path, int(seed), moment))
        for name, (seed, moment) in names.items()
    }
    change(members)
    facts = ("code", "config", "parents", "tier", "threads", "device", "versions")
    provenance = Provenance(seeds=tuple(header["seeds"]), **{name: header[name] for name in facts})
    first = min(header["checkpoints"].items(), key=lambda one: one[1]["step"])[1]["parent"]
    write_checkpoints(path, members, first, provenance)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda path: with_header(path, swap_seeds), "the tensors of seed_0/final are not those of its record"),
        (
            lambda path: rewritten(path, lambda members: members.pop((1, "step_2"))),
            "lacks seed_1/step_2",
        ),
        (
            lambda path: rewritten(path, lambda members: members.update({(7, "init"): members[0, "init"]})),
            "holds seed_7/init, a seed that the cell does not have",
        ),
        (
            lambda path: rewritten(path, lambda members: members.update({(0, "mine"): members[0, "init"]})),
            "should not hold seed_0/mine",
        ),
        (
            lambda path: with_header(path, lambda old: _with_parent(old, "seed_0/final", "0" * 64)),
            "seed_0/final does not descend from the checkpoint before it: parent 000000000000",
        ),
        (
            lambda path: with_header(path, lambda old: _with_parent(old, "seed_2/init", "0" * 64)),
            "seed_2/init does not descend from what the file descends from: parent 000000000000",
        ),
    ],
)
def test_false_ancestry_is_named(copied: Path, spoil: Callable[[Path], None], reason: str) -> None:
    """A forger who re-hashed the whole run after it: what stands inside the file does not fit."""
    spoil(copied / RESULTS / TRAINED)
    forge(copied)
    assert faults(copied)[f"results/{TRAINED}"] == reason


def _with_parent(header: Row, name: str, parent: str) -> Row:
    records = header["checkpoints"]
    return {**header, "checkpoints": {**records, name: {**records[name], "parent": parent}}}


def test_chain_descends_from_the_reference_of_its_own_seed(copied: Path) -> None:
    """Every net of the chain is one that the reference grew into."""
    path, trained = copied / RESULTS / CHAIN, read_checkpoint_header(copied / RESULTS / TRAINED)["checkpoints"]
    records = read_checkpoint_header(path)["checkpoints"]
    assert records["seed_0/k_0"]["parent"] == trained["seed_0/best_validation"]["sha256"]
    other = trained["seed_1/best_validation"]["sha256"]
    with_header(path, lambda old: _with_parent(old, "seed_0/k_0", other))
    forge(copied)
    assert faults(copied)[f"results/{CHAIN}"].startswith("seed_0/k_0 does not descend from what the file descends from")


def test_checkpoints_of_any_rule_descend_from_those_that_their_header_names(copied: Path) -> None:
    """A rule that keeps the nets of its arms is covered without a line here: all descend from the reference."""
    run: Run | None = opened(copied / RESULTS, None, Report())
    assert run is not None
    trained = read_checkpoint_header(copied / RESULTS / TRAINED)
    keys = {"dataset": "mnist1d", "arch": "resmlp", "depth": 2, "width": 4, "samples": 200}
    one = Artefact("results", paths.filled(paths.cell_checkpoints("expand_depth"), keys), "expand_depth", keys)
    leaf = read_member(copied / RESULTS / TRAINED, 0, "final")
    members = {(0, f"site_{site}/{arm}"): (6, leaf) for site in (0, 1) for arm in ("zero_all", "scratch")}
    parents = {TRAINED: "0" * 64, "prepare_dataset/splits/mnist1d.parquet": "0" * 64}
    provenance = Provenance("c", "c", parents, (0, 1, 2), "bytes", 1, "cpu", {})
    write_checkpoints(run.path(one), members, trained["checkpoints"]["seed_0/final"]["sha256"], provenance)
    assert record_fault(run, one) == ""
    write_checkpoints(run.path(one), members, trained["checkpoints"]["seed_0/init"]["sha256"], provenance)
    assert "does not descend" in record_fault(run, one)


# Forged tables


def edited(**values: Any) -> Callable[[list[Row]], list[Row]]:
    """Other values in the first row."""
    return lambda rows: [{**rows[0], **values}, *rows[1:]]


def scaled(column: str, factor: float) -> Callable[[list[Row]], list[Row]]:
    return lambda rows: [{**row, column: row[column] * factor} for row in rows]


def test_wrong_parent_digest_is_named_after_everything_else_was_made_to_fit(copied: Path) -> None:
    """The careful forger of one table: all digests fit but that of the checkpoints that it was measured on."""
    with_header(copied / RESULTS / SIGNAL, lambda old: {**old, "parents": {**old["parents"], TRAINED: "0" * 64}})
    rehash(copied)
    assert faults(copied)[f"results/{SIGNAL}"].startswith(f"made from another {TRAINED}: digest 000000000000")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda parents: {**parents, OTHER: parents[TRAINED]}, f"names the parent {OTHER}, which is not its own"),
        (lambda parents: {name: parents[name] for name in (TRAINED,)}, "does not name its parent prepare_dataset/"),
    ],
)
def test_parents_are_the_cells_own_and_all_of_them(copied: Path, change: Callable[[Row], Row], reason: str) -> None:
    """A digest that is one of the run is not enough: it must be that of the file that the job reads."""
    with_header(copied / RESULTS / SIGNAL, lambda old: {**old, "parents": change(old["parents"])})
    forge(copied)
    assert faults(copied)[f"results/{SIGNAL}"].startswith(reason)


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        (paths.CLAIMS, edited(verdict="contradicted"), "verdict is contradicted, recomputed"),
        (paths.CLAIMS, lambda rows: rows[1:], "only there when recomputed"),
        (METRICS, edited(test_loss=0.5), "column 'generalisation_gap' of row 0 is not what"),
        (METRICS, lambda rows: rows[:-1], "lacks 1 rows that the config asks for, first 2/final"),
        (METRICS, lambda rows: rows[::-1], "rows are not in the order of their keys, each once"),
        (METRICS, edited(depth=1), "column 'depth' holds 1 in a table of 2"),
        (SIGNAL, lambda rows: [row for row in rows if row["site"] != 1], "first 0/final/1/fresh"),
        (SIGNAL, lambda rows: [row for row in rows if row["checkpoint"] != "init"], "first 0/init/0/fresh"),
        (f"measure_gradients/correlations/{CELL.format(2, 4)}.parquet", lambda rows: rows[1:], "first 0/final/1/test/0/0"),
        (f"expand_depth/expansion/{CELL.format(2, 4)}.parquet", scaled("delta_erm", 1.1), "column 'new_test_loss'"),
        (f"expand_depth/step_gains/{CELL.format(2, 4)}.parquet", lambda rows: rows[1:], "first 0/0/population/0/fresh"),
        (f"expand_chain/chain/{CELL.format(2, 4)}.parquet", lambda rows: rows[:-1], "first 2/2"),
        ("collect/metrics/mnist1d/resmlp.parquet", scaled("test_accuracy", 0.9), "column 'test_accuracy' is not that of"),
        ("collect/curves/mnist1d/resmlp.parquet", lambda rows: rows[1:], "rows, its cells' tables have"),
        ("../figures/joint_scaling/mnist1d/resmlp.parquet", lambda rows: rows[1:], "only there when recomputed"),
    ],
)  # fmt: skip
def test_forged_rows_are_named(copied: Path, name: str, change: Callable[[list[Row]], list[Row]], reason: str) -> None:
    """Digests prove nothing about rows that were changed before they were hashed: content must fit content."""
    with_rows(copied / RESULTS / name, change)
    forge(copied)
    file = (copied / RESULTS / name).resolve().relative_to(copied.resolve() / "run").as_posix()
    assert reason in faults(copied)[file]


def test_verdict_without_its_seed_is_not_evaluated(copied: Path) -> None:
    """token-optimizer-mcp #404: three seeds claimed, two there. The forger has collected and hashed everything again."""
    results = copied / RESULTS
    for depth, seeds in ((2, (0, 1)), (4, (0,))):
        path = results / f"train_baseline/metrics/{CELL.format(depth, 4)}.parquet"
        with_rows(path, lambda rows, seeds=seeds: [row for row in rows if row["seed"] in seeds])
    collected_from(copied, "metrics")
    forge(copied)
    report = audit(results)
    assert "lacks 2 rows" in report.failed[str(results / METRICS)]
    reason = report.failed[str(results / paths.CLAIMS)]
    assert "recomputed not evaluated" in reason
    assert "depth 2, width 4, samples 200, seed 2" in reason
    (gain,) = [
        one for one in report.verdicts if (one["claim"], one["samples"], one["checkpoint"]) == ("joint_gain", 200, "final")
    ]  # fmt: skip
    assert (gain["verdict"], gain["recomputed"]) == ("inconclusive", "not evaluated")


def test_other_code_parameters_seeds_units_and_columns_are_named(copied: Path) -> None:
    """Each fact of a header, one file each."""
    files = [f"train_baseline/curves/{CELL.format(depth, 8)}.parquet" for depth in (1, 2, 4)]
    one, other, third = (copied / RESULTS / name for name in files)
    with_header(one, lambda old: {**old, "code": "0" * 64})
    with_header(other, lambda old: {**old, "config": "0" * 64})
    with_header(third, lambda old: {**old, "seeds": [0]})
    with_header(copied / RESULTS / METRICS, lambda old: {**old, "tier": "mine"})
    with_header(copied / RESULTS / SIGNAL, lambda old: {**old, "schema": "moments"})
    forge(copied)
    found = faults(copied)
    assert found[f"results/{files[0]}"].startswith("made by other code than its fellows: digest 000000000000")
    assert found[f"results/{files[1]}"].startswith("made with other parameters than the config gives: digest 000000")
    assert found[f"results/{files[2]}"] == "made for the seeds [0], not [0, 1, 2]"
    assert found[f"results/{METRICS}"] == "'tier' in its header is 'mine'"
    assert found[f"results/{SIGNAL}"] == "holds table moments version 1, not signal 1"


def test_changed_code_is_not_verified_and_no_failure(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of last year is whole, but this installation cannot say that its code was what it says."""
    from jumpboard.configuration.plan import Plan

    now = Plan.code
    monkeypatch.setattr(
        Plan, "code", lambda plan, rule, keys: "0" * 64 if rule == "expand_width" else now(plan, rule, keys)
    )
    report = audit(copied / RESULTS)
    assert report.failed == {}
    assert "code of expand_width: 1 files were made by other code than is installed here" in report.not_verified


# Hostile and bad input


def hostile(path: Path, kind: str) -> None:
    """Put something in the place of a file that its manifest lists."""
    path.unlink()
    match kind:
        case "a link that leads out of the folder":
            outside = path.parents[len(path.parents) - 2] / "etc" / "hostname"
            path.symlink_to(outside)
        case "not a regular file":
            os.mkfifo(path)
        case "listed but missing":
            path.symlink_to(path.name)
        case "damaged":
            path.write_bytes((2**62).to_bytes(8, "little") + b"{" * 100)


@pytest.mark.parametrize("name", [METRICS, TRAINED, paths.CONFIG, SIGNAL])
def test_pipes_folders_and_links_in_place_of_files_are_not_opened(copied: Path, capsys: Any, name: str) -> None:
    """An audit of a stranger's folder must not hang, follow links or write."""
    results = copied / RESULTS
    path = results / name
    path.unlink()
    for make_it, reason in (
        (lambda: os.mkfifo(path), "not a regular file"),
        (path.mkdir, "not a regular file"),
        (lambda: path.symlink_to("/etc/passwd"), "a link that leads out of the folder"),
    ):
        make_it()
        before = listing(copied)
        assert main(["audit", str(results)]) == 1
        out = capsys.readouterr().out
        assert f"audit failed: {path}: {reason}" in out.splitlines()[-1]
        assert listing(copied) == before
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../../../../etc/passwd", "a/../config.json", "./config.json", "a\nb\x1b[2J"]
)
def test_names_that_lead_elsewhere_are_refused(copied: Path, capsys: Any, name: str) -> None:
    """A manifest is text from a stranger."""
    manifest = copied / RESULTS / paths.MANIFEST
    listed = json.loads(manifest.read_text())
    listed["results"][name] = {"sha256": "0" * 64, "bytes": 1}
    manifest.write_text(json_text(listed))
    records = copied / RESULTS / paths.RECORDS / paths.MANIFEST
    listed = json.loads(records.read_text())
    listed["results"] |= {name: {"sha256": "0" * 64, "bytes": 1}}
    records.write_text(json_text(listed))
    assert main(["audit", str(copied / RESULTS), "--json"]) == 1
    captured = capsys.readouterr()
    assert captured.err == ""
    reasons = [one["reason"] for one in json.loads(captured.out)["failed"]]
    assert any(
        reason.startswith(("listed, but not the path of a file below", "listed but missing")) for reason in reasons
    )
    assert main(["audit", str(copied / RESULTS)]) == 1
    assert "\x1b" not in capsys.readouterr().out


def test_hostile_files_with_fitting_digests_fail_in_one_line(copied: Path) -> None:
    """Lengths that are not there, nested headers, no header: whatever a reader does with them, it is the file's fault."""
    results = copied / RESULTS
    (results / TRAINED).write_bytes((2**62).to_bytes(8, "little") + b"{" * 100)
    (results / OTHER).write_bytes((2**24).to_bytes(8, "little") + b"[" * 2**24)
    (results / METRICS).write_bytes(b"PAR1" + b"\xff" * 64 + (2**31 - 1).to_bytes(4, "little") + b"PAR1")
    with_header(results / SIGNAL, lambda old: {"schema": "signal", "version": 1})
    rehash(copied)
    found = faults(copied)
    for name in (TRAINED, OTHER, METRICS, SIGNAL):
        assert found[f"results/{name}"]
        assert "\n" not in found[f"results/{name}"]


@pytest.mark.parametrize(
    ("spoil", "part"),
    [
        (lambda results: shutil.rmtree(results), "no such folder; accepted: the results folder of a finished run"),
        (
            lambda results: (results / paths.MANIFEST).unlink(),
            "manifest.json: no such file; accepted: the results folder",
        ),
        (lambda results: (results / paths.MANIFEST).write_text("{"), "manifest.json: not a whole JSON file"),
        (lambda results: (results / paths.MANIFEST).write_text("[" * 10**6), "manifest.json: not a whole JSON file"),
        (lambda results: (results / paths.MANIFEST).write_text("[1]"), "manifest.json: not a whole manifest"),
        (lambda results: (results / paths.MANIFEST).write_text('{"home": {}}'), "manifest.json: not a whole manifest"),
        (lambda results: os.replace(results, results.with_name("x")) or results.write_text(""), "no such folder"),
    ],
)
def test_bad_input_ends_in_one_line(copied: Path, capsys: Any, spoil: Callable[[Path], Any], part: str) -> None:
    """Status 2, and what is accepted."""
    spoil(copied / RESULTS)
    assert main(["audit", str(copied / RESULTS)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert part in captured.err
