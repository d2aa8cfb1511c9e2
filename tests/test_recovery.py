"""A run that was killed goes on by the README's one line, and a damaged file is named; both end with the bytes of a run
that nothing happened to."""

import dataclasses
import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from jumpboard.artefacts.files import REMEDY
from recovery import Workflow, survive
from test_workflow import GENERATED, ORIGIN, copy_checkout

KILLS, SEED, LONGEST = 5, 20, 3.0
CELL = "waves/resmlp/depth_4/width_16/samples_300.parquet"
TABLES = [f"run/results/{name}/{CELL}" for name in ("train_baseline/metrics", "measure_gradients/signal")]
CONFIG: dict[str, Any] = {
    **{name: f"run/{name}" for name in ("results", "figures", "logs")},
    "datasets": "one_datasets.yaml",
    "trainings": {"resmlp": {"steps": 1500, "evaluate_every": 100, "state_every": 20, "checkpoints": {"losses": []}}},
    "grid": [
        {
            "dataset": "waves", "arch": "resmlp", "training": "resmlp", "seeds": [0, 1],
            "product": {"depth": [4], "width": [16], "samples": [300]},
        },
    ],
    "measurements": [
        {
            "dataset": "waves", "arch": "resmlp", "checkpoints": ["init", "final"], "splits": {"test": 60},
            "blocks": 3, "pool": 20, "permutations": 1, "heat_maps": [],
        },
    ],
    "expansions": [], "widenings": [], "chains": [], "certificates": [], "fits": [],
}  # fmt: skip


@pytest.fixture(scope="module")
def workflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workflow]:
    """A clone with a config of one cell, and the call that trains and measures it."""
    place = copy_checkout(tmp_path_factory.mktemp("one cell"))
    (place / "one.yaml").write_text(yaml.safe_dump(CONFIG), encoding="utf-8")
    (place / "one_datasets.yaml").write_text(yaml.safe_dump({"waves": {**GENERATED, **ORIGIN, "seed": 1}}))
    found = Workflow(place, "run", ("--cores", "2", "--configfile", "one.yaml", "--", *TABLES))
    yield found
    found.end()


@pytest.fixture(scope="module")
def whole(workflow: Workflow, tmp_path_factory: pytest.TempPathFactory) -> Workflow:
    """The same in another clone, and a run that was never killed in it."""
    place = shutil.copytree(workflow.place, tmp_path_factory.mktemp("whole") / "one cell")
    found = dataclasses.replace(workflow, place=place, groups=[])
    assert found.start().wait() == 0, found.log.read_text()
    return found


def test_killed_at_random_moments(workflow: Workflow, whole: Workflow) -> None:
    """After a kill: a locked directory, incomplete files, hand deletion of hidden files, days of training lost
    (snakemake #2407, lightcone-cli #214, smrtsv2 #18). Here the one line, each time."""
    report = survive(workflow, whole.contents(), KILLS, SEED, LONGEST)
    print(f"seed {SEED}: {report}")
    assert report.failures == []
    assert sum(report.kills.values()) == KILLS


def test_a_file_cut_short_is_named_and_made_again(whole: Workflow) -> None:
    """A copy that broke off, with the time of the whole file: Snakemake takes it for what it was. The stage that reads
    it names it and says what to do, and after that the bytes are those of before."""
    checkpoints = whole.place / f"run/results/checkpoints/train_baseline/{CELL}".replace(".parquet", ".safetensors")
    before, times = whole.contents(), (checkpoints.stat().st_atime_ns, checkpoints.stat().st_mtime_ns)
    os.truncate(checkpoints, checkpoints.stat().st_size // 2)
    os.utime(checkpoints, ns=times)
    (whole.place / TABLES[1]).unlink()
    whole.log.unlink()
    assert whole.start().wait() == 1
    said = whole.log.read_text()
    (line,) = [line for line in said.splitlines() if line.startswith("error: ")]
    relative = checkpoints.relative_to(whole.place)
    assert line == f"error: {relative}: not a whole checkpoint file written by jumpboard; {REMEDY}"
    assert "Traceback" not in said
    checkpoints.unlink()
    assert whole.start().wait() == 0, whole.log.read_text()
    assert whole.contents() == before
