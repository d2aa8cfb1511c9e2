"""A small trained cell and one job of an expansion on it, as the DAG would run it."""

import json
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from conftest import CLASSES, RUN, SHAPE, TRAININGS, Cell, planted_rows
from jumpboard.artefacts import paths
from jumpboard.artefacts.job import Job, parse, run_stage
from jumpboard.artefacts.provenance import Provenance
from jumpboard.artefacts.tables import Schema, read_table
from jumpboard.data.splits import read_splits, write_splits
from jumpboard.expansion.reference import Reference, read_reference
from jumpboard.nets.base import Leaves, Net, forward
from jumpboard.nets.registry import build_net
from jumpboard.training.engine import TrainingData

RECIPE = TRAININGS["resmlp"] | RUN | {"schedule": {"name": "linear"}, "checkpoints": {}}


@dataclass(frozen=True)
class Expanded:
    """A job of `rule` on a trained cell; `spec` is its block of the config, `training` its recipe."""

    cell: Cell
    rule: str
    tables: tuple[str, ...]
    spec: Mapping[str, Any]
    training: Mapping[str, Any]
    keeps_checkpoints: bool = False

    @property
    def outputs(self) -> dict[str, Path]:
        patterns = {name: paths.cell_table(self.rule, name) for name in self.tables}
        patterns |= {"checkpoints": paths.cell_checkpoints(self.rule)} if self.keeps_checkpoints else {}
        return {name: self.cell.root / paths.filled(pattern, self.cell.params) for name, pattern in patterns.items()}

    @property
    def fresh(self) -> Path:
        return self.cell.root / paths.filled(paths.dataset_table("prepare_fresh", "rows"), self.cell.params)

    @property
    def states(self) -> Path:
        """Folder of the saved states of all arms."""
        return self.cell.root / paths.RESUME / self.rule / paths.filled(paths.CELL, self.cell.params)

    def arguments(self) -> list[str]:
        """The stage's command line."""
        params = {**self.cell.params, "baseline": self.cell.params["training"]}
        params |= {"training": self.training, "expansion": self.spec}
        inputs = {"base": self.cell.splits, "checkpoints": self.cell.outputs["checkpoints"]}
        inputs |= {"fresh": self.fresh} if self.fresh.exists() else {}
        options = {"--root": str(self.cell.root), "--params": json.dumps(params), "--code": "c0de"}
        pairs = [text for option in options.items() for text in option]
        places = [f"{name}={path}" for name, path in self.outputs.items()]
        return [*pairs, "--inputs", *(f"{name}={path}" for name, path in inputs.items()), "--outputs", *places]

    def run(self, body: Callable[[Job], None]) -> None:
        body(parse(self.rule, self.arguments()))

    def rows(self, schema: Schema) -> list[dict[str, Any]]:
        return list(read_table(self.outputs[schema.name], schema).to_pylist())

    def contents(self) -> dict[str, bytes]:
        """The bytes of all outputs."""
        return {name: path.read_bytes() for name, path in self.outputs.items()}

    def copied(self, root: str) -> "Expanded":
        """The same job with its inputs below another root."""
        place = self.cell.root.parent / root
        shutil.copytree(self.cell.root, place)
        shutil.rmtree(place / self.rule, ignore_errors=True)
        shutil.rmtree(place / "checkpoints" / self.rule, ignore_errors=True)
        cell = Cell(place, self.cell.params)
        return Expanded(cell, self.rule, self.tables, self.spec, self.training, self.keeps_checkpoints)

    def net(self) -> Net:
        params = self.cell.params
        return build_net(params["net"], params["depth"], params["width"], SHAPE, CLASSES)

    def reference(self) -> Reference:
        place, device = self.cell.outputs["checkpoints"], torch.device("cpu")
        return read_reference(place, self.net(), self.cell.params["seeds"], self.spec["reference"], device)

    def samples(self, split: str) -> tuple[Tensor, Tensor]:
        """All normalised samples that losses of the split are over."""
        base = read_splits(self.cell.splits)
        if split == "fresh":
            rows = read_splits(self.fresh).rows("fresh").slice(0, self.spec["splits"]["fresh"])
        else:
            rows = base.training_subset(self.cell.params["samples"]) if split == "train" else base.rows(split)
        return torch.from_numpy(base.normalised(rows)), torch.from_numpy(rows.y.copy())

    def training_data(self) -> TrainingData:
        return TrainingData(*self.samples("train"), *self.samples("validation"))

    def refused(self, body: Callable[[Job], None], monkeypatch: pytest.MonkeyPatch, capsys: Any) -> str:
        """The one line that the stage ends with; nothing may be left of the stage."""
        capsys.readouterr()  # what came before
        monkeypatch.setattr(sys, "argv", [self.rule, *self.arguments()])
        with pytest.raises(SystemExit) as ended:
            run_stage(self.rule, body)
        assert ended.value.code == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        assert captured.err.startswith("error: ")
        assert not [path for path in self.cell.root.rglob("*") if path.is_file() and self.rule in path.as_posix()]
        return str(captured.err)


def write_fresh(one: Expanded, count: int) -> None:
    """Further samples of the planted law, normalised as the base."""
    base = read_splits(one.cell.splits)
    provenance = Provenance("c0de", "c0f1", {}, (0,), "bytes", 1, "cpu", {})
    spec = {"shape": list(base.shape), "classes": CLASSES}
    one.fresh.parent.mkdir(parents=True)
    write_splits(one.fresh, {"fresh": planted_rows(count, 77)}, spec, provenance, base.moments)


def mean_losses(net: Net, leaves: Leaves, x: Tensor, y: Tensor) -> np.ndarray:
    """Mean cross-entropy of each member, in one pass over all samples."""
    members = len(next(iter(leaves.values())))
    with torch.no_grad():
        logits = forward(net, leaves, x.expand(members, *[-1] * x.dim())).double()
    return np.array([float(functional.cross_entropy(one, y)) for one in logits])
