"""Which cells a rule has jobs for: all of the grid for training, the chosen ones for all that builds on it."""

from collections.abc import Mapping, Sequence
from typing import Any

from jumpboard.configuration.grid import AXES, Cell

SECTIONS = {  # rule -> the config's list of blocks that choose its cells
    "measure_gradients": "measurements",
    "expand_depth": "expansions",
    "expand_width": "widenings",
    "expand_chain": "chains",
    "certify": "certificates",
}
RULES = ("train_baseline", *SECTIONS)
FITS = "fits"  # the config's list of blocks that choose nets, not cells, for the rule fit_power_law


def covers(block: Mapping[str, Any], cell: Cell) -> bool:
    """The block is of the cell's data set and net, and its `only` admits the cell."""
    same = (block["dataset"], block["arch"]) == (cell.dataset, cell.arch)
    return same and all(getattr(cell, axis) in block.get("only", {}).get(axis, [getattr(cell, axis)]) for axis in AXES)


def block_of(rule: str, cell: Cell, config: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The block that tells a rule what to do with a cell: the first that covers it."""
    return next((block for block in config.get(SECTIONS[rule], ()) if covers(block, cell)), None)


def fit_of(dataset: str, arch: str, config: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The block that tells how a net's laws are fitted: the first that is of it."""
    return next((one for one in config.get(FITS, ()) if (one["dataset"], one["arch"]) == (dataset, arch)), None)


def cells_of(rule: str, grid: Sequence[Cell], config: Mapping[str, Any]) -> tuple[Cell, ...]:
    """The cells of the grid that `rule` runs on, in the grid's order."""
    return tuple(cell for cell in grid if rule not in SECTIONS or block_of(rule, cell, config) is not None)
