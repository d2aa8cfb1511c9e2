"""A fitted law and its residuals, one panel above the other: points, curve with its 90 % band, and what is left over.

Rows hold x, y, `fitted`, `low` and `high` (None without a band) and `residual` = log(y/fitted); rows at one x share
their fitted value.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import LogLocator, NullLocator

from jumpboard.figures.style import Colour

Row = Mapping[str, Any]


def draw_points(axes: Axes, rows: Sequence[Row], colour: Colour, marker: str = "o") -> None:
    """What was measured."""
    _dots(axes, [row["x"] for row in rows], [row["y"] for row in rows], colour, marker)


def draw_curve(axes: Axes, rows: Sequence[Row], colour: Colour, line: Any = "-") -> None:
    """The fitted curve through the different x, and its band."""
    curve = list({row["x"]: row for row in sorted(rows, key=lambda row: float(row["x"]))}.values())
    axes.plot([row["x"] for row in curve], [row["fitted"] for row in curve], color=colour, ls=line)
    banded = [row for row in curve if row["low"] is not None]
    low, high = ([row[limit] for row in banded] for limit in ("low", "high"))
    axes.fill_between([row["x"] for row in banded], low, high, color=colour, alpha=0.2, lw=0)


def draw_residuals(axes: Axes, rows: Sequence[Row], colour: Colour, marker: str = "o") -> None:
    """log(y/fitted) in per cent, which they are while small."""
    _dots(axes, [row["x"] for row in rows], [100 * row["residual"] for row in rows], colour, marker)


def _dots(axes: Axes, x: Sequence[float], y: Sequence[float], colour: Colour, marker: str) -> None:
    axes.plot(x, y, marker, color=colour, ms=2.5, alpha=0.6, mew=0)


def plain_log_axis(axis: Axis, values: Sequence[float]) -> None:
    """Plain numbers on a log axis, a tick at 1, 2 and 5 of each decade while these are few."""
    few = max(values) / min(values) < 1000
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: _short(value))


def _short(value: float) -> str:
    if value < 1000:
        return f"{value:g}"
    return f"{value / 1000:g}k" if value < 1e6 else f"{value / 1e6:g}M"


def finish(above: Axes, below: Axes, xlabel: str) -> None:
    """Scales, grids and names that both panels have."""
    for axes in (above, below):
        axes.grid(axis="y")
    above.set_yscale("log")
    plain_log_axis(above.yaxis, above.get_ylim())
    below.axhline(0, color="0.3", lw=0.6)
    below.set_xlabel(xlabel)
