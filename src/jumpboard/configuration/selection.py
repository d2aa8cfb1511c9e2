"""Which cells a rule has jobs for: all of the grid for training, the chosen ones for measuring."""

from collections.abc import Mapping, Sequence
from typing import Any

from jumpboard.configuration.grid import AXES, Cell

RULES = ("train_baseline", "measure_gradients")


def measurement(cell: Cell, config: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The block under `measurements` that covers a cell: the first of its data set and net whose `only` admits it."""
    for block in config.get("measurements", ()):
        same = (block["dataset"], block["arch"]) == (cell.dataset, cell.arch)
        if same and all(getattr(cell, axis) in block.get("only", {}).get(axis, [getattr(cell, axis)]) for axis in AXES):
            return dict(block)
    return None


def cells_of(rule: str, grid: Sequence[Cell], config: Mapping[str, Any]) -> tuple[Cell, ...]:
    """The cells of the grid that `rule` runs on, in the grid's order."""
    if rule == "measure_gradients":
        return tuple(cell for cell in grid if measurement(cell, config) is not None)
    return tuple(grid)
