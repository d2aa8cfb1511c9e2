"""What tests of training and of its files share: one thread, and one small cell as the DAG would train it."""

import json
import os

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported; processes that tests start inherit it
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"  # threads of tests side by side must not wait by spinning

import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jumpboard.artefacts import paths
from jumpboard.artefacts.provenance import Provenance
from jumpboard.data.rows import Rows
from jumpboard.data.splits import write_splits

SHAPE, CLASSES = (1, 6, 6), 3
SIZES = {"train": 240, "validation": 60, "test": 60}
TRAININGS: dict[str, dict[str, Any]] = {
    "resmlp": {
        "optimiser": {"name": "adamw", "lr": 0.01, "weight_decay": 0.05},
        "schedule": {"name": "cosine", "warmup": 2},
        "batch": 32,
    },
    "resnet": {
        "optimiser": {"name": "sgd", "lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.001},
        "schedule": {"name": "linear"},
        "batch": 32,
        "clip": 1.0,
        "augmentation": {"crop": 1, "flip": True},
        "channels_last": True,
    },
}
RUN = {"steps": 12, "evaluate_every": 4, "state_every": 5, "checkpoints": {"steps": [6], "losses": [1.0, 0.9]}}
NETS = {"resmlp": ({"family": "resmlp"}, 2, 8), "resnet": ({"family": "resnet"}, 3, 2)}


@dataclass(frozen=True)
class Cell:
    """A cell of the stage `train_baseline` below its own root."""

    root: Path
    params: Mapping[str, Any]

    @property
    def splits(self) -> Path:
        return self.root / paths.filled(paths.dataset_table("prepare_dataset", "splits"), self.params)

    @property
    def outputs(self) -> dict[str, Path]:
        patterns = {name: paths.cell_table("train_baseline", name) for name in ("curves", "metrics")}
        patterns["checkpoints"] = paths.cell_checkpoints("train_baseline")
        return {name: self.root / paths.filled(pattern, self.params) for name, pattern in patterns.items()}

    @property
    def store(self) -> Path:
        """Folder of the saved states."""
        return self.root / paths.RESUME / "train_baseline" / paths.filled(paths.CELL, self.params)

    def arguments(self, threads: int = 1) -> list[str]:
        """The stage's command line."""
        places = [f"{name}={path}" for name, path in self.outputs.items()]
        options = {"--root": str(self.root), "--params": json.dumps(self.params), "--code": "c0de"}
        pairs = [text for option in options.items() for text in option]
        return [*pairs, "--threads", str(threads), "--inputs", f"splits={self.splits}", "--outputs", *places]

    def start(self, threads: int = 1) -> subprocess.Popen[str]:
        """The stage as a process, its messages in a pipe."""
        command = [sys.executable, "-m", "jumpboard.stages.train_baseline", *self.arguments(threads)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def contents(self) -> dict[str, bytes]:
        """The bytes of all outputs."""
        return {name: path.read_bytes() for name, path in self.outputs.items()}

    def files(self) -> list[str]:
        """All files and folders without children below the root, but for the splits."""
        found = [
            path for path in self.root.rglob("*") if path != self.splits and not (path.is_dir() and any(path.iterdir()))
        ]
        return sorted(path.relative_to(self.root).as_posix() for path in found)


def planted_rows(count: int, seed: int) -> Rows:
    """Gaussian samples around one template per class, as a few steps can learn."""
    templates = np.random.default_rng(0).standard_normal((CLASSES, *SHAPE))
    generator = np.random.default_rng([1, seed])
    y = generator.integers(0, CLASSES, count)
    return Rows((templates[y] + generator.standard_normal((count, *SHAPE))).astype(np.float32), y)


def write_planted(path: Path, seed: int = 0) -> None:
    """The splits file of the planted rows of a seed."""
    rows = {name: planted_rows(size, 10 * seed + part) for part, (name, size) in enumerate(SIZES.items())}
    provenance = Provenance("c0de", "c0f1", {}, (0,), "bytes", 1, "cpu", {})
    write_splits(path, rows, {"shape": list(SHAPE), "classes": CLASSES}, provenance)


@pytest.fixture(scope="session")
def splits_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("planted") / "planted.parquet"
    write_planted(path)
    return path


@pytest.fixture
def make_cell(tmp_path: Path, splits_file: Path) -> Callable[..., Cell]:
    """make_cell(family, root=..., training={...}, **params): a cell with its data in place."""
    return cells_below(tmp_path, splits_file)


def cells_below(folder: Path, splits_file: Path) -> Callable[..., Cell]:
    """The maker of cells whose roots lie in `folder`."""

    def make(family: str = "resmlp", root: str = "results", training: Mapping[str, Any] = {}, **changes: Any) -> Cell:
        spec, depth, width = NETS[family]
        params = {
            "dataset": "planted", "arch": family, "depth": depth, "width": width, "samples": 200, "seeds": [3, 1, 4],
            "net": spec, "training": TRAININGS[family] | RUN | training, "device": "cpu",
        }  # fmt: skip
        cell = Cell(folder / root, params | changes)
        cell.splits.parent.mkdir(parents=True)
        shutil.copy(splits_file, cell.splits)
        return cell

    return make
