"""What the figures of expansions share: the runs of each cell, how arms are called and drawn, bars beside one another.

A seed of the net without rows at a cell, as one that never reached the checkpoint that is expanded, is missing there.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jumpboard.artefacts.tables import Column
from jumpboard.figures.measured import nothing_measured, seed_handles
from jumpboard.figures.panels import Handle
from jumpboard.figures.style import GREY, Colour

Row = Mapping[str, Any]

KIND = "train"  # jumpboards whose direction and step come from training samples
COUNTS = (
    Column("n", "int64", "1", "seeds that the mean is taken over"),
    Column("missing", "int64", "1", "seeds of the net without a value: not expanded here, or diverged"),
)


class Arm(NamedTuple):
    """How an arm is called and drawn in all figures."""

    name: str
    colour: Colour
    line: Any


def _rgb(red: int, green: int, blue: int) -> Colour:
    return red / 255, green / 255, blue / 255, 1.0


BLUE, SKY, VERMILION, ORANGE, GREEN = (
    _rgb(0, 114, 178),
    _rgb(86, 180, 233),
    _rgb(213, 94, 0),
    _rgb(230, 159, 0),
    _rgb(0, 158, 115),
)
DASHES, DOTS = (0, (3, 1.2)), (0, (1, 1.2))
ARMS = {
    "jumpboard_all": Arm("from jumpboard, all trained", BLUE, "-"),
    "zero_all": Arm("from zero, all trained", VERMILION, DASHES),
    "jumpboard_block": Arm("from jumpboard, block trained", SKY, "-"),
    "zero_block": Arm("from zero, block trained", ORANGE, DASHES),
    "widened": Arm("widened, all trained", GREEN, "-"),
    "scratch": Arm("new net from scratch", (0.45, 0.45, 0.45, 1.0), DOTS),
}


def seeds_of(rows: Iterable[Row]) -> dict[tuple[int, int], dict[int, list[Row]]]:
    """(depth, width) -> seed -> its rows, none for a seed that only other cells of the net have."""
    listed = list(rows)
    seeds = sorted({row["seed"] for row in listed})
    cells: dict[tuple[int, int], dict[int, list[Row]]] = defaultdict(lambda: {seed: [] for seed in seeds})
    for row in listed:
        cells[row["depth"], row["width"]][row["seed"]].append(row)
    return dict(sorted(cells.items()))


def nothing_expanded(what: str) -> Figure:
    """The figure of a net of which no expansion can be shown."""
    return nothing_measured(what, "no net was expanded")


def depth_places(axes: Axes, depths: Sequence[int]) -> None:
    """Depths side by side, at 0, 1, ..., with room for bars."""
    axes.set_xticks(range(len(depths)), [str(depth) for depth in depths])
    axes.set_xlim(-0.6, len(depths) - 0.4)
    axes.tick_params(axis="x", length=0)


def span(rows: Sequence[Row], name: str) -> tuple[float, float]:
    """The least and the greatest mean of a column with their intervals, and 0; intervals reach at most as far beyond
    the means as these spread. From -1 to 1 where there is nothing but 0."""
    means = [0.0, *(row[name] for row in rows if row["n"])]
    ends = [row[end] for row in rows for end in ("low", "high") if row[end] is not None]
    least, greatest = min(means), max(means)
    spread = greatest - least
    if not spread:
        return -1.0, 1.0
    return max(min([least, *ends]), least - spread), min(max([greatest, *ends]), greatest + spread)


def bar_handles(rows: Sequence[Row]) -> list[Handle]:
    """Legend entries for whiskers and crosses, those that the plotted rows have."""
    seeds = max(row["n"] for row in rows)
    whisker = Line2D([], [], color=GREY, marker="|", ls="", ms=7, label=f"90 % interval over {seeds} seeds")
    crosses = [handle for handle in seed_handles(rows) if "missing" in str(handle.get_label())]
    return [*([whisker] if any(row["low"] is not None for row in rows) else []), *crosses]
