"""A pretrained net through the stages: trained for no step, evaluated, and measured at its sites. What stands in the
tables must be the file's net, and must tell so without a word about where the file lay."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch.nn import functional

from conftest import CLASSES, SHAPE, Cell, cells_below
from jumpboard.artefacts import paths
from jumpboard.artefacts.checkpoints import read_checkpoint_header, read_member
from jumpboard.artefacts.files import sha256_of
from jumpboard.artefacts.job import parse
from jumpboard.artefacts.tables import Schema, read_header, read_table
from jumpboard.data.splits import read_splits
from jumpboard.figures import learning_curves
from jumpboard.measure.gradients import site_gradients
from jumpboard.measure.moments import moments
from jumpboard.nets.timm_net import TimmNet
from jumpboard.schemas.correlations import CORRELATIONS
from jumpboard.schemas.covariance import COVARIANCE
from jumpboard.schemas.curves import CURVES
from jumpboard.schemas.metrics import METRICS
from jumpboard.schemas.moments import MOMENTS
from jumpboard.schemas.signal import SIGNAL
from jumpboard.stages import measure_gradients, train_baseline
from oracles.plain_timm import plain_timm

NET = TimmNet(4, 32, SHAPE, CLASSES, "test_resnet")
SPEC = {
    "checkpoints": ["init", "final"],
    "splits": {"test": 60},
    "blocks": 5,
    "pool": 30,
    "permutations": 2,
    "heat_maps": [0.5],
}
MEASURED = (SIGNAL, MOMENTS, COVARIANCE, CORRELATIONS)


@dataclass(frozen=True)
class Pretrained:
    """A cell of `test_resnet` with weights of its own outside its root."""

    cell: Cell
    weights: Path

    def train(self) -> None:
        arguments = self.cell.arguments()
        place = arguments.index(f"splits={self.cell.splits}") + 1
        train_baseline.body(
            parse("train_baseline", [*arguments[:place], f"weights={self.weights}", *arguments[place:]])
        )

    @property
    def measured(self) -> dict[str, Path]:
        patterns = {one.name: paths.cell_table("measure_gradients", one.name) for one in MEASURED}
        return {name: self.cell.root / paths.filled(pattern, self.cell.params) for name, pattern in patterns.items()}

    def measuring(self, net: dict[str, str] | None = None) -> list[str]:
        """The command line of `measure_gradients`."""
        params = {name: value for name, value in self.cell.params.items() if name != "training"}
        params |= {"net": net or params["net"], "measurement": SPEC}
        options = ["--root", str(self.cell.root), "--params", json.dumps(params), "--code", "c0de"]
        inputs = [f"base={self.cell.splits}", f"checkpoints={self.cell.outputs['checkpoints']}"]
        outputs = [f"{name}={path}" for name, path in self.measured.items()]
        return [*options, "--inputs", *inputs, "--outputs", *outputs]

    def rows(self, schema: Schema) -> list[dict[str, object]]:
        return list(read_table((self.cell.outputs | self.measured)[schema.name], schema).to_pylist())


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory: pytest.TempPathFactory, splits_file: Path) -> Pretrained:
    folder = tmp_path_factory.mktemp("pretrained")
    leaves = {name: torch.from_numpy(leaf) for name, leaf in NET.initial_leaves(np.random.default_rng(7)).items()}
    weights = folder / "secret place" / "weights.safetensors"
    weights.parent.mkdir()
    save_file({**plain_timm(NET, leaves).state_dict()}, weights)
    cell = cells_below(folder, splits_file)(
        arch="pretrained", net={"family": "timm", "model": "test_resnet"}, depth=4, width=32, samples=100, seeds=[3],
        training={"steps": 0, "checkpoints": {}},
    )  # fmt: skip
    one = Pretrained(cell, weights)
    one.train()
    measure_gradients.body(parse("measure_gradients", one.measuring()))
    return one


def test_all_checkpoints_are_the_file(pretrained: Pretrained) -> None:
    """Weights that were moved, drawn anew or left at their initial values would be measured as the pretrained ones."""
    path = pretrained.cell.outputs["checkpoints"]
    wanted = TimmNet(4, 32, SHAPE, CLASSES, "test_resnet", str(pretrained.weights)).initial_leaves(
        np.random.default_rng(0)
    )
    names = ("init", "best_validation", "final")
    for checkpoint in names:
        member = read_member(path, 3, checkpoint)
        assert all(np.array_equal(leaf, member[name]) for name, leaf in wanted.items())
    records = read_checkpoint_header(path)["checkpoints"]
    assert {name: record["step"] for name, record in records.items()} == {f"seed_3/{name}": 0 for name in names}
    assert {record["parent"] for record in records.values()} == {sha256_of(pretrained.weights)}


def test_its_losses_are_those_of_the_timm_model(pretrained: Pretrained) -> None:
    """On each split, at step 0, without training FLOPs."""
    splits = read_splits(pretrained.cell.splits)
    leaves = TimmNet(4, 32, SHAPE, CLASSES, "test_resnet", str(pretrained.weights)).initial_leaves(
        np.random.default_rng(0)
    )
    module = plain_timm(NET, {name: torch.from_numpy(leaf) for name, leaf in leaves.items()})
    rows = pretrained.rows(METRICS)
    assert [row["checkpoint"] for row in rows] == ["best_validation", "final"]
    for row in rows:
        part = splits.rows("test")
        with torch.no_grad():
            logits = module(torch.from_numpy(splits.normalised(part)))
        loss = functional.cross_entropy(logits, torch.from_numpy(part.y.copy()))
        assert row["test_loss"] == pytest.approx(float(loss), rel=1e-5)
        assert (row["step"], row["training_flops"], row["status"]) == (0, 0.0, "trained")
        assert row["parameters"] == sum(one.numel() for one in module.parameters())
    assert [(row["split"], row["step"]) for row in pretrained.rows(CURVES)] == [("validation", 0)]


def test_its_curves_can_be_drawn(pretrained: Pretrained) -> None:
    """Every collected net gets every figure: one of 0 steps must not stop the run."""
    rows = learning_curves.plotted(pretrained.rows(CURVES), "planted", "pretrained")
    assert len(rows) == 1
    learning_curves.draw(rows)


def test_its_gradients_are_measured_at_all_sites(pretrained: Pretrained) -> None:
    """Moments at each site from a per-sample loop; the two checkpoints are one net and have the same."""
    splits = read_splits(pretrained.cell.splits)
    member = read_member(pretrained.cell.outputs["checkpoints"], 3, "final")
    leaves = {name: torch.from_numpy(leaf)[None].double() for name, leaf in member.items()}
    part = splits.rows("test")
    x, y = torch.from_numpy(splits.normalised(part)).double(), torch.from_numpy(part.y.copy())
    rows = {(row["checkpoint"], row["site"]): row for row in pretrained.rows(MOMENTS)}
    assert len(rows) == 10
    for site, gradients in enumerate(loop_rows_of(leaves, x, y)):
        wanted = moments(gradients)
        for name in ("S", "V", "T", "R"):
            scale = abs(float(getattr(wanted, name))) + float(wanted.R) ** (1 if name == "S" else 2)
            assert rows["final", site][name] == pytest.approx(float(getattr(wanted, name)), abs=1e-4 * scale), name
        assert rows["init", site]["R"] == rows["final", site]["R"]
    assert {row["stationary"] for row in pretrained.rows(SIGNAL)} == {True}


def loop_rows_of(leaves: dict[str, torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> list[np.ndarray]:
    """Rows [n, N] of each site, summed over positions."""
    each = [site_gradients(NET, leaves, x[None, i : i + 1], y[None, i : i + 1]) for i in range(len(x))]
    return [np.stack([sites[index][1][0, 0].sum(0).numpy() for sites in each]) for index in range(NET.depth + 1)]


def test_the_file_is_named_and_its_place_is_not(pretrained: Pretrained) -> None:
    """Who has the file must be able to tell that it is the one; where it lay on a machine is nobody's business, and
    would give other bytes elsewhere."""
    digest = sha256_of(pretrained.weights)
    for path in (*pretrained.cell.outputs.values(), *pretrained.measured.values()):
        assert b"secret place" not in path.read_bytes()
    for path in (pretrained.cell.outputs["curves"], pretrained.cell.outputs["metrics"]):
        assert read_header(path)["parents"]["weights/weights.safetensors"] == digest
    for path in (pretrained.cell.outputs["metrics"], pretrained.measured["signal"]):
        assert "timm" in read_header(path)["versions"]
    header = read_checkpoint_header(pretrained.cell.outputs["checkpoints"])
    assert header["parents"]["weights/weights.safetensors"] == digest


def test_a_checkpoint_of_another_net_is_refused(
    pretrained: Pretrained, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would be measured as the net of the config, or end in a page of traceback."""
    monkeypatch.setattr(sys, "argv", ["measure_gradients", *pretrained.measuring({"family": "resmlp"})])
    before = {path: path.read_bytes() for path in pretrained.measured.values()}
    with pytest.raises(SystemExit) as ended:
        measure_gradients.run_stage("measure_gradients", measure_gradients.body)
    assert ended.value.code == 2
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    assert f"{pretrained.cell.outputs['checkpoints']}: seed_3/init: lacks the leaf 'stem.weight'" in text
    assert before == {path: path.read_bytes() for path in pretrained.measured.values()}
