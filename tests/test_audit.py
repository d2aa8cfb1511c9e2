"""The audit finds what is not as it was made: damage, loss, swaps, and forgeries whose digests were made to fit.

One small run of every rule is made once; each test changes a copy of it. Where a forger is at work, all parent digests
and both manifests fit again after the change.
"""

import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jumpboard.artefacts import paths
from jumpboard.artefacts.checkpoints import read_checkpoint_header, read_member, write_checkpoints
from jumpboard.artefacts.compute import read_records
from jumpboard.artefacts.files import REMEDY, sha256_of
from jumpboard.artefacts.job import json_text
from jumpboard.artefacts.provenance import Provenance
from jumpboard.artefacts.tables import read_table, write_parquet
from jumpboard.artefacts.verification import DIFFERS, entry_fault, stored_header
from jumpboard.audit import tables, verdicts
from jumpboard.audit.ancestry import copies, record_fault
from jumpboard.audit.audit import audit, opened
from jumpboard.audit.certificates import routes_fault
from jumpboard.audit.manifests import OLDER, listed_faults
from jumpboard.audit.report import Report
from jumpboard.audit.run import open_folders
from jumpboard.claims import controls
from jumpboard.claims.readme_table import readme_table
from jumpboard.cli import main
from jumpboard.configuration.load import read_yaml
from jumpboard.configuration.selection import SECTIONS
from jumpboard.errors import InputError
from jumpboard.schemas.claims import CLAIMS
from jumpboard.schemas.signal import SIGNAL as SIGNAL_SCHEMA
from jumpboard.stages.release import copy_run
from small_run import (
    FIGURES_FOLDER,
    RESULTS,
    SMALL,
    collected_from,
    forge,
    inside,
    make,
    rehash,
    with_header,
    with_rows,
)

