"""A chain: one net expanded again and again at one site, each new block begun at its jumpboard and trained alone.

    f_0 = the reference        f_(k+1) = f~ with its new block trained, or f~ where that is worse on training samples

with f~ the jumpboard of f_k, whose direction and step come from training samples (see `jumpboard`); its step is 0 where
no other is better. So the training loss never rises along the chain, whatever training does. Paper `depth`, Condition 2
and Appendix M; the protocol is derived.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jumpboard.expansion.arms import Arms
from jumpboard.expansion.capped import cut_steps
from jumpboard.expansion.gains import sample_losses
from jumpboard.expansion.insertion import block_entries, insert_at, insertions
from jumpboard.expansion.jumpboard import directions, geometric_steps, jumpboard
from jumpboard.expansion.outcomes import outcome
from jumpboard.nets.base import Leaves, Net
from jumpboard.training.engine import TrainingData
from jumpboard.training.recipe import Recipe


@dataclass(frozen=True)
class Link:
    """G members after some insertions; of each the status and branch of its last block, and all steps since the
    reference, those of discarded trainings too."""

    net: Net
    leaves: Mapping[str, Tensor]
    status: Sequence[str]
    branch: Sequence[str]
    steps: Sequence[int]

    @classmethod
    def reference(cls, net: Net, leaves: Mapping[str, Tensor], members: int) -> "Link":
        """The beginning of a chain."""
        return cls(net, leaves, ["trained"] * members, ["none"] * members, [0] * members)


def extended(
    link: Link,
    site: int,
    seeds: Sequence[int],
    grid: Mapping[str, Any],
    rows: int,
    data: TrainingData,
    recipe: Recipe,
    arms: Arms,
) -> Link:
    """The chain with one more block at `site`, begun at its jumpboard, trained alone, and selected.

    The direction comes from the first `rows` training samples; the step, 0 or one of the `grid` (lowest, highest,
    count), from all. The arm is named `k_<k>`.
    """
    expanded, more = insert_at(link.net, link.leaves, [site] * len(seeds), seeds, recipe.caps)
    w1 = more[f"{expanded.name}.w1"]
    found = directions(link.net, link.leaves, {site: w1}, data.x[:rows], data.y[:rows])[site]
    steps = torch.cat([torch.zeros_like(found.scale)[None], geometric_steps(found.scale, **grid)])
    steps = cut_steps(steps, found.unit, w1, recipe.caps)
    board = jumpboard(expanded, more, found.unit, steps, data.x, data.y)
    free, name = block_entries(expanded), f"k_{insertions(expanded)}"
    training = arms.train(name, expanded, data, recipe, seeds, start=board.leaves, free=free)
    trained = training.layout.leaves(training.state.flat)
    loss = sample_losses(expanded, trained, data.x, data.y).mean(axis=1)
    better = loss <= np.nanmin(board.losses, axis=0)  # not so for a loss that is no number
    outcomes = [outcome(training, member) for member in range(len(seeds))]
    return Link(
        expanded,
        chosen(better, trained, board.leaves),
        [one["status"] for one in outcomes],
        ["trained" if one else "jumpboard" for one in better],
        [before + one["steps"] for before, one in zip(link.steps, outcomes, strict=True)],
    )


def chosen(which: np.ndarray, yes: Leaves, no: Leaves) -> dict[str, Tensor]:
    """Leaves [G, ...] of which each member is from `yes` where `which` [G] holds, else from `no`."""
    marks = torch.from_numpy(which)
    return {
        name: torch.where(marks.to(leaf.device).view(-1, *[1] * (leaf.dim() - 1)), leaf, no[name])
        for name, leaf in yes.items()
    }
