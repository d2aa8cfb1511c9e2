"""The search for jumpboards at all sites of trained nets, with its controls and the check of its slopes.

    kind        direction from           step from             gains on
    train       all training samples     the first of them     those, test samples, second half of the fresh samples
    population  first half of the fresh  the same half         the same

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

from jumpboard.data.samples import first
from jumpboard.expansion.capped import cut_steps
from jumpboard.expansion.choice import STEEPEST, Choice, Place, Samples, StepGains, searched
from jumpboard.expansion.gains import sample_losses
from jumpboard.expansion.insertion import insert_at
from jumpboard.expansion.jumpboard import Direction, directions, geometric_steps, random_directions
from jumpboard.expansion.steps import step_losses
from jumpboard.measure.moments import FloatArray
from jumpboard.nets.base import Leaves, Net
from jumpboard.streams import MEASUREMENT, generator
from jumpboard.training.recipe import Caps

CHECKED = 256
SMALLEST = 1e-5
SHUFFLED, RANDOM, ORTHOGONAL = 2, 3, 4
Key = TypeVar("Key")
BySite = Mapping[int, Direction]


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


def search(
    net: Net, leaves: Leaves, seeds: Sequence[int], samples: Samples, grid: Grid, caps: Caps | None = None
) -> Iterator[Found]:
    """What is found at each site, in their order, for G members of a net, leaves [G, ...] and one seed each; no step
    leaves the `caps`."""
    old = {split: sample_losses(net, leaves, *part) for split, part in samples.measured.items()}
    expanded = {site: insert_at(net, leaves, [site] * len(seeds), seeds, caps) for site in range(net.depth + 1)}
    layers = {site: more[f"{one.name}.w1"] for site, (one, more) in expanded.items()}
    slopes = Slopes.of(net, leaves, layers, seeds, samples)
    for site, (one, more) in expanded.items():
        steepest, local = _at(slopes.steepest, site), _at(slopes.local, site)
        place = Place(site, one, more, steepest, local, old, samples)
        yield _found(place, slopes.shuffled[site], _at(slopes.checked, site), seeds, grid, caps)


@dataclass(frozen=True)
class Slopes:
    """Directions of all sites, each from one pass: steepest by kind and of shuffled labels, those of the samples of
    each kind and split, and those of the checked samples of each kind, in float64."""

    steepest: Mapping[str, BySite]
    shuffled: BySite
    local: Mapping[str, BySite]
    checked: Mapping[str, BySite]

    @classmethod
    def of(
        cls, net: Net, leaves: Leaves, layers: Mapping[int, Tensor], seeds: Sequence[int], samples: Samples
    ) -> "Slopes":
        """Of G members, with W1 [G, 4N, N] of each site in `layers`."""
        local = {
            name: directions(net, leaves, layers, *part)
            for name, part in {**samples.sought, **samples.measured}.items()
        }
        steepest = {
            kind: local[kind]
            if len(part[1]) == len(samples.sought[kind][1])
            else directions(net, leaves, layers, *part)
            for kind, part in samples.origin.items()
        }
        x, y = samples.origin["train"]
        orders = np.stack([generator(seed, MEASUREMENT, 0, SHUFFLED).permutation(len(y)) for seed in seeds])
        shuffled = directions(net, leaves, layers, x, y[torch.from_numpy(orders).to(y.device)])
        checked = {}
        for kind, part in samples.sought.items():
            x, y = first(part, CHECKED)
            checked[kind] = directions(net, _double(leaves), _double(layers), x.double(), y)
        return cls(steepest, shuffled, local, checked)


def _at(directions_of: Mapping[str, BySite], site: int) -> dict[str, Direction]:
    return {name: by_site[site] for name, by_site in directions_of.items()}


def _found(
    place: Place,
    shuffled: Direction,
    checked: Mapping[str, Direction],
    seeds: Sequence[int],
    grid: Grid,
    caps: Caps | None,
) -> Found:
    checks, choices, grids = {}, [], []
    for kind, steepest in place.steepest.items():
        steps = geometric_steps(steepest.scale, grid.lowest, grid.highest, grid.count)
        units = {STEEPEST: steepest.unit} | (_controls(place, shuffled, seeds) if kind == "train" else {})
        for name, unit in units.items():
            within = cut_steps(steps, unit, place.leaves[f"{place.net.name}.w1"], caps)
            choice, along = searched(place, kind, name, unit, within)
            choices.append(choice)
            grids += [along] if along else []
        checks[kind] = _check(place, kind, checked[kind])
    return Found(place, checks, choices, grids)


def _controls(place: Place, shuffled: Direction, seeds: Sequence[int]) -> dict[str, Tensor]:
    def draws(stream: int) -> list[np.random.Generator]:
        return [generator(seed, MEASUREMENT, place.site, stream) for seed in seeds]

    return {
        "random": random_directions(place.steepest["train"], draws(RANDOM), orthogonal=False),
        "orthogonal": random_directions(place.steepest["train"], draws(ORTHOGONAL), orthogonal=True),
        "shuffled": shuffled.unit,
    }


def _check(place: Place, kind: str, on_these: Direction) -> Check:
    unit = place.steepest[kind].unit
    x, y = first(place.samples.sought[kind], CHECKED)
    eta = SMALLEST * on_these.scale
    ahead, behind = step_losses(place.net, _double(place.leaves), unit, torch.stack([eta, -eta]), x.double(), y).mean(
        axis=2
    )
    return Check(on_these.slope_along(unit), (behind - ahead) / (2 * eta.cpu().numpy()))


def _double(tensors: Mapping[Key, Tensor]) -> dict[Key, Tensor]:
    return {name: tensor.double() for name, tensor in tensors.items()}