CELL = "mnist1d/resmlp/depth_{}/width_{}/samples_200"
METRICS = f"train_baseline/metrics/{CELL.format(2, 4)}.parquet"
SIGNAL = f"measure_gradients/signal/{CELL.format(2, 4)}.parquet"
TRAINED = f"checkpoints/train_baseline/{CELL.format(2, 4)}.safetensors"
OTHER = f"checkpoints/train_baseline/{CELL.format(4, 8)}.safetensors"
CHAIN = f"checkpoints/expand_chain/{CELL.format(2, 4)}.safetensors"
EXPANDED = f"checkpoints/expand_depth/{CELL.format(2, 4)}.safetensors"
FEW = 20
NOTHING = {"weight": np.zeros(1, dtype=np.float32)}
Row = dict[str, Any]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the run lies below. Tests must not change it."""
    place = tmp_path_factory.mktemp("small")
    make(place)
    return place


@pytest.fixture(scope="module", autouse=True)
def quick() -> Iterator[None]:
    """What takes most of an audit of so small a run: verdicts of 200 permuted tables, and the checkout's configs, which
    no test changes."""
    with patch.object(controls, "PERMUTATIONS", FEW), patch.object(verdicts, "read_yaml", cache(read_yaml)):
        yield


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
    assert [note.partition(":")[0] for note in report.not_verified] == ["README", "config", "pictures"]
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
        "import sys; from jumpboard.claims import controls; from jumpboard.cli import main\n"
        f"controls.PERMUTATIONS = {FEW}; status = main(['audit', 'mine', '--json'])\n"
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
    make(tmp_path, {"grid": grid, **{name: [] for name in ("fits", *SECTIONS.values())}})
    assert faults(tmp_path) == {}


def test_expansions_that_keep_no_nets_pass(tmp_path: Path) -> None:
    """Most keep none: their checkpoint file is empty, and must be."""
    only = {"product": {"depth": [1], "width": [4], "samples": [200]}}
    grid = [{"dataset": "mnist1d", "arch": "resmlp", "training": "resmlp", "seeds": [0, 1], **only}]
    expansions = [{**SMALL["expansions"][0], "only": {}, "keep_nets": False}]
    sections = {name: [] for name in ("fits", *SECTIONS.values())} | {"expansions": expansions}
    make(tmp_path, {"grid": grid, **sections})
    assert faults(tmp_path) == {}
    name = EXPANDED.replace("depth_2", "depth_1")
    rewritten(tmp_path / RESULTS / name, lambda members: members.update({(0, "site_0/jumpboard_all"): (6, NOTHING)}))
    forge(tmp_path)
    assert faults(tmp_path)[f"results/{name}"] == "should not hold seed_0/site_0/jumpboard_all"


# Damage


def test_a_flipped_byte_in_any_file_is_found(copied: Path) -> None:
    """Each listed file at its first, last and some other byte; of the manifests, which list the rest, many bytes."""
    places = {"results": copied / RESULTS, "figures": copied / FIGURES_FOLDER}
    manifests = [places["results"] / name for name in (paths.MANIFEST, f"{paths.RECORDS}/{paths.MANIFEST}")]
    draws = random.Random(0)
    for manifest in manifests:
        for place, listed in json.loads(manifest.read_text()).items():
            for name, entry in listed.items():
                path = places[place] / name
                whole = path.read_bytes()
                assert entry_fault(places[place], name, entry) == ""
                for at in (0, len(whole) - 1, draws.randrange(len(whole))):
                    flip(path, at)
                    assert entry_fault(places[place], name, entry) == DIFFERS
                    path.write_bytes(whole)
    for path in manifests:
        whole = path.read_bytes()
        for at in [*range(0, 120, 5), *draws.sample(range(len(whole)), 20), len(whole) - 1]:
            flip(path, at)
            try:
                found = bool(listed_faults(open_folders(places["results"], places["figures"])))
            except InputError as error:
                found = str(path) in str(error)
            assert found, (path, at)
            path.write_bytes(whole)


FLIPPED = (
    (f"results/records/train_baseline/metrics/{CELL.format(1, 4)}.json", 40),
    (f"results/train_baseline/metrics/{CELL.format(1, 4)}.parquet", 40),  # a data page
    (f"results/train_baseline/metrics/{CELL.format(1, 8)}.parquet", -200),  # the footer
    (f"results/checkpoints/train_baseline/{CELL.format(1, 4)}.safetensors", 3),  # the length of the header
    (f"results/checkpoints/train_baseline/{CELL.format(1, 8)}.safetensors", 60),
    (f"results/checkpoints/train_baseline/{CELL.format(2, 4)}.safetensors", -3),
    ("results/prepare_dataset/splits/mnist1d.parquet", 999),
    ("results/collect/signal/mnist1d/resmlp.parquet", 999),
    ("figures/joint_scaling/mnist1d/resmlp.svg", 900),
    ("figures/joint_scaling/mnist1d/resmlp.png", 900),
    ("figures/joint_scaling/mnist1d/resmlp.parquet", 900),
)


def test_damaged_files_are_named_and_no_others(copied: Path) -> None:
    """The files to fetch again must not drown among those that were made from them."""
    for name, at in FLIPPED:
        flip(copied / "run" / name, at)
    found = faults(copied)
    assert found == {name: "damaged: its bytes are not those that the manifest lists" for name, _ in FLIPPED}


@pytest.mark.parametrize("at", [0, 5])
def test_damaged_config_is_named(copied: Path, capsys: Any, at: int) -> None:
    """No longer JSON at its first byte, of another meaning at the other."""
    path = copied / RESULTS / paths.CONFIG
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
    youngest_first = sorted(names, key=lambda name: -header["checkpoints"][name]["step"])
    parents = {int(names[name][0]): header["checkpoints"][name]["parent"] for name in youngest_first}
    ancestors = dict.fromkeys((seed for seed, _ in members), "") | parents
    write_checkpoints(path, members, ancestors, provenance, chained="expand_depth" not in path.parts)


def test_false_ancestry_is_named(copied: Path) -> None:
    """A forger who re-hashed the whole run after it: what stands inside a file does not fit. One change a file."""
    cases: list[tuple[Callable[[Path], None], str]] = [
        (lambda path: with_header(path, swap_seeds), "the tensors of seed_0/final are not those of its record"),
        (lambda path: rewritten(path, lambda members: members.pop((1, "step_2"))), "lacks seed_1/step_2"),
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
    ]
    sizes = [(depth, width) for depth in (1, 2, 4) for width in (8, 16)]
    names = [f"checkpoints/train_baseline/{CELL.format(*size)}.safetensors" for size in sizes]
    for name, (spoil, _) in zip(names, cases, strict=True):
        spoil(copied / RESULTS / name)
    forge(copied)
    assert faults(copied) == {f"results/{name}": reason for name, (_, reason) in zip(names, cases, strict=True)}


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


def swap_boards(members: dict[tuple[int, str], Any]) -> None:
    one, other = (0, "site_1/jumpboard_train"), (1, "site_1/jumpboard_train")
    members[one], members[other] = members[other], members[one]


def one_arm_for_another(members: dict[tuple[int, str], Any]) -> None:
    members[0, "site_1/jumpboard_all"] = members[1, "site_1/jumpboard_all"]


KEPT: list[tuple[str, Callable[[Path], None], str]] = [
    (
        EXPANDED,
        lambda path: rewritten(path, lambda members: members.pop((1, "site_2/jumpboard_block"))),
        "lacks seed_1/site_2/jumpboard_block",
    ),
    (
        EXPANDED,
        lambda path: rewritten(path, lambda members: members.pop((2, "site_0/jumpboard_population"))),
        "lacks seed_2/site_0/jumpboard_population",
    ),
    (
        EXPANDED,
        lambda path: rewritten(path, lambda members: members.update({(0, "site_0/zero_all"): (6, NOTHING)})),
        "should not hold seed_0/site_0/zero_all",
    ),
    (
        EXPANDED,
        lambda path: with_header(path, lambda old: _with_parent(old, "seed_0/site_1/jumpboard_all", "0" * 64)),
        "seed_0/site_1/jumpboard_all does not descend from what the file descends from: parent 000000000000",
    ),
    (
        EXPANDED,
        lambda path: rewritten(path, one_arm_for_another),
        f"seed_1/site_1/jumpboard_all holds the tensors of seed_0/site_1/jumpboard_all in {EXPANDED}",
    ),
    (
        EXPANDED,
        lambda path: rewritten(path, swap_boards),
        "seed_0/site_1/jumpboard_train does not hold the tensors of seed_0/final, at which it begins",
    ),
    (
        CHAIN,
        lambda path: rewritten(path, lambda members: members.pop((2, "k_2"))),
        "lacks seed_2/k_2",
    ),
]  # fmt: skip


def test_nets_that_expansions_keep(copied: Path) -> None:
    """Certificates and chains speak of these nets: all of them must be there, each from the reference of its seed."""
    run = opened(copied / RESULTS, None, Report())
    assert run is not None
    by_path = {one.path: one for one in run.artefacts}
    for name, spoil, reason in KEPT:
        path = copied / RESULTS / name
        whole = path.read_bytes()
        spoil(path)
        copied_ones = [fault.reason for fault in copies(run, {}) if fault.file == str(path)]
        assert reason in (record_fault(run, by_path[name]), *copied_ones)
        path.write_bytes(whole)


# Forged tables


def edited(**values: Any) -> Callable[[list[Row]], list[Row]]:
    """Other values in the first row."""
    return lambda rows: [{**rows[0], **values}, *rows[1:]]


def test_wrong_parent_digest_is_named_after_everything_else_was_made_to_fit(copied: Path) -> None:
    """The careful forger of one table: all digests fit but that of the checkpoints that it was measured on."""
    with_header(copied / RESULTS / SIGNAL, lambda old: {**old, "parents": {**old["parents"], TRAINED: "0" * 64}})
    rehash(copied)
    assert faults(copied)[f"results/{SIGNAL}"].startswith(f"made from another {TRAINED}: digest 000000000000")


def test_parents_are_the_cells_own_and_all_of_them(copied: Path) -> None:
    """A digest that is one of the run is not enough: it must be that of the file that the job reads."""
    other = f"measure_gradients/signal/{CELL.format(4, 4)}.parquet"
    with_header(copied / RESULTS / SIGNAL, lambda old: {**old, "parents": {**old["parents"], OTHER: "0" * 64}})
    with_header(copied / RESULTS / other, lambda old: {**old, "parents": {}})
    forge(copied)
    found = faults(copied)
    assert found[f"results/{SIGNAL}"] == f"names the parent {OTHER}, which is not its own"
    assert found[f"results/{other}"].startswith("does not name its parent checkpoints/train_baseline/")


def measured(table: str, depth: int = 2) -> str:
    return f"measure_gradients/{table}/{CELL.format(depth, 4)}.parquet"


def laws(table: str) -> str:
    return f"fit_power_law/{table}/mnist1d/resmlp.parquet"


def baseline(depth: int, width: int) -> str:
    return f"train_baseline/metrics/{CELL.format(depth, width)}.parquet"


FORGED: dict[str, tuple[Callable[[list[Row]], list[Row]], str]] = {
    f"results/{paths.CLAIMS}": (edited(verdict="contradicted"), "verdict is 'contradicted', recomputed '"),
    f"results/{baseline(1, 4)}": (edited(test_loss=0.5), "column 'generalisation_gap' of row 0 is not what"),
    f"results/{baseline(1, 8)}": (lambda rows: rows[:-1], "lacks 1 rows that the config asks for, first 2/final"),
    f"results/{baseline(1, 16)}": (lambda rows: rows[::-1], "rows are not in the order of their keys, each once"),
    f"results/{baseline(2, 4)}": (edited(depth=1), "column 'depth' holds 1 in a table of 2"),
    f"results/{baseline(2, 8)}": (
        lambda rows: [*rows, {**rows[-1], "checkpoint": "last"}],
        "has 1 rows that the config does not ask for, first 2/last",
    ),
    f"results/train_baseline/curves/{CELL.format(1, 4)}.parquet": (lambda rows: rows[1:], "first 0/train/3"),
    f"results/{measured('signal')}": (
        lambda rows: [row for row in rows if row["site"] != 1], "lacks 12 rows that the config asks for, first 0",
    ),
    f"results/{measured('moments')}": (
        lambda rows: [row for row in rows if row["checkpoint"] != "init"], "first 0/init/0/fresh",
    ),
    f"results/{measured('covariance')}": (
        lambda rows: [row for row in rows if row["seed"] != 2], "first 2/final/0/fresh",
    ),
    f"results/{measured('correlations', 4)}": (lambda rows: rows[1:], "first 0/final/2/test/0/0"),
    f"results/expand_depth/expansion/{CELL.format(2, 4)}.parquet": (edited(gain=1.0), "column 'gain' of row 0"),
    f"results/expand_depth/step_gains/{CELL.format(2, 4)}.parquet": (lambda rows: rows[1:], "first 0/0/population/0/"),
    f"results/expand_depth/jumpboard/{CELL.format(2, 4)}.parquet": (lambda rows: rows[:-1], "first 2/2/train/"),
    f"results/expand_width/widening/{CELL.format(2, 4)}.parquet": (lambda rows: rows[1:], "first 0/scratch"),
    f"results/expand_chain/chain/{CELL.format(2, 4)}.parquet": (lambda rows: rows[:-1], "first 2/2"),
    f"results/certify/routes/{CELL.format(2, 4)}.parquet": (
        lambda rows: [row for row in rows if row["route"] == "B"],
        "lacks 18 rows that the config asks for, first 0/0/jumpboard_all/population/A/brier",
    ),
    f"results/certify/ladder/{CELL.format(2, 4)}.parquet": (
        lambda rows: [row for row in rows if row["rung"] != "step_grid"],
        "lacks 9 rows that the config asks for, first 0/0/jumpboard/step_grid/brier/train",
    ),
    f"results/{laws('fits')}": (
        lambda rows: [row for row in rows if row["form"] != "exponential"],
        "lacks 8 rows that the config asks for, first final/joint/0/0/0/exponential/A_depth",
    ),
    f"results/{laws('fitted')}": (
        lambda rows: [row for row in rows if row["seed"] != 1], "first final/depth/1/16/200/1",
    ),
    f"results/{laws('betas')}": (
        lambda rows: [row for row in rows if row["estimator"] == "slope"], "lacks 1 rows that the config asks for",
    ),
    f"results/{laws('fitted_chain')}": (
        lambda rows: [*rows, {**rows[-1], "k": 7}], "has 1 rows that the config does not ask for, first 2/4/200/7",
    ),
    "results/collect/chain/mnist1d/resmlp.parquet": (
        lambda rows: [{**row, "net_test_loss": 1.0} for row in rows], "has 9 rows, its cells' tables have 8",
    ),
    "results/describe_dataset/card/mnist1d.parquet": (edited(count=99), "mnist1d/test: count is 99, recomputed 100"),
    "figures/joint_scaling/mnist1d/resmlp.parquet": (lambda rows: rows[1:], "only there when recomputed"),
}  # fmt: skip


def test_forged_rows_are_named(copied: Path) -> None:
    """Digests prove nothing about rows that were changed before they were hashed: content must fit content."""
    for name, (change, _) in FORGED.items():
        with_rows(copied / "run" / name, change)
    forge(copied)
    found = faults(copied)
    assert {name: reason in found[name] for name, (_, reason) in FORGED.items()} == dict.fromkeys(FORGED, True), found


def swapped_seeds(rows: list[Row]) -> list[Row]:
    other = {0: 1, 1: 0, 2: 2}
    ordered = sorted(rows, key=lambda row: [*list(row.values())[:5], other[row["seed"]]])
    return [{**row, "seed": other[row["seed"]]} for row in ordered]


SWAPPED = {
    baseline(4, 16): "column 'validation_loss' of seed 0 holds ",
    f"expand_depth/expansion/{CELL.format(2, 4)}.parquet": "column 'old_train_loss' of seed 0 holds ",
    f"expand_width/widening/{CELL.format(2, 4)}.parquet": "column 'old_train_loss' of seed 0 holds ",
    f"expand_chain/chain/{CELL.format(2, 4)}.parquet": "column 'net_train_loss' of seed 0 holds ",
}


def test_seeds_swapped_in_one_table_are_named(copied: Path) -> None:
    """The rows are complete and all digests fit; the other tables of the cell still speak of the nets as they were."""
    for table in SWAPPED:
        with_rows(copied / RESULTS / table, swapped_seeds)
    forge(copied)
    found = faults(copied)
    for table, reason in SWAPPED.items():
        assert found[f"results/{table}"].startswith(reason)


def test_collected_values_are_those_of_the_cells(copied: Path) -> None:
    """What claims read is the collected table: it must be the cells' bit for bit."""
    name = "collect/metrics/mnist1d/resmlp.parquet"
    with_rows(copied / RESULTS / name, lambda rows: [{**rows[0], "test_accuracy": 0.5}, *rows[1:]])
    forge(copied)
    assert faults(copied)[f"results/{name}"] == "column 'test_accuracy' is not that of its cells' tables"


