"""Gains of arms minus that of the old net trained on as long, by depth and width: table and picture, for the figures of
deeper and of wider nets."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jumpboard.artefacts.tables import Schema
from jumpboard.figures.cells import limits_of, mean_columns
from jumpboard.figures.expanded import ARMS, COUNTS, KIND, bar_handles, depth_places, seeds_of, span
from jumpboard.figures.measured import mark_missing, rows_of_net
from jumpboard.figures.panels import Handle, headline, legend_below, panel_figure
from jumpboard.figures.style import SMALLEST_TEXT, marker, styled
from jumpboard.schemas.keys import ARM, CELL

Row = Mapping[str, Any]

BASE, FAR = "trained_on", "scratch"
APART = 0.14  # of the way from one depth to the next, between arms
LEGEND_LINE = 0.16  # inches


def difference_schema(name: str) -> Schema:
    """The schema of the plotted table."""
    meaning = "gain of the arm, mean over its sites, minus that of the old net trained on"
    return Schema(name, 1, (*CELL, ARM, *limits_of("difference", "nats", meaning), *COUNTS))


def differences(table: str, rows: Sequence[Row], dataset: str, arch: str) -> list[dict[str, Any]]:
    """Rows of `expansion` or `widening` -> rows of the plotted table."""
    listed = rows_of_net(table, rows, dataset, arch)
    own = [row for row in listed if row.get("jumpboard", "none") in ("none", KIND)]
    arms = [arm for arm in ARMS if any(row["arm"] == arm for row in own)]
    plotted = []
    for (depth, width), seeds in seeds_of(own).items():
        cell = {"dataset": dataset, "arch": arch, "depth": depth, "width": width, "samples": own[0]["samples"]}
        for arm in arms:
            if any(row["arm"] == arm for runs in seeds.values() for row in runs):
                found = (_mean_gain(run, arm) - _mean_gain(run, BASE) for run in seeds.values())
                values = [value for value in found if np.isfinite(value)]
                missing = {"missing": len(seeds) - len(values)}
                plotted.append(cell | {"arm": arm} | mean_columns("difference", values) | missing)
    return plotted


def _mean_gain(rows: Sequence[Row], arm: str) -> float:
    """NaN where the arm was not trained or diverged."""
    gains = [row["gain"] for row in rows if row["arm"] == arm]
    return float(np.mean(gains)) if gains else float("nan")


def draw_differences(rows: Sequence[Row], main: str, what: str) -> Figure:
    """Rows of the plotted table -> the picture; the title tells of arm `main`, which it calls `what`."""
    depths, widths = (sorted({row[key] for row in rows}) for key in ("depth", "width"))
    arms = [arm for arm in ARMS if any(row["arm"] == arm for row in rows)]
    shifts = {arm: (rank - (len(arms) - 1) / 2) * APART for rank, arm in enumerate(arms)}
    limits = _limits(rows)
    with styled():
        height = 2.1 if len(widths) > 1 else 2.1 + LEGEND_LINE * len(arms)  # a column's legend has a line for each arm
        figure, panels = panel_figure(
            len(widths), height, "depth of the old net, blocks", "gain over training on, nats"
        )
        headline(figure, _headline([row for row in rows if row["arm"] == main], what), rows[0])
        for axes, width in zip(panels, widths, strict=True):
            here = [row for row in rows if row["width"] == width]
            axes.set_title(f"width {width}", loc="left")
            axes.grid(axis="y")
            axes.axhline(0, color="black", lw=1.0)
            for rank, arm in enumerate(arms):
                _arm(axes, [row for row in here if row["arm"] == arm], depths, shifts[arm], marker(rank), limits)
            lost = [row for row in here if row["missing"]]
            mark_missing(axes, [(depths.index(row["depth"]), ARMS[row["arm"]].colour) for row in lost])
            depth_places(axes, depths)
        panels[0].set_ylim(*limits)
        for axes, width in zip(panels, widths, strict=True):
            for row in (row for row in rows if row["width"] == width and row["n"]):
                _beyond(axes, row, depths.index(row["depth"]) + shifts[row["arm"]])
        legend_below(figure, _legend(rows, arms))
    return figure


def _arm(
    axes: Axes, rows: Sequence[Row], depths: Sequence[int], shift: float, shape: str, limits: tuple[float, float]
) -> None:
    """Means and intervals of one arm; no interval of a mean beyond the panel, whose end alone would show."""
    low, high = limits
    drawn = sorted((row for row in rows if row["n"]), key=lambda row: int(row["depth"]))
    if not drawn:
        return
    arm = ARMS[drawn[0]["arm"]]
    places = [depths.index(row["depth"]) + shift for row in drawn]
    axes.plot(places, [row["difference"] for row in drawn], shape, ls=arm.line, lw=0.8, color=arm.colour)
    for x, row in zip(places, drawn, strict=True):
        if row["low"] is not None and low <= row["difference"] <= high:
            axes.plot([x, x], [row["low"], row["high"]], color=arm.colour, lw=1.6, alpha=0.5, solid_capstyle="butt")


def _limits(rows: Sequence[Row]) -> tuple[float, float]:
    """All arms but nets from scratch, which may be far off, and these as far as they leave the others apart."""
    low, high = span([row for row in rows if row["arm"] != FAR] or rows, "difference")
    far_low, far_high = span(rows, "difference")
    room = 0.6 * (high - low)
    low, high = max(far_low, low - room), min(far_high, high + room)
    return low - 0.15 * (high - low), high + 0.1 * (high - low)


def _beyond(axes: Axes, row: Row, x: float) -> None:
    """An arrow to the edge, with the value, for a mean outside the panel."""
    low, high = axes.get_ylim()
    below, colour = row["difference"] < low, ARMS[row["arm"]].colour
    if below or row["difference"] > high:
        edge, foot, side = (0.0, 0.12, "bottom") if below else (1.0, 0.88, "top")
        place = axes.get_xaxis_transform()
        arrow = {"arrowstyle": "->", "color": colour, "lw": 1.0, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", (x, edge), (x, foot), xycoords=place, textcoords=place, arrowprops=arrow)
        text = f"{row['difference']:.2f}".replace("-", "\u2212")
        height = foot + 0.02 if below else foot - 0.02
        axes.text(x, height, text, transform=place, color=colour, size=SMALLEST_TEXT, ha="center", va=side)


def _headline(rows: Sequence[Row], what: str) -> str:
    judged = [row for row in rows if row["low"] is not None]
    if not judged:
        return f"{what} against the old net trained on: no intervals"
    better, worse = sum(row["low"] > 0 for row in judged), sum(row["high"] < 0 for row in judged)
    return f"{what} beats training on in {better}, loses to it in {worse} of {len(judged)} nets"


def _legend(rows: Sequence[Row], arms: Sequence[str]) -> list[Handle]:
    base = Line2D([], [], color="black", lw=1.0, label="old net trained on")
    lines = [
        Line2D([], [], color=ARMS[arm].colour, marker=marker(rank), ls=ARMS[arm].line, lw=0.8, label=ARMS[arm].name)
        for rank, arm in enumerate(arms)
    ]
    return [base, *lines, *bar_handles(rows)]
