"""Which rows a cell's table must have: its keys after those of the cell, from the run's config.

Measured checkpoints and expanded references are those that a seed has reached (`members.kept`). Heat maps have the
upper triangle of as many units as `covariance` has there.
"""

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from itertools import product
from typing import Any

from jumpboard.audit.members import BEGUN_AT_JUMPBOARDS, Pairs, kept
from jumpboard.audit.run import Run
from jumpboard.configuration.grid import Cell
from jumpboard.configuration.plan import COLLECTED
from jumpboard.configuration.selection import SECTIONS, block_of

Keys = tuple[Any, ...]
LACKING, EXTRA = "lacks {} rows that the config asks for", "has {} rows that the config does not ask for"
DIRECTIONS = ("steepest", "random", "orthogonal", "shuffled")
EXPANDED = (*BEGUN_AT_JUMPBOARDS, "zero_all", "zero_block")
RUNGS = (("route_a", "population"), ("route_b", "train"), ("bernstein", "train"), ("hoeffding", "train"))
WIDENED = ("widened", "trained_on", "scratch")


@dataclass(frozen=True)
class Asked:
    """A cell, its rule's block of the config, its recipe, and the (seed, checkpoint) that the rule works on."""

    cell: Cell
    block: Mapping[str, Any]
    recipe: Mapping[str, Any]
    pairs: Pairs
    units: Callable[[int, int], int]

    @property
    def sites(self) -> range:
        return range(self.cell.depth + 1)

    @property
    def seeds(self) -> list[int]:
        return sorted({seed for seed, _ in self.pairs})

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("train", "population") if "fresh" in self.block["splits"] else ("train",)

    def at(self, places: Iterable[float]) -> list[int]:
        """Sites at fractions of the depth."""
        return sorted({round(place * self.cell.depth) for place in places})


def metrics(one: Asked) -> Iterable[Keys]:
    return product(one.cell.seeds, ("best_validation", "final"))


def curves(one: Asked) -> Iterable[Keys]:
    last, every = one.recipe["steps"], one.recipe["evaluate_every"]
    steps = {*range(0, last + 1, every), last}
    return (key for key in product(one.cell.seeds, ("train", "validation"), steps) if key[1:] != ("train", 0))


def measured(one: Asked) -> Iterable[Keys]:
    return ((*pair, site, split) for pair, site, split in product(one.pairs, one.sites, one.block["splits"]))


def correlations(one: Asked) -> Iterable[Keys]:
    if "test" in one.block["splits"]:
        for (seed, checkpoint), site in product(one.pairs, one.at(one.block["heat_maps"])):
            if checkpoint == "final":
                units = one.units(seed, site)
                yield from ((seed, checkpoint, site, "test", i, j) for i in range(units) for j in range(i, units))


def jumpboard(one: Asked) -> Iterable[Keys]:
    for kind in one.kinds:
        directions = DIRECTIONS if kind == "train" else DIRECTIONS[:1]
        yield from product(one.seeds, one.sites, (kind,), directions, _measured_splits(one))


def step_gains(one: Asked) -> Iterable[Keys]:
    return product(one.seeds, one.sites, one.kinds, range(one.block["steps"]["count"]), _measured_splits(one))


def expansion(one: Asked) -> Iterable[Keys]:
    yield from product(one.seeds, one.sites, EXPANDED, one.kinds)
    yield from product(one.seeds, (-1,), ("trained_on",), ("none",))
    yield from product(one.seeds, one.at(one.block["scratch"]), ("scratch",), ("none",))


def widening(one: Asked) -> Iterable[Keys]:
    return product(one.seeds, WIDENED)


def chain(one: Asked) -> Iterable[Keys]:
    return product(one.seeds, range(one.block["length"] + 1))


def routes(one: Asked) -> Iterable[Keys]:
    bounds = (("population", "A"), ("train", "B"))
    places = product(one.seeds, one.sites, BEGUN_AT_JUMPBOARDS, bounds, one.block["losses"])
    return ((seed, site, arm, *bound, loss) for seed, site, arm, bound, loss in places)


def ladder(one: Asked) -> Iterable[Keys]:
    rungs = [(arm, *rung) for arm, rung in product(BEGUN_AT_JUMPBOARDS, RUNGS)]
    rungs.append(("jumpboard", "step_grid", "train"))
    places = product(one.seeds, one.sites, rungs, one.block["losses"])
    return ((seed, site, arm, rung, loss, kind) for seed, site, (arm, rung, kind), loss in places)


def _measured_splits(one: Asked) -> list[str]:
    return [split for split in one.block["splits"] if split in ("train", "test", "fresh")]


EXPECTED: dict[str, Callable[[Asked], Iterable[Keys]]] = {
    "metrics": metrics,
    "curves": curves,
    "signal": measured,
    "moments": measured,
    "covariance": measured,
    "correlations": correlations,
    "jumpboard": jumpboard,
    "step_gains": step_gains,
    "expansion": expansion,
    "widening": widening,
    "chain": chain,
    "routes": routes,
    "ladder": ladder,
}


def told(rule: str, cell: Cell, config: Mapping[str, Any]) -> dict[str, Any]:
    """What the config says is done to a cell; certificates are about what the expansion in depth is told to do."""
    rules = ("expand_depth", rule) if rule == "certify" else (rule,)
    blocks = [block_of(one, cell, config) or {} for one in rules if one in SECTIONS]
    return {name: value for block in blocks for name, value in block.items()}


def row_fault(run: Run, table: str, cell: Cell, found: set[Keys], units: Callable[[int, int], int]) -> str:
    """The first row that a cell's table lacks or should not have; empty where it is complete.

    `found` holds the keys after those of the cell, seed first. Of a table without an entry in `EXPECTED` the seeds are
    checked. A checkpoint that a seed may not have reached must be there or not as a whole.
    """
    rule = COLLECTED[table]
    block = told(rule, cell, run.configuration.config)
    named = block.get("checkpoints") or [block.get("reference")]
    certain, possible = (
        {pair for pair in pairs if pair[1] in named or rule not in SECTIONS} for pairs in kept(run, cell)
    )
    if "checkpoints" in block:
        pairs = certain | {pair for pair in {key[:2] for key in found} if pair in possible}
    else:
        pairs = certain | {pair for pair in possible if pair[0] in {key[0] for key in found}}
    if table not in EXPECTED:
        seeds = {(seed,) for seed, _ in pairs}
        return keys_fault(seeds, seeds & {key[:1] for key in found})
    recipe = run.configuration.config["trainings"][cell.training]
    return keys_fault(set(EXPECTED[table](Asked(cell, block, recipe, pairs, units))), found)


def keys_fault(wanted: Set[Keys], found: Set[Keys]) -> str:
    """The first row that a table lacks or should not have; empty where it has those that are wanted."""
    for rows, what in ((wanted - found, LACKING), (found - wanted, EXTRA)):
        if rows:
            return f"{what.format(len(rows))}, first {'/'.join(map(str, min(rows, key=str)))}"
    return ""
