"""Figure `extrapolation`: the power law of the smaller nets, drawn on to the largest, which it has not seen.

Does a law fitted to small nets say what large ones attain? Paper `depth`, Appendix M.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.figures.fit_panels import plain_log_axis
from jumpboard.figures.fitted_nets import POINTS, by_width, colour_of, nothing_fitted, rows_of_fits
from jumpboard.figures.panels import Handle, headline, legend_below, sized
from jumpboard.figures.style import COLUMN, GREY, PAGE, Colour, marker, new_figure, styled
from jumpboard.schemas.fits import VARIABLE
from jumpboard.schemas.keys import CELL, SEED

Row = Mapping[str, Any]

SHOWN = {"depth": "depth, blocks", "parameters": "trained parameters"}

SCHEMA = Schema(
    "extrapolation",
    1,
    (
        *CELL,
        SEED,
        VARIABLE,
        *POINTS,
        Column("held_out", "bool", "1", "one of the largest nets, which the law has not seen"),
        Column("predicted", "float64", "nats", "test loss by the law of the smaller nets"),
    ),
)
CAPTION = (
    "Final test loss at the largest number of training samples against depth, one law per width, and against the "
    "number of trained parameters, one law for all. Lines: power laws E + A x^-alpha fitted to the filled points "
    "alone. Hollow points: the largest nets, held out; the dotted part of a line is what the smaller ones predict for "
    "them. Percentages: mean log of measured over predicted there. Laws with fewer than four different sizes to be "
    "fitted to are not shown."
)


def plotted(rows: Sequence[Row], dataset: str, arch: str) -> list[dict[str, Any]]:
    """Rows of `fitted` -> rows of `SCHEMA`."""
    names = [column.name for column in SCHEMA.columns]
    own = rows_of_fits("fitted", rows, dataset, arch)
    drawn = [row for row in own if row["variable"] in SHOWN and row["predicted"] is not None]
    return [{name: row["test_loss"] if name == "y" else row[name] for name in names} for row in drawn]


def draw(rows: Sequence[Row]) -> Figure:
    """Rows of `SCHEMA` -> the picture."""
    variables = [name for name in SHOWN if any(row["variable"] == name for row in rows)]
    if not variables:
        return nothing_fitted("Extrapolation to the largest nets")
    with styled():
        figure = new_figure(COLUMN if len(variables) == 1 else PAGE, 3.0)
        headline(figure, _headline(rows), rows[0])
        panels = figure.subplots(1, len(variables), sharey=True, squeeze=False)[0]
        for axes, variable in zip(panels, variables, strict=True):
            here = [row for row in rows if row["variable"] == variable]
            axes.set_title(f"in {variable}, {sized(here[0]['samples'])}", loc="left")
            laws = by_width(here) if variable == "depth" else {0: here}
            for rank, (width, own) in enumerate(laws.items()):
                _law(axes, own, colour_of(variable, width), marker(rank))
            axes.set_xlabel(SHOWN[variable])
            axes.grid(axis="y")
            axes.set_xscale("log", base=2 if variable == "depth" else 10)
            plain_log_axis(axes.xaxis, [row["x"] for row in here])
            if variable == "depth":
                axes.set_xticks(sorted({row["x"] for row in here}))
        panels[0].set_ylabel("test loss, nats")
        legend_below(figure, _legend(rows))
    return figure


def _law(axes: Axes, rows: Sequence[Row], colour: Colour, symbol: str) -> None:
    for held in (False, True):
        own = [row for row in rows if row["held_out"] is held]
        face = "white" if held else colour
        axes.plot([row["x"] for row in own], [row["y"] for row in own], symbol, color=colour, mfc=face, ms=3, mew=0.7)
    curve = sorted({row["x"]: (row["x"], row["predicted"], row["held_out"]) for row in rows}.values())
    seen = [(x, y) for x, y, held in curve if not held]
    axes.plot(*zip(*seen, strict=True), color=colour)
    axes.plot(*zip(*seen[-1:], *[(x, y) for x, y, held in curve if held], strict=True), color=colour, ls=":")


def _misses(rows: Sequence[Row]) -> dict[tuple[str, int], float]:
    """(variable, width; 0 for all) -> mean log of measured over predicted, of the largest nets."""
    found: dict[tuple[str, int], list[float]] = {}
    for row in (row for row in rows if row["held_out"]):
        law = (row["variable"], row["width"] if row["variable"] == "depth" else 0)
        found.setdefault(law, []).append(float(np.log(row["y"] / row["predicted"])))
    return {law: float(np.mean(logs)) for law, logs in sorted(found.items())}


def _headline(rows: Sequence[Row]) -> str:
    told = []
    for variable in SHOWN:
        sizes = [abs(miss) for (name, _), miss in _misses(rows).items() if name == variable]
        if sizes:
            least, most = (f"{100 * size:.0f}" for size in (min(sizes), max(sizes)))
            told.append(f"by {least} %" if least == most else f"by {least} to {most} %")
            told[-1] += " in depth" if variable == "depth" else f" in {variable}"
    return f"Laws of smaller nets miss the largest {', '.join(told)}"


def _legend(rows: Sequence[Row]) -> list[Handle]:
    handles: list[Handle] = []
    widths = sorted({row["width"] for row in rows if row["variable"] == "depth"})
    for (variable, width), miss in _misses(rows).items():
        name = f"width {width}" if variable == "depth" else "all nets"
        symbol = marker(widths.index(width)) if variable == "depth" else marker(0)
        label = f"{name}: {100 * miss:+.1f} %".replace("-", "\u2212")
        handles.append(Line2D([], [], color=colour_of(variable, width), marker=symbol, label=label))
    return [*handles, Line2D([], [], color=GREY, marker="o", ls=":", mfc="white", label="held out, and predicted")]
