"""Samples on the device, normalised, as training and measuring take them."""

import sys
from collections.abc import Mapping
from pathlib import Path

import torch

from jumpboard.data.splits import Splits, read_splits

Tensors = tuple[torch.Tensor, torch.Tensor]
Sizes = Mapping[str, int | None]


def _file_of(split: str) -> str:
    return "fresh" if split == "fresh" else "base"


def read_wanted(files: Mapping[str, Path], sizes: Sizes) -> dict[str, Splits]:
    """The splits in the files `base` and, where there is one, `fresh`: of each split in `sizes` the first rows (all
    where the size is None), and no others."""
    wanted: dict[str, dict[str, int]] = {name: {} for name in ("base", "fresh") if name in files}
    for split, size in sizes.items():
        wanted[_file_of(split)][split] = sys.maxsize if size is None else size
    return {name: read_splits(files[name], counts) for name, counts in wanted.items()}


def load_samples(splits: Mapping[str, Splits], sizes: Sizes, samples: int, device: torch.device) -> dict[str, Tensors]:
    """The first rows of each split in `sizes` (all where the size is None): x [n, *shape] float32, y [n] int64.

    `splits` holds the data set under `base`, and under `fresh` its fresh samples where they are asked for. Training
    rows are among the first `samples`, those that a cell's net is trained on. Raises InputError for a split that is not
    there.
    """
    loaded = {}
    for split, size in sizes.items():
        source = splits[_file_of(split)]
        count = samples if size is None else min(size, samples)
        rows = source.training_subset(count) if split == "train" else source.rows(split)
        rows = rows.slice(0, len(rows) if size is None else min(size, len(rows)))
        loaded[split] = (
            torch.from_numpy(splits["base"].normalised(rows)).to(device),
            torch.from_numpy(rows.y.copy()).to(device),
        )
    return loaded


def first(samples: Tensors, count: int) -> Tensors:
    """The first `count` samples."""
    x, y = samples
    return x[:count], y[:count]


def halves(samples: Tensors) -> tuple[Tensors, Tensors]:
    """The first half of the samples, and the rest."""
    x, y = samples
    half = len(y) // 2
    return (x[:half], y[:half]), (x[half:], y[half:])
