"""Figure `generalisation_gap`: test loss minus training loss at the end of training, against the number of samples.

One panel per width, one line per depth: how much of the gap do more data close, and do deeper nets need more of them?
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jumpboard.artefacts.tables import Schema
from jumpboard.figures.cells import COUNTS, final_rows, limits_of, seed_means
from jumpboard.figures.panels import (
    Handle,
    handles_of,
    headline,
    legend_below,
    log_axis,
    mark_diverged,
    panel_figure,
    sized,
)
from jumpboard.figures.style import GREY, depth_colour, marker, styled
from jumpboard.schemas.keys import CELL

Row = Mapping[str, Any]

SCHEMA = Schema(
    "generalisation_gap",
    1,
    (*CELL, *limits_of("generalisation_gap", "nats", "final test loss minus final training loss"), *COUNTS),
)
CAPTION = (
    "Final test loss minus final training loss against the number of training samples, one panel per width, one line "
    "per depth. Points: mean over seeds; bars: two-sided 90 % t intervals. Depths stand a little apart so that their "
    "bars can be told from one another. Title: the mean over all nets of one number of samples M."
)


def plotted(rows: Sequence[Row], dataset: str, arch: str) -> list[dict[str, Any]]:
    """Rows of `metrics` -> rows of `SCHEMA`."""
    return seed_means(final_rows(rows, dataset, arch), "generalisation_gap")


def draw(rows: Sequence[Row]) -> Figure:
    """Rows of `SCHEMA` -> the picture."""
    depths, widths, sizes = (sorted({row[key] for row in rows}) for key in ("depth", "width", "samples"))
    shifts = dict(zip(depths, _shifts(sizes, len(depths)), strict=True))
    with styled():
        across = len(widths) if len(sizes) <= 2 and len(widths) <= 5 else None
        figure, panels = panel_figure(len(widths), 2.3, "training samples", "test minus training loss, nats", across)
        headline(figure, _headline(rows, sizes), rows[0])
        for axes, width in zip(panels, widths, strict=True):
            axes.set_title(f"width {width}", loc="left")
            axes.axhline(0, color=GREY, lw=0.6)
            axes.grid(axis="y")
            for rank, depth in enumerate(depths):
                line = [row for row in rows if (row["width"], row["depth"]) == (width, depth)]
                _line(axes, sorted(line, key=lambda row: int(row["samples"])), rank, shifts[depth])
        log_axis(panels[0], sizes, pad=max(shifts.values()) ** 1.8)
        legend_below(figure, _legend(rows, depths))
    return figure


def _shifts(sizes: Sequence[int], depths: int) -> list[float]:
    """Factors on the number of samples: the points of one size take up a quarter of the way to the next."""
    nearest = min((after / before for before, after in pairwise(sizes)), default=4.0)
    return [nearest ** ((rank - (depths - 1) / 2) / max(depths - 1, 1) / 4) for rank in range(depths)]


def _headline(rows: Sequence[Row], sizes: Sequence[int]) -> str:
    told = []
    for size in sorted({sizes[0], sizes[-1]}):
        gaps = [row["generalisation_gap"] for row in rows if row["samples"] == size and row["n"]]
        amount = f"{sum(gaps) / len(gaps):.2f} nats" if gaps else "unknown"
        told.append(f"{amount} at {sized(size)}")
    return f"Mean gap of test to training loss: {', '.join(told)}"


def _line(axes: Axes, rows: Sequence[Row], rank: int, shift: float) -> None:
    drawn = [row for row in rows if row["n"]]
    for row in rows:
        colour = depth_colour(row["depth"])
        if row["diverged"]:
            mark_diverged(axes, row["samples"] * shift, rank, colour)
        if row["low"] is not None:
            axes.plot([row["samples"] * shift] * 2, [row["low"], row["high"]], color=colour, lw=1.8, alpha=0.5)
    if drawn:
        x, y = [row["samples"] * shift for row in drawn], [row["generalisation_gap"] for row in drawn]
        axes.plot(x, y, marker(rank), ls="-", lw=0.9, color=depth_colour(drawn[0]["depth"]))


def _legend(rows: Sequence[Row], depths: Sequence[int]) -> list[Handle]:
    lines = [
        Line2D([], [], color=depth_colour(depth), marker=marker(rank), lw=0.9, label=f"depth {depth}")
        for rank, depth in enumerate(depths)
    ]
    return [*lines, *handles_of(rows, marker="o")]
