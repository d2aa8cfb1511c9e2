"""What nets attain on every split: mean losses over all its samples, as the tables of expansions name them."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from jumpboard.expansion.gains import sample_losses
from jumpboard.measure.moments import FloatArray
from jumpboard.nets.base import Leaves, Net

SPLITS = ("train", "validation", "test", "fresh")


def split_losses(net: Net, leaves: Leaves, data: Mapping[str, tuple[Tensor, Tensor]]) -> dict[str, FloatArray]:
    """Mean cross-entropy [G] in nats over each split's x [n, *input_shape], y [n], float64."""
    return {split: sample_losses(net, leaves, *part).mean(axis=1) for split, part in data.items()}


def loss_columns(prefix: str, losses: Mapping[str, FloatArray], member: int) -> dict[str, Any]:
    """The columns `schemas.expanded.losses` of one member; null for a split that there is not."""
    return {f"{prefix}_{split}_loss": float(losses[split][member]) if split in losses else None for split in SPLITS}
