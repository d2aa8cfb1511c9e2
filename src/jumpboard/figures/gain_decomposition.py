"""Figure `gain_decomposition`: what the gain of an expanded and trained net is made of.

    L_test(old) - L_test(new) = Delta_R^test + Delta_ERM - tau

representational gain of the jumpboard on held-out samples, optimisation gain of training from there, and generalisation
transfer, the growth of the gap between test and training loss. Paper `depth`, expansion training.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from jumpboard.artefacts.tables import Schema
from jumpboard.figures.cells import limits_of, mean_columns
from jumpboard.figures.expanded import (
    BLUE,
    COUNTS,
    KIND,
    ORANGE,
    SKY,
    bar_handles,
    depth_places,
    nothing_expanded,
    seeds_of,
    span,
)
from jumpboard.figures.measured import STATISTIC, mark_missing, rows_of_net
from jumpboard.figures.panels import Handle, headline, legend_below, panel_figure
from jumpboard.figures.style import GREY, Colour, styled
from jumpboard.schemas.keys import CELL

Row = Mapping[str, Any]

BLACK = (0.0, 0.0, 0.0, 1.0)
PARTS: dict[str, tuple[str, Colour]] = {
    "delta_r_test": ("jumpboard: Δ_R on test samples", SKY),
    "delta_erm": ("training: Δ_ERM", BLUE),
    "minus_transfer": ("less growth of the gap: -τ", ORANGE),
    "gain": ("sum: gain in test loss", BLACK),
}
WIDTH = 0.2

SCHEMA = Schema(
    "gain_decomposition",
    1,
    (*CELL, STATISTIC, *limits_of("value", "nats", "part of the gain, mean over sites"), *COUNTS),
)
CAPTION = (
    "Gain in test loss of nets with a new block that began at its jumpboard, all parameters trained, and its three "
    "parts: by depth, one panel per width, at the largest number of training samples. Each run is averaged over its "
    "sites. Bars: mean over seeds; whiskers: two-sided 90 % t intervals. Black: the sum of the three bars before it. "
    "Title: mean over nets."
)


def plotted(rows: Sequence[Row], dataset: str, arch: str) -> list[dict[str, Any]]:
    """Rows of `expansion` -> rows of `SCHEMA`."""
    listed = rows_of_net("expansion", rows, dataset, arch)
    own = [row for row in listed if (row["arm"], row["jumpboard"]) == ("jumpboard_all", KIND)]
    table = []
    for (depth, width), seeds in seeds_of(own).items():
        cell = {"dataset": dataset, "arch": arch, "depth": depth, "width": width, "samples": own[0]["samples"]}
        for part in PARTS:
            column, sign = ("transfer", -1) if part == "minus_transfer" else (part, 1)
            runs = [[sign * row[column] for row in sites] for sites in seeds.values() if sites]
            values = [float(np.mean(run)) for run in runs if np.isfinite(run).all()]
            missing = {"missing": len(seeds) - len(values)}
            table.append(cell | {"statistic": part} | mean_columns("value", values) | missing)
    return table


def draw(rows: Sequence[Row]) -> Figure:
    """Rows of `SCHEMA` -> the picture."""
    if not rows:
        return nothing_expanded("Parts of the gain of expansions")
    depths, widths = (sorted({row[key] for row in rows}) for key in ("depth", "width"))
    with styled():
        figure, panels = panel_figure(len(widths), 2.1, "depth, blocks", "gain in test loss, nats")
        headline(figure, _headline(rows), rows[0])
        for axes, width in zip(panels, widths, strict=True):
            here = [row for row in rows if row["width"] == width]
            axes.set_title(f"width {width}", loc="left")
            axes.grid(axis="y")
            for place, (part, (_, colour)) in enumerate(PARTS.items()):
                offset = (place - 1.5) * WIDTH
                for row in (row for row in here if row["statistic"] == part and row["n"]):
                    _part(axes, row, depths.index(row["depth"]) + offset, colour)
            mark_missing(axes, [(depths.index(row["depth"]), GREY) for row in here if _lost(row)])
            axes.axhline(0, color=GREY, lw=0.6)
            depth_places(axes, depths)
        low, high = span(rows, "value")
        panels[0].set_ylim(low - 0.05 * (high - low), high + 0.08 * (high - low))
        legend_below(figure, _legend(rows))
    return figure


def _part(axes: Axes, row: Row, x: float, colour: Colour) -> None:
    axes.bar(x, row["value"], WIDTH * 0.92, color=colour, lw=0, zorder=2)
    if row["low"] is not None:
        ink = "0.55" if row["statistic"] == "gain" else "black"
        axes.plot([x, x], [row["low"], row["high"]], color=ink, lw=0.8, zorder=3, solid_capstyle="butt")


def _lost(row: Row) -> bool:
    return bool(row["statistic"] == "gain" and row["missing"])


def _headline(rows: Sequence[Row]) -> str:
    means = {}
    for part in PARTS:
        values = [row["value"] for row in rows if row["statistic"] == part and row["n"]]
        means[part] = f"{np.mean(values):+.3f}".replace("-", "\u2212") if values else "unknown"
    told = f"jumpboard {means['delta_r_test']}, training {means['delta_erm']}, generalisation {means['minus_transfer']}"
    return f"Mean gain of an expansion {means['gain']} nats: {told}"


def _legend(rows: Sequence[Row]) -> list[Handle]:
    bars: list[Handle] = [Patch(color=colour, lw=0, label=name) for name, colour in PARTS.values()]
    return [*bars, *bar_handles(rows)]
