"""Samples on the device, normalised, as training and measuring take them."""

from collections.abc import Mapping

import torch

from jumpboard.data.splits import Splits

Tensors = tuple[torch.Tensor, torch.Tensor]


def load_samples(
    splits: Mapping[str, Splits], sizes: Mapping[str, int | None], samples: int, device: torch.device
) -> dict[str, Tensors]:
    """The first rows of each split in `sizes` (all where the size is None): x [n, *shape] float32, y [n] int64.

    `splits` holds the data set under `base`, and under `fresh` its fresh samples where they are asked for. Training
    rows are the first `samples`, those that a cell's net is trained on. Raises InputError for a split that is not
    there.
    """
    loaded = {}
    for split, size in sizes.items():
        source = splits["fresh" if split == "fresh" else "base"]
        rows = source.training_subset(samples) if split == "train" else source.rows(split)
        rows = rows.slice(0, len(rows) if size is None else min(size, len(rows)))
        loaded[split] = (
            torch.from_numpy(splits["base"].normalised(rows)).to(device),
            torch.from_numpy(rows.y.copy()).to(device),
        )
    return loaded