def test_verdict_without_its_seed_is_not_evaluated(copied: Path) -> None:
    """token-optimizer-mcp #404: three seeds claimed, fewer there, everything collected and hashed again."""
    results = copied / RESULTS
    for depth, seeds in ((2, (0, 1)), (4, (0,))):
        path = results / f"train_baseline/metrics/{CELL.format(depth, 4)}.parquet"
        with_rows(path, lambda rows, seeds=seeds: [row for row in rows if row["seed"] in seeds])
    collected_from(copied, "metrics")
    forge(copied)
    report = audit(results)
    assert "lacks 2 rows" in report.failed[str(results / METRICS)]
    reason = report.failed[str(results / paths.CLAIMS)]
    assert "verdict is 'inconclusive', recomputed 'not evaluated' (expected runs are missing" in reason
    assert "depth 2, width 4, samples 200, seed 2" in reason
    (gain,) = [one for one in report.verdicts if (one["claim"], one["checkpoint"]) == ("joint_gain", "final")][:1]
    assert (gain["verdict"], gain["recomputed"]) == ("inconclusive", "not evaluated")


def test_other_code_parameters_seeds_units_and_columns_are_named(copied: Path) -> None:
    """Each fact of a header, one file each."""
    files = [f"train_baseline/curves/{CELL.format(depth, 8)}.parquet" for depth in (1, 2, 4)]
    one, other, third = (copied / RESULTS / name for name in files)
    with_header(one, lambda old: {**old, "code": "0" * 64})
    with_header(other, lambda old: {**old, "config": "0" * 64})
    with_header(third, lambda old: {**old, "seeds": [0]})
    with_header(copied / RESULTS / METRICS, lambda old: {**old, "tier": "mine"})
    spoilt = copied / RESULTS / measured("moments")
    table, header = pq.ParquetFile(spoilt).read(), stored_header(spoilt)
    at = table.schema.get_field_index("S")
    unit = table.schema.field("S").with_metadata({"unit": "m", "description": "mine"})
    write_parquet(spoilt, table.cast(table.schema.set(at, unit)), header)
    with_header(copied / RESULTS / SIGNAL, lambda old: {**old, "schema": "moments"})
    forge(copied)
    found = faults(copied)
    assert found[f"results/{files[0]}"].startswith("made by other code than its fellows: digest 000000000000")
    assert found[f"results/{files[1]}"].startswith("made with other parameters than the config gives: digest 000000")
    assert found[f"results/{files[2]}"] == "made for the seeds [0], not [0, 1, 2]"
    assert found[f"results/{measured('moments')}"] == "column 'S' has another unit or description than its schema"
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


