"""The search for jumpboards at all sites of trained nets, with its controls and the check of its slopes.

    kind        direction and step from                     gains on
    train       training samples                            those, test samples, the second half of the fresh samples
    population  the first half of the fresh samples         the same

Controls of the kind train take another direction through the same search: a random one, a random one orthogonal to the
steepest, and the steepest one of shuffled labels. The slope of each steepest direction is held against the finite
difference (L(-e) - L(e))/2e of the loss of its first 256 samples, both in float64. Paper `depth`, section on the
jumpboard; controls and check are derived.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from jumpboard.expansion.choice import STEEPEST, Choice, Place, Samples, StepGains, first, searched
from jumpboard.expansion.gains import sample_losses
from jumpboard.expansion.insertion import insert, site_groups
from jumpboard.expansion.jumpboard import Direction, directions, geometric_steps, random_directions
from jumpboard.expansion.steps import step_losses
from jumpboard.measure.moments import FloatArray
from jumpboard.nets.base import Leaves, Net
from jumpboard.streams import MEASUREMENT, generator

CHECKED = 256
SMALLEST = 1e-5
SHUFFLED, RANDOM, ORTHOGONAL = 2, 3, 4
Key = TypeVar("Key")


@dataclass(frozen=True)
class Check:
    """Slopes [G] of a steepest direction on a few samples, nats per unit of eta: from gradients, and from losses."""

    checked: Tensor
    measured: FloatArray


@dataclass(frozen=True)
class Found:
    """All that was found at one site: its steepest directions by kind, their checks, the choices along all directions,
    and the grids along the steepest ones."""

    place: Place
    checks: Mapping[str, Check]
    choices: Sequence[Choice]
    grids: Sequence[StepGains]

    def jumpboard(self, kind: str) -> Choice:
        """The choice along the steepest direction of a kind."""
        return next(one for one in self.choices if (one.kind, one.direction) == (kind, STEEPEST))


@dataclass(frozen=True)
class Grid:
    """`count` steps from lowest to highest, in units of RMS |z| / RMS |phi|."""

    lowest: float
    highest: float
    count: int


def search(net: Net, leaves: Leaves, seeds: Sequence[int], samples: Samples, grid: Grid) -> Iterator[Found]:
    """What is found at each site, in their order, for G members of a net, leaves [G, ...] and one seed each."""
    old = {split: sample_losses(net, leaves, *part) for split, part in samples.measured.items()}
    for group in site_groups(net):
        expanded, more = insert(net, leaves, group, seeds)
        layers = dict(zip(group, torch.split(more[f"{expanded.name}.w1"], len(seeds)), strict=True))
        slopes = _slopes(net, leaves, layers, seeds, samples)
        for index, site in enumerate(group):
            own = slice(index * len(seeds), (index + 1) * len(seeds))
            members = {name: leaf[own] for name, leaf in more.items()}
            known = {name: by_site[site] for name, by_site in slopes.items()}
            yield _at_site(Place(site, expanded, members, known, old, samples), seeds, grid)


def _slopes(
    net: Net, leaves: Leaves, layers: Mapping[int, Tensor], seeds: Sequence[int], samples: Samples
) -> dict[str, dict[int, Direction]]:
    """Steepest directions by site: of each kind and split, of shuffled labels, and of each kind's checked samples."""
    parts = {**samples.sought, **samples.measured}
    found = {name: directions(net, leaves, layers, *part) for name, part in parts.items()}
    x, y = samples.sought["train"]
    orders = np.stack([generator(seed, MEASUREMENT, 0, SHUFFLED).permutation(len(y)) for seed in seeds])
    found["shuffled"] = directions(net, leaves, layers, x, y[torch.from_numpy(orders).to(y.device)])
    for kind, part in samples.sought.items():
        x, y = first(part, CHECKED)
        found[_checked(kind)] = directions(net, _double(leaves), _double(layers), x.double(), y)
    return found


def _at_site(place: Place, seeds: Sequence[int], grid: Grid) -> Found:
    checks, choices, grids = {}, [], []
    for kind in place.samples.sought:
        steepest = place.known[kind]
        steps = geometric_steps(steepest.scale, grid.lowest, grid.highest, grid.count)
        units = {STEEPEST: steepest.unit} | (_controls(place, seeds) if kind == "train" else {})
        for name, unit in units.items():
            choice, along = searched(place, kind, name, unit, steps)
            choices.append(choice)
            grids += [along] if along else []
        checks[kind] = _check(place, kind)
    return Found(place, checks, choices, grids)


def _controls(place: Place, seeds: Sequence[int]) -> dict[str, Tensor]:
    def draws(stream: int) -> list[np.random.Generator]:
        return [generator(seed, MEASUREMENT, place.site, stream) for seed in seeds]

    return {
        "random": random_directions(place.known["train"], draws(RANDOM), orthogonal=False),
        "orthogonal": random_directions(place.known["train"], draws(ORTHOGONAL), orthogonal=True),
        "shuffled": place.known["shuffled"].unit,
    }


def _check(place: Place, kind: str) -> Check:
    unit, on_these = place.known[kind].unit, place.known[_checked(kind)]
    x, y = first(place.samples.sought[kind], CHECKED)
    eta = SMALLEST * on_these.scale
    ahead, behind = step_losses(place.net, _double(place.leaves), unit, torch.stack([eta, -eta]), x.double(), y).mean(
        axis=2
    )
    return Check(on_these.slope_along(unit), (behind - ahead) / (2 * eta.cpu().numpy()))


def _checked(kind: str) -> str:
    return f"checked samples of {kind}"


def _double(tensors: Mapping[Key, Tensor]) -> dict[Key, Tensor]:
    return {name: tensor.double() for name, tensor in tensors.items()}
