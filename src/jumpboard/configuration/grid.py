"""Cells of a grid: blocks of `product` and `zip` over depth, width and samples -> one cell per combination.

A block may hold both: the zipped tuples are combined with every product. `zip: {depth: [1, 2], width: [8, 16]}` with
`product: {samples: [4000, 40000]}` gives four cells. Blocks may repeat a cell if they say the same of it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

from jumpboard.errors import InputError

AXES = ("depth", "width", "samples")


@dataclass(frozen=True)
class Cell:
    """One cell: a net of one size on one number of samples, with its recipe's name and all its seeds."""

    dataset: str
    arch: str
    depth: int
    width: int
    samples: int
    training: str
    seeds: tuple[int, ...]

    @property
    def key(self) -> tuple[str, str, int, int, int]:
        return (self.dataset, self.arch, self.depth, self.width, self.samples)

    def as_json(self) -> dict[str, Any]:
        """The cell as a plain mapping."""
        return {**asdict(self), "seeds": list(self.seeds)}


def _combinations(place: str, block: Mapping[str, Any]) -> Iterable[dict[str, int]]:
    zipped, crossed = block.get("zip", {}), block.get("product", {})
    given = sorted([*zipped, *crossed])
    if given != sorted(AXES):
        raise InputError(f"{place}: zip and product together must give each of {', '.join(AXES)} once, not {given}")
    if len({len(values) for values in zipped.values()}) > 1:
        lengths = {name: len(values) for name, values in zipped.items()}
        raise InputError(f"{place}.zip: lists of different lengths {lengths}; they must be equal")
    tuples = list(zip(*zipped.values(), strict=True)) if zipped else [()]
    for together, alone in product(tuples, product(*crossed.values())):
        yield dict(zip([*zipped, *crossed], [*together, *alone], strict=True))


def cells(blocks: Iterable[Mapping[str, Any]]) -> tuple[Cell, ...]:
    """All cells of the grid, each once, in the order they are best run in: blocks as they stand in the config, and
    within a block the most expensive cell (depth x width^2) first.

    Raises InputError for axes given twice or not at all, zips of different lengths, and cells that two blocks describe
    differently.
    """
    found: dict[tuple[Any, ...], Cell] = {}
    for index, block in enumerate(blocks):
        place = f"grid[{index}]"
        for axes in sorted(_combinations(place, block), key=lambda one: -one["depth"] * one["width"] ** 2):
            cell = Cell(
                **axes,
                dataset=block["dataset"],
                arch=block["arch"],
                training=block["training"],
                seeds=tuple(block["seeds"]),
            )
            if found.setdefault(cell.key, cell) != cell:
                raise InputError(f"{place}: cell {cell.key} stands in another block with other seeds or training")
    return tuple(found.values())
