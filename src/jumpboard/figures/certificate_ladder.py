"""Figure `certificate_ladder`: the smallest gain that each certificate can prove, beside the gain that there was.

    certified where gain > slack        slack: what a certificate takes off a gain

From the paper's bounds on a class of nets to limits on the fixed pair of nets. Paper `depth`, certificates [derived].
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.figures.expanded import BLUE, VERMILION, nothing_expanded
from jumpboard.figures.measured import rows_of_net
from jumpboard.figures.panels import headline, legend_below, panel_figure
from jumpboard.figures.style import GREY, styled
from jumpboard.schemas.keys import CELL, LOSS

Row = Mapping[str, Any]

RUNGS = {
    "route_a": "Route A",
    "route_b": "Route B",
    "hoeffding": "Hoeffding, fixed nets",
    "bernstein": "Bernstein, fixed nets",
    "step_grid": "Bernstein, grid of steps",
}
ARMS = ("jumpboard_all", "jumpboard")
LOSSES = {"brier": "Brier score", "cross_entropy": "clipped cross-entropy"}

SCHEMA = Schema(
    "certificate_ladder",
    1,
    (
        *CELL,
        LOSS,
        Column("rung", "string", "-", "certificate", key=True),
        Column("slack", "float64", "loss", "smallest gain certified, median; null where not applicable", nullable=True),
        Column("gain", "float64", "loss", "gain that the slack is taken off, median; null likewise", nullable=True),
        Column("certified", "float64", "1", "share of expansions whose gain is above the slack", nullable=True),
        Column("n", "int64", "1", "expansions (seeds, sites) that the certificate is applicable to"),
    ),
)
CAPTION = (
    "The smallest gain that each certificate can prove with the samples at hand (filled) beside the gain of the "
    "expansions (open), all parameters trained, median over seeds and sites; one line per net, one panel "
    "per bounded loss, at the largest number of training samples. Blue where most gains are certified. The paper's "
    "routes bound all nets of a class; limits for fixed nets need test samples only; the grid of steps is about the "
    "jumpboard before training. "
    "Where Route A fails too often to promise anything is in the figure of its terms."
)


def plotted(rows: Sequence[Row], dataset: str, arch: str) -> list[dict[str, Any]]:
    """Rows of `ladder` -> rows of `SCHEMA`."""
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows_of_net("ladder", rows, dataset, arch):
        if row["arm"] in ARMS:
            groups[row["depth"], row["width"], row["samples"], row["loss"], row["rung"]].append(row)
    table = []
    for (depth, width, samples, loss, rung), all_of in sorted(groups.items()):
        own = [row for row in all_of if row["slack"] is not None]
        numbers: dict[str, Any] = dict.fromkeys(("slack", "gain", "certified"))
        if own:
            numbers = {name: float(np.median([row[name] for row in own])) for name in ("slack", "gain")}
            numbers["certified"] = float(np.mean([row["gain"] > row["slack"] for row in own]))
        key = {"dataset": dataset, "arch": arch, "depth": depth, "width": width, "samples": samples}
        table.append(key | {"loss": loss, "rung": rung, **numbers, "n": len(own)})
    return table


def draw(rows: Sequence[Row]) -> Figure:
    """Rows of `SCHEMA` -> the picture."""
    if not rows:
        return nothing_expanded("Certificates of gains")
    losses = sorted({row["loss"] for row in rows})
    rungs = [rung for rung in RUNGS if any(row["rung"] == rung for row in rows)]
    with styled():
        figure, panels = panel_figure(len(losses), 2.3, "loss", "", across=len(losses))
        headline(figure, _headline(rows, losses[0]), rows[0])
        for axes, loss in zip(panels, losses, strict=True):
            axes.set_title(LOSSES[loss], loc="left")
            axes.set_xscale("log")
            axes.grid(axis="x")
            for place, rung in enumerate(rungs):
                own = [row for row in rows if (row["loss"], row["rung"]) == (loss, rung)]
                _rung(axes, len(rungs) - 1 - place, own)
        panels[0].set_yticks(range(len(rungs)), [RUNGS[rung] for rung in reversed(rungs)])
        panels[0].set_ylim(-0.6, len(rungs) - 0.4)
        for axes in panels:
            axes.tick_params(axis="y", length=0)
        legend_below(
            figure,
            [
                Line2D([], [], color=GREY, marker="o", ls="", label="smallest gain that is certified"),
                Line2D([], [], color=GREY, marker="o", mfc="white", ls="", label="gain"),
                Line2D([], [], color=BLUE, label="certified"),
                Line2D([], [], color=VERMILION, label="not certified"),
            ],
        )
    return figure


def _rung(axes: Axes, y: float, rows: Sequence[Row]) -> None:
    shown = [row for row in rows if row["n"]]
    if not shown:
        axes.text(0.5, y, "not applicable", transform=axes.get_yaxis_transform(), ha="center", va="center", color=GREY)
        return
    for place, row in enumerate(shown):
        height = y + 0.5 * ((place + 0.5) / len(shown) - 0.5)
        colour = BLUE if row["certified"] > 0.5 else VERMILION
        if row["gain"] > 0:
            axes.plot([row["slack"], row["gain"]], [height, height], color=colour, lw=1.0, zorder=1)
            axes.plot([row["gain"]], [height], "o", color=colour, mfc="white", zorder=2)
        axes.plot([row["slack"]], [height], "o", color=colour, zorder=3)


def _headline(rows: Sequence[Row], loss: str) -> str:
    slacks = {
        rung: [row["slack"] for row in rows if (row["loss"], row["rung"]) == (loss, rung) and row["n"]]
        for rung in RUNGS
    }
    least = {rung: f"{min(values):.2g}" for rung, values in slacks.items() if values}
    fixed = f"for fixed nets {least['bernstein']} is enough" if "bernstein" in least else ""
    if "route_a" not in least and "route_b" not in least:
        return f"{LOSSES[loss].capitalize()}: the paper's routes do not cover this net; {fixed}"
    told = " and ".join(f"{least[rung]} ({rung[-1].upper()})" for rung in ("route_a", "route_b") if rung in least)
    return f"{LOSSES[loss].capitalize()}: the paper's routes need a gain above {told}; {fixed}"
