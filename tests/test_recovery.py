"""A run that was killed goes on by the README's one line, and a damaged file is named; both end with the bytes of a run
that nothing happened to."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from recovery import Workflow, survive
from test_workflow import GENERATED, ORIGIN, copy_checkout

KILLS, SEED, LONGEST = 5, 20, 4.0
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
    "expansions": [], "widenings": [], "chains": [],
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
def undisturbed(workflow: Workflow) -> dict[str, str]:
    """The bytes of a run that was never killed."""
    assert workflow.start().wait() == 0, workflow.log.read_text()
    found = workflow.contents()
    shutil.move(workflow.place / "run", workflow.place / "undisturbed")
    shutil.rmtree(workflow.place / ".snakemake")
    return found


def test_killed_at_random_moments(workflow: Workflow, undisturbed: dict[str, str]) -> None:
    """After a kill: a locked directory, incomplete files, hand deletion of hidden files, days of training lost
    (snakemake #2407, lightcone-cli #214, smrtsv2 #18). Here the one line, each time."""
    report = survive(workflow, undisturbed, KILLS, SEED, LONGEST)
    print(f"seed {SEED}: {report}")
    assert report.failures == []
    assert sum(report.kills.values()) == KILLS
