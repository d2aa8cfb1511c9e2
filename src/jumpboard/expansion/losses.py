"""What nets attain on every split: mean losses over all its samples, as the tables of expansions name them."""

from collections.abc import Mapping
from typing import Any

from jumpboard.data.samples import Tensors
from jumpboard.expansion.gains import sample_losses
from jumpboard.nets.base import Leaves, Net

SPLITS = ("train", "validation", "test", "fresh")
Losses = Mapping[str, float]


def mean_losses(net: Net, leaves: Leaves, data: Mapping[str, Tensors]) -> list[Losses]:
    """Of each member the mean cross-entropy in nats over each split's x [n, *input_shape], y [n], float64."""
    means = {split: sample_losses(net, leaves, *part).mean(axis=1) for split, part in data.items()}
    members = len(next(iter(leaves.values())))
    return [{split: float(mean[g]) for split, mean in means.items()} for g in range(members)]


def loss_columns(prefix: str, losses: Losses) -> dict[str, Any]:
    """The columns `schemas.expanded.losses` of one member; null for a split that there is not."""
    return {f"{prefix}_{split}_loss": losses.get(split) for split in SPLITS}