def test_readme_of_the_run_that_it_shows(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A verdict made better on the page that everybody reads, and nowhere else."""
    checkout = copied / "checkout"
    page, own = checkout / "README.md", copied / RESULTS
    (checkout / "results/released").mkdir(parents=True)
    shutil.copy(own / paths.MANIFEST, checkout / "results/released")
    table = readme_table(read_table(own / paths.CLAIMS, CLAIMS).to_pylist()).rstrip("\n")
    monkeypatch.setattr(verdicts, "checkout", lambda: checkout)
    for text, found in ((table, {}), (table.replace("inconclusive", "supported", 1), {str(page)})):
        page.write_text(f"<!-- generated: claims -->\n{text}\n<!-- end: claims -->\n")
        report = audit(own)
        assert set(report.failed) == set(found)
        assert not [note for note in report.not_verified if note.startswith("README")]


def applied(rows: list[Row]) -> list[Row]:
    return [{**row, "outcome": "holds", "reason": "", "holds": True, "informative": True} for row in rows]


def test_forged_certificates_are_named(copied: Path) -> None:
    """A route that was not applicable is said to hold, everywhere that it is read."""
    name = f"certify/routes/{CELL.format(2, 4)}.parquet"
    for path in (name, "collect/routes/mnist1d/resmlp.parquet"):
        with_rows(copied / RESULTS / path, applied)
    forge(copied)
    assert "is 'holds' for the reason '', which its numbers are not" in faults(copied)[f"results/{name}"]


TERMS = {
    "seed": 0, "site": 1, "arm": "jumpboard_all", "loss": "brier", "reason": "", "delta": 0.05, "bound": 2.0,
    "test_samples": 10**6, "old_test": 0.65, "delta_r": 0.3, "delta_erm": 0.1, "eps_m": 0.1, "holds": True,
}  # fmt: skip
B = {**TERMS, "route": "B", "eps_k": 0.11, "new_test": 0.2, "failure": 0.1, "outcome": "holds"}
SAID = {"right_hand_side": 0.65 - 0.4 + 0.42, "informative": False}
A = {**TERMS, "route": "A", "eps_k": None, "new_test": 0.5, "failure": 0.1, "outcome": "violated", "holds": False}


@pytest.mark.parametrize(
    ("row", "part"),
    [
        (B | SAID, ""),
        (A | {"right_hand_side": 0.65 - 0.25 + 0.2 - 0.2, "informative": True}, "column 'right_hand_side' of seed 0"),
        (A | {"eps_m": 0.04, "right_hand_side": 0.65 - 0.25 + 0.08, "informative": True}, ""),
        (B | SAID | {"failure": 0.05}, "column 'failure'"),
        (B | SAID | {"outcome": "violated"}, "column 'outcome'"),
        (B | SAID | {"informative": True}, "column 'informative'"),
        (B | SAID | {"reason": "no caps"}, "for the reason 'no caps'"),
        (B | SAID | {"right_hand_side": None}, "is 'holds' for the reason ''"),
    ],
)
def test_routes_are_computed_again_from_their_terms(row: Row, part: str) -> None:
    """Both bounds written down by hand."""
    found = routes_fault([row])
    assert part in found
    assert bool(found) == bool(part)


def test_large_splits_are_not_read_and_named(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is too large to be read in a minute is known by its digest; the audit must not look as if it had read it."""
    monkeypatch.setattr(tables, "LARGE", 2000)
    card = copied / RESULTS / "describe_dataset/card/mnist1d.parquet"
    with_rows(card, edited(count=99))
    forge(copied)
    report = audit(copied / RESULTS)
    assert str(card) not in report.failed
    for name in ("prepare_dataset/splits", "prepare_fresh/rows"):
        assert any(one.startswith(f"{copied / RESULTS}/{name}/mnist1d.parquet: above") for one in report.not_verified)


# Hostile and bad input


def test_pipes_folders_and_links_in_place_of_files_are_not_opened(copied: Path) -> None:
    """An audit of a stranger's folder must not hang, follow links or write."""
    results = copied / RESULTS
    for name in (TRAINED, OTHER, METRICS, SIGNAL):
        (results / name).unlink()
    os.mkfifo(results / TRAINED)
    (results / OTHER).mkdir()
    (results / METRICS).symlink_to("/etc/passwd")
    (results / SIGNAL).symlink_to((results / SIGNAL).name)
    before = listing(copied)
    found = faults(copied)
    assert listing(copied) == before
    assert found.pop(f"results/{SIGNAL}").startswith(("cannot be read", "listed but missing"))
    assert found == {
        f"results/{TRAINED}": "not a regular file",
        f"results/{OTHER}": "not a regular file",
        f"results/{METRICS}": "a link that leads out of the folder",
    }


def test_pipe_that_the_manifest_does_not_list_is_not_opened(copied: Path) -> None:
    """The config says that there is a table; a manifest that is silent about it must not lead a reader there."""
    results = copied / RESULTS
    manifest = results / paths.MANIFEST
    listed = json.loads(manifest.read_text())
    del listed["results"][METRICS]
    manifest.write_text(json_text(listed))
    rehash(copied)
    (results / METRICS).unlink()
    os.mkfifo(results / METRICS)
    found = faults(copied)
    assert found.pop(f"results/{METRICS}") == "in the config's grid, but not in the manifest"
    assert set(found) == {"results/collect/metrics/mnist1d/resmlp.parquet"}, "nothing vouches for its parent"


@pytest.mark.parametrize("name", [paths.CONFIG, paths.MANIFEST])
def test_pipe_in_place_of_a_json_file_is_not_opened(copied: Path, capsys: Any, name: str) -> None:
    """These are read before anything else."""
    path = copied / RESULTS / name
    path.unlink()
    os.mkfifo(path)
    assert main(["audit", str(copied / RESULTS)]) == (1 if name == paths.CONFIG else 2)
    captured = capsys.readouterr()
    assert f"{path}: not a regular file" in (captured.out + captured.err).splitlines()[-1]


def test_names_that_lead_elsewhere_are_refused(copied: Path, capsys: Any) -> None:
    """A manifest is text from a stranger: it is not followed, and its text does not reach the terminal as it is."""
    names = [
        "/etc/passwd",
        "../../../../etc/passwd",
        "a/../config.json",
        "./config.json",
        "a\nb\x1b[2J",
        "\0",
        "\ud800",
    ]
    for manifest in (paths.MANIFEST, f"{paths.RECORDS}/{paths.MANIFEST}"):
        path = copied / RESULTS / manifest
        listed = json.loads(path.read_text())
        listed["results"] |= {name: {"sha256": "0" * 64, "bytes": 1} for name in names}
        path.write_text(json_text(listed))
    assert main(["audit", str(copied / RESULTS), "--json"]) == 1
    captured = capsys.readouterr()
    assert captured.err == ""
    reasons = {one["file"]: one["reason"] for one in json.loads(captured.out)["failed"]}
    wanted = "listed, but not the path of a file below the folder"
    assert [reason for reason in reasons.values() if reason == wanted] == [wanted] * 4
    assert len(reasons) == len(names) + 1, "the names, and the manifest that has changed"
    assert main(["audit", str(copied / RESULTS)]) == 1
    assert capsys.readouterr().out.isascii()


def test_hostile_files_with_fitting_digests_fail_in_one_line(copied: Path) -> None:
    """Lengths that are not there, nested and empty headers: whatever a reader makes of them, it is the file's fault."""
    results = copied / RESULTS
    (results / TRAINED).write_bytes((2**62).to_bytes(8, "little") + b"{" * 100)
    (results / OTHER).write_bytes((2**20).to_bytes(8, "little") + b"[" * 2**20)
    (results / METRICS).write_bytes(b"PAR1" + b"\xff" * 64 + (2**31 - 1).to_bytes(4, "little") + b"PAR1")
    with_header(results / SIGNAL, lambda old: {"schema": "signal", "version": 1})
    rehash(copied)
    found = faults(copied)
    assert (
        found[f"results/{TRAINED}"]
        == found[f"results/{OTHER}"]
        == f"not a whole checkpoint file written by jumpboard; {REMEDY}"
    )
    assert found[f"results/{METRICS}"] == f"not a whole Parquet table written by jumpboard; {REMEDY}"
    assert found[f"results/{SIGNAL}"] == "'code' in its header is None"


def with_config(results: Path, change: Callable[[Row], Any]) -> None:
    """Another config, and manifests that list it."""
    resolved = json.loads((results / paths.CONFIG).read_text())
    change(resolved["config"])
    (results / paths.CONFIG).write_text(json_text(resolved))
    rehash(results.parents[1])


def test_a_far_figures_folder_is_not_walked(copied: Path) -> None:
    """The config is a stranger's: it may not send the audit through the reviewer's disk."""
    for far in ("../..", ".", "/"):
        with_config(copied / RESULTS, lambda config, far=far: config.update(figures=far))
        report = audit(copied / RESULTS)
        assert "figures: no folder at hand; name it by --figures" in report.not_verified
        assert not [file for file in report.failed if not file.startswith(str(copied / RESULTS))]


def test_a_record_that_says_nothing_is_named(copied: Path) -> None:
    """Costs and the kind of machine are read from records: by the audit, the report and the release."""
    record = copied / RESULTS / "records/config.json"
    record.write_text('{"stage": "resolve_config"}\n')
    rehash(copied)
    assert faults(copied)["results/records/config.json"].startswith("not a whole record of a job; accepted: all of")
    with pytest.raises(InputError, match=r"config\.json: not a whole record of a job"):
        read_records(copied / RESULTS)


@pytest.mark.parametrize(
    ("spoil", "part"),
    [
        (lambda results: shutil.rmtree(results), "no such folder; accepted: the results folder of a finished run"),
        (
            lambda results: (results / paths.MANIFEST).unlink(),
            "manifest.json: no such file; accepted: the results folder",
        ),
        (
            lambda results: with_config(results, lambda config: config["expansions"][0].pop("keep_nets")),
            "config.json: does not fit this version: config: expansions[0] lacks the key 'keep_nets'",
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


# Another run


def against(place: Path, other: Path) -> tuple[dict[str, str], Report]:
    """What differs beyond its tier, by path below the results, and the whole report."""
    report = audit(place / RESULTS, None, other / RESULTS)
    prefix = f"differs from {other / RESULTS}: "
    found = {file: reason.removeprefix(prefix) for file, reason in report.failed.items() if reason.startswith(prefix)}
    return {Path(file).relative_to(place / RESULTS).as_posix(): reason for file, reason in found.items()}, report


def nudged(place: Path, name: str, column: str, factor: float, **facts: Any) -> None:
    """The largest value of a column made larger, as if computed so, with other facts in the header."""

    def change(rows: list[Row]) -> list[Row]:
        largest = max(rows, key=lambda row: abs(row[column]))
        return [{**row, column: row[column] * factor} if row is largest else row for row in rows]

    with_rows(place / RESULTS / name, change)
    with_header(place / RESULTS / name, lambda old: {**old, **facts})


def test_equal_runs_have_the_same_bytes(made: Path, copied: Path) -> None:
    """The same machine, threads and versions: nothing else is to be expected."""
    found, report = against(copied, made)
    assert (found, report.failed) == ({}, {})
    listed = json.loads((made / RESULTS / paths.MANIFEST).read_text())
    assert report.compared == {"same bytes": sum(map(len, listed.values()))}


@pytest.mark.parametrize("threads", [1, 4])
def test_small_and_large_changes_of_a_measured_value(made: Path, copied: Path, threads: int) -> None:
    """1e-5 is what other threads may give from the same nets, 1e-2 is not; where all is the same, neither is."""
    name, other = measured("moments"), measured("signal")
    nudged(copied, name, "S_plugin", 1 + 1e-5, threads=threads)
    nudged(copied, other, "signal_rms_sq", 1 + 1e-2, threads=threads)
    forge(copied)
    found, _ = against(copied, made)
    tier = "bytes" if threads == 1 else "close"
    assert found.pop(other).startswith(
        f"tier {tier}: column 'signal_rms_sq', row dataset mnist1d, arch resmlp, depth 2"
    )
    if tier == "bytes":
        assert "column 'S_plugin'" in (reason := found.pop(name))
        assert "relative 1.0e-05" in reason
    assert not [one for one in found if one.startswith("measure_gradients")]


def test_retrained_cell_is_held_to_its_seed_means(made: Path, copied: Path) -> None:
    """Trained elsewhere, losses differ by more than rounding, but not in the mean over seeds beyond their scatter."""
    name, other = baseline(2, 8), baseline(2, 16)
    nudged(copied, name, "test_accuracy", 1 + 1e-3, threads=4)
    with_rows(copied / RESULTS / other, lambda rows: [{**row, "test_accuracy": row["seed"] / 9 + 50} for row in rows])
    with_header(copied / RESULTS / other, lambda old: {**old, "threads": 4})
    forge(copied)
    found, report = against(copied, made)
    assert str(copied / RESULTS / name) not in report.failed
    assert found[other].startswith(
        "tier statistical: column 'test_accuracy', row dataset mnist1d, arch resmlp, depth 2"
    )


def test_other_checkpoint_and_damaged_other_run_are_named(made: Path, copied: Path, tmp_path: Path) -> None:
    """From equal parents on an equal machine, a net is the same net."""
    rewritten(copied / RESULTS / TRAINED, lambda members: members.update({(0, "final"): members[0, "init"]}))
    forge(copied)
    found, _ = against(copied, made)
    assert found[TRAINED] == "tier bytes: checkpoint seed_0/final"
    spoilt = tmp_path / "spoilt"
    shutil.copytree(made / "run", spoilt / "run")
    flip(spoilt / RESULTS / METRICS, 99)
    assert str(spoilt / RESULTS / METRICS) in audit(made / RESULTS, None, spoilt / RESULTS).failed


# One file


def test_inspect_tells_schema_and_descent_down_to_the_data(made: Path, capsys: Any) -> None:
    """Who is handed one table must be able to say what its columns are and what it was made from."""
    assert main(["inspect", str(made / RESULTS / SIGNAL)]) == 0
    text = capsys.readouterr().out
    assert "schema    signal version 1" in text
    assert re.search(r"signal_rms_sq +double +nats\^2 per unit\^2 of z +E \|zeta\|\^2", text)
    rows = len(read_table(made / RESULTS / SIGNAL, SIGNAL_SCHEMA))
    assert f"\n{rows} rows\n" in text
    chain = text[text.index("provenance") :].splitlines()
    assert chain[1].split() == [TRAINED, sha256_of(made / RESULTS / TRAINED)[:12]]
    assert [line.split()[0] for line in chain[2:]] == [
        "prepare_dataset/splits/mnist1d.parquet", "prepare_fresh/rows/mnist1d.parquet",
    ]  # fmt: skip
    assert main(["inspect", str(made / FIGURES_FOLDER / "chain/mnist1d/resmlp.parquet")]) == 0
    assert "prepare_dataset/splits/mnist1d.parquet" in capsys.readouterr().out, "down to the data"
    assert main(["inspect", str(made / RESULTS / CHAIN)]) == 0
    text = capsys.readouterr().out
    assert "9 members" in text
    assert re.search(r"seed_0/k_1 +step 1 +\d+ leaves", text)
    assert re.search(r"head.weight +F32 +\[10, 4\]", text)


REFUSED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "config.json": (lambda path: path.write_text("{}"), "not a table or checkpoint file; accepted: a .parquet or"),
    "no.parquet": (lambda path: None, "no such file; accepted"),
    "away.parquet": (lambda path: path.symlink_to("nowhere"), "no such file; accepted"),
    "circle.parquet": (lambda path: path.symlink_to("circle.parquet"), "no such file; accepted"),
    "pipe.parquet": (os.mkfifo, "not a regular file; accepted"),
    "zero.parquet": (lambda path: path.symlink_to("/dev/zero"), "not a regular file; accepted"),
    "collect": (lambda path: path.mkdir(), "not a regular file; accepted"),
    "empty.safetensors": (lambda path: path.write_bytes(b""), "not a whole checkpoint file written by jumpboard\n"),
    "mine.parquet": (
        lambda path: pq.write_table(pa.table({"x": [1]}), path), "not a whole Parquet table written by jumpboard\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_inspect_refuses_other_files_in_one_line(tmp_path: Path, capsys: Any, name: str) -> None:
    """Status 2, nothing is opened that might hang, and nobody is told to delete what is not of a run."""
    path = tmp_path / name
    make_it, part = REFUSED[name]
    make_it(path)
    assert main(["inspect", str(path)]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert f"{path}: {part}" in captured.err


def test_inspect_follows_a_link_that_somebody_made(made: Path, tmp_path: Path, capsys: Any) -> None:
    """A short name for a deep place."""
    link = tmp_path / "signal.parquet"
    link.symlink_to(made / RESULTS / SIGNAL)
    assert main(["inspect", str(link)]) == 0
    assert "schema    signal version 1" in capsys.readouterr().out
