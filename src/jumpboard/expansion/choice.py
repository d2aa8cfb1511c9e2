"""One direction searched at one site: the step that the search picks, and what it gains on which samples.

The step is the best of a geometric grid on samples that the direction comes from, by their true labels, and no other
sample has a say. Gains of losses clipped at B = ln(classes) + 2 stand beside the plain ones, for limits that need
a range known beforehand. To first order eta gains eta <E[zeta_+ phi'], D>, with the mean over the samples that the gain
is measured on. Paper `depth`, section on the jumpboard.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from jumpboard.data.samples import Tensors, first, halves
from jumpboard.expansion.gains import Gain, loss_bound, paired_gain
from jumpboard.expansion.insertion import Inserted
from jumpboard.expansion.jumpboard import Direction, best_steps
from jumpboard.expansion.steps import step_losses
from jumpboard.measure.moments import FloatArray
from jumpboard.nets.base import Leaves

STEEPEST = "steepest"


@dataclass(frozen=True)
class Samples:
    """By kind, what directions come from (`origin`) and which part of that steps are chosen on (`sought`); by
    split, what gains are measured on."""

    origin: Mapping[str, Tensors]
    sought: Mapping[str, Tensors]
    measured: Mapping[str, Tensors]

    @classmethod
    def of(cls, data: Mapping[str, Tensors], sizes: Mapping[str, int]) -> "Samples":
        """Kind train: directions from all training samples, steps from the first `sizes` of them. Kind population,
        where `data` has fresh samples: both from their first half. Gains of both kinds: on the first `sizes` training
        and test samples, and on the second half of the fresh ones."""
        measured = {name: first(data[name], sizes[name]) for name in ("train", "test")}
        origin, sought = {"train": data["train"]}, {"train": measured["train"]}
        if "fresh" in data:
            origin["population"], measured["fresh"] = halves(data["fresh"])
            sought["population"] = origin["population"]
        return cls(origin, sought, measured)


@dataclass(frozen=True)
class Place:
    """One site of G members: their expanded net and its leaves; steepest directions there by kind, and those of the
    samples of each kind and split (`local`), which tell the slope along any direction on them; losses [G, n] of the old
    net on each split that is measured."""

    site: int
    net: Inserted
    leaves: Leaves
    steepest: Mapping[str, Direction]
    local: Mapping[str, Direction]
    old: Mapping[str, FloatArray]
    samples: Samples

    def losses(self, unit: Tensor, steps: Tensor, part: Tensors) -> FloatArray:
        """[steps, G, n] along unit [G, N, 4N + 1]."""
        return step_losses(self.net, self.leaves, unit, steps, *part)


@dataclass(frozen=True)
class Choice:
    """A searched direction of G members: `unit` [G, N, 4N + 1], its step `eta` [G], the slope along it [G]; by split
    the gain, that of clipped losses, and how many steps were examined on its samples."""

    kind: str
    direction: str
    unit: Tensor
    eta: Tensor
    slope: Tensor
    gains: Mapping[str, Gain]
    clipped: Mapping[str, Gain]
    examined: Mapping[str, int]


@dataclass(frozen=True)
class StepGains:
    """By split, the predicted gains [steps, G] of all steps of a grid along a steepest direction, and the realised
    ones."""

    kind: str
    steps: Tensor
    predicted: Mapping[str, Tensor]
    gains: Mapping[str, Sequence[Gain]]


def searched(place: Place, kind: str, direction: str, unit: Tensor, steps: Tensor) -> tuple[Choice, StepGains | None]:
    """The best of `steps` [steps, G] along `unit` on the samples of the kind; along a steepest direction all steps are
    measured on all splits, along others the chosen one."""
    tried = place.losses(unit, steps, place.samples.sought[kind])
    best = best_steps(tried.mean(axis=2))
    members = np.arange(len(best))
    eta = steps.gather(0, torch.from_numpy(best)[None].to(steps.device))[0]
    after, grid = {}, {}
    for split, part in place.samples.measured.items():
        if direction == STEEPEST:
            grid[split] = tried if split == kind else place.losses(unit, steps, part)
            after[split] = grid[split][best, members]
        else:
            after[split] = tried[best, members] if split == kind else place.losses(unit, eta[None], part)[0]
    bound = loss_bound(place.net.classes)
    choice = Choice(
        kind,
        direction,
        unit,
        eta,
        place.local[kind].slope_along(unit),
        {split: paired_gain(place.old[split], one) for split, one in after.items()},
        {
            split: paired_gain(np.minimum(place.old[split], bound), np.minimum(one, bound))
            for split, one in after.items()
        },
        {split: len(steps) if split == kind else 1 for split in after},
    )
    if direction != STEEPEST:
        return choice, None
    predicted = {split: steps * place.local[split].slope_along(unit) for split in grid}
    gains = {split: [paired_gain(place.old[split], one) for one in losses] for split, losses in grid.items()}
    return choice, StepGains(kind, steps, predicted, gains)
