"""Figure `gain_by_site`: held-out gain of the jumpboard of every site, by relative site, beside that of its controls.

    gain = L_test(old net) - L_test(jumpboard)        direction and step from training samples

Where in a net does a new block help before any training, and does any direction do? Paper `depth`, jumpboard.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.figures.cells import limits_of, mean_columns
from jumpboard.figures.expanded import COUNTS, KIND, nothing_expanded, seeds_of, span
from jumpboard.figures.measured import rows_of_net, seed_handles
from jumpboard.figures.panels import Handle, headline, legend_below, panel_figure
from jumpboard.figures.style import GREY, marker, styled, width_colour
from jumpboard.schemas.keys import CELL, DIRECTION, SITE

Row = Mapping[str, Any]

STEEPEST = "steepest"
CONTROLS = {"random": "-", "orthogonal": (0, (3, 1.2)), "shuffled": (0, (1, 1.2))}

SCHEMA = Schema(
    "gain_by_site",
    1,
    (
        *CELL,
        SITE,
        DIRECTION,
        Column("relative_site", "float64", "1", "site / L"),
        *limits_of("gain", "nats", "held-out gain of the jumpboard"),
        *COUNTS,
    ),
)
CAPTION = (
    "Held-out gain of the jumpboard, the new block after one step along its steepest direction, by relative site: one "
    "panel per depth, one line per width, at the largest number of training samples. Direction and step come from "
    "training samples. Lines: mean over seeds; bands: two-sided 90 % t intervals. Grey: the same search along a "
    "random direction, a random one orthogonal to the steepest, and the steepest for shuffled labels, one line per "
    "width. Title: sites whose interval lies above 0, as one in twenty would without any gain."
)


def plotted(rows: Sequence[Row], dataset: str, arch: str) -> list[dict[str, Any]]:
    """Rows of `jumpboard` -> rows of `SCHEMA`."""
    own = [
        row
        for row in rows_of_net("jumpboard", rows, dataset, arch)
        if (row["jumpboard"], row["split"]) == (KIND, "test")
    ]
    table = []
    for (depth, width), seeds in seeds_of(own).items():
        points: dict[tuple[int, str], list[float]] = defaultdict(list)
        for row in (row for one in seeds.values() for row in one):
            points[row["site"], row["direction"]] += [row["gain"]] if np.isfinite(row["gain"]) else []
        cell = {"dataset": dataset, "arch": arch, "depth": depth, "width": width, "samples": own[0]["samples"]}
        for (site, direction), gains in sorted(points.items()):
            place = {"site": site, "direction": direction, "relative_site": site / depth}
            table.append(cell | place | mean_columns("gain", gains) | {"missing": len(seeds) - len(gains)})
    return table


def draw(rows: Sequence[Row]) -> Figure:
    """Rows of `SCHEMA` -> the picture."""
    if not rows:
        return nothing_expanded("Gain of jumpboards by site")
    depths, widths = (sorted({row[key] for row in rows}) for key in ("depth", "width"))
    with styled():
        figure, panels = panel_figure(len(depths), 2.0, "relative site", "held-out gain, nats")
        headline(figure, _headline(rows), rows[0])
        for axes, depth in zip(panels, depths, strict=True):
            axes.set_title(f"depth {depth}", loc="left")
            axes.axhline(0, color=GREY, lw=0.6)
            axes.grid(axis="y")
            here = [row for row in rows if row["depth"] == depth]
            for rank, width in enumerate(widths):
                for direction in (*CONTROLS, STEEPEST):
                    line = [row for row in here if (row["width"], row["direction"]) == (width, direction)]
                    _line(axes, sorted(line, key=lambda row: int(row["site"])), rank)
        low, high = span(rows, "gain")
        panels[0].set_ylim(low - 0.06 * (high - low), high + 0.06 * (high - low))
        panels[0].set_xlim(-0.05, 1.05)
        panels[0].xaxis.set_major_locator(FixedLocator([0, 0.5, 1]))
        panels[0].xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        legend_below(figure, _legend(rows, widths))
    return figure


def _line(axes: Axes, rows: Sequence[Row], rank: int) -> None:
    drawn = [row for row in rows if row["n"]]
    if not drawn:
        return
    places, gains = ([row[name] for row in drawn] for name in ("relative_site", "gain"))
    if rows[0]["direction"] != STEEPEST:
        axes.plot(places, gains, color="0.6", lw=0.7, ls=CONTROLS[rows[0]["direction"]])
        return
    colour = width_colour(rows[0]["width"])
    axes.plot(places, gains, marker(rank), ls="-", color=colour, ms=2.8)
    banded = [row for row in drawn if row["low"] is not None]
    low, high = ([row[limit] for row in banded] for limit in ("low", "high"))
    axes.fill_between([row["relative_site"] for row in banded], low, high, color=colour, alpha=0.2, linewidth=0)


def _headline(rows: Sequence[Row]) -> str:
    judged = {
        STEEPEST: [row for row in rows if row["direction"] == STEEPEST and row["low"] is not None],
        "controls": [row for row in rows if row["direction"] != STEEPEST and row["low"] is not None],
    }
    if not judged[STEEPEST]:
        return "Held-out gain of jumpboards by site: one seed, no intervals"
    told = {name: f"{sum(row['low'] > 0 for row in one)} of {len(one)}" for name, one in judged.items()}
    return f"Held-out gain of jumpboards at {told[STEEPEST]} sites; of their controls at {told['controls']} (luck: 5 %)"


def _legend(rows: Sequence[Row], widths: Sequence[int]) -> list[Handle]:
    lines = [
        Line2D([], [], color=width_colour(width), marker=marker(rank), ms=2.8, label=f"width {width}")
        for rank, width in enumerate(widths)
    ]
    controls = [
        Line2D([], [], color="0.6", lw=0.7, ls=line, label=name if name != "shuffled" else "shuffled labels")
        for name, line in CONTROLS.items()
        if any(row["direction"] == name for row in rows)
    ]
    return [*lines, *controls, *seed_handles(rows, marker="o")]
