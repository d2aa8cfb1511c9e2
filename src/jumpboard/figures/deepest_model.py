"""Figure `deepest_model`: why would a further block not help? Three cases of a site of a trained net, counted by depth.

    direction   signal_feature is resolved from 0: there is a descent direction
    unseen      it is not, but signal_rms is at least 1e-3 of its value at init: there is signal the block cannot see
    none        signal_rms is below that: there is no signal

on held-out samples at the end of training. Paper `depth`, deepest model.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.claims.statistics import share_interval
from jumpboard.figures.cells import limits_of, mean_columns
from jumpboard.figures.expanded import BLUE, DASHES, ORANGE, bar_handles, depth_places
from jumpboard.figures.measured import COUNTS, mark_missing, nothing_measured, rows_of_net, runs_of
from jumpboard.figures.panels import Handle, headline, legend_below, panel_figure
from jumpboard.figures.style import GREY, Colour, styled
from jumpboard.schemas.keys import CELL

Row = Mapping[str, Any]

NO_SIGNAL_BELOW = 1e-3  # of the root mean square at init
LUCK = 0.05  # of sites without signal whose 90 % interval lies above 0
CASES: dict[str, tuple[str, Colour]] = {
    "direction": ("a descent direction is resolved", BLUE),
    "unseen": ("signal, but the block cannot see it", ORANGE),
    "none": ("no signal", (0.8, 0.8, 0.8, 1.0)),
}

SCHEMA = Schema(
    "deepest_model",
    1,
    (
        *CELL,
        Column("case", "string", "-", "direction, unseen or none: see the figure", key=True),
        *limits_of("share", "1", "share of the sites that are in this case"),
        *COUNTS,
    ),
)
CAPTION = (
    "Sites of trained nets by what a new block would find there on held-out samples, by depth, one panel per width, at "
    "the largest number of training samples. Blue: the first-order feature signal is resolved, the lower limit of its "
    "90 % interval lies above 0. Orange: it is not, though the root mean square of the site's gradients is at least a "
    "thousandth of that at initialisation. Light grey: it is less. Bars: shares of sites, mean over seeds; "
    "whiskers: two-sided 90 % t intervals of the blue shares, cut at 0 and 1. Dashes: the share that luck alone would "
    "resolve. Title: means over nets of one depth."
)


def plotted(rows: Sequence[Row], dataset: str, arch: str) -> list[dict[str, Any]]:
    """Rows of `signal` -> rows of `SCHEMA`. A seed that was not measured at init, too, is missing."""
    own = rows_of_net("signal", rows, dataset, arch)
    begun = {
        (row["depth"], row["width"], row["seed"], row["site"]): row["signal_rms_sq"]
        for row in own
        if (row["checkpoint"], row["split"]) == ("init", "test")
    }
    runs, table = runs_of(own, "final", "test"), []
    if not any(sites for seeds in runs.values() for sites in seeds.values()):
        return []
    for (depth, width), seeds in sorted(runs.items()):
        found = []
        for seed, sites in seeds.items():
            places = [(depth, width, seed, row["site"]) for row in sites]
            if sites and all(place in begun for place in places):
                found.append([case_of(row, begun[place]) for row, place in zip(sites, places, strict=True)])
        cell = {"dataset": dataset, "arch": arch, "depth": depth, "width": width, "samples": own[0]["samples"]}
        for case in CASES:
            shares = [cases.count(case) / len(cases) for cases in found]
            missing = {"missing": len(seeds) - len(found)}
            table.append(cell | {"case": case} | mean_columns("share", shares, share_interval) | missing)
    return table


def case_of(row: Row, begun: float) -> str:
    """The case of a row of `signal`; `begun`: signal_rms_sq at init."""
    if row["signal_feature_sq_low"] is not None and row["signal_feature_sq_low"] > 0:
        return "direction"
    return "unseen" if row["signal_rms_sq"] >= NO_SIGNAL_BELOW**2 * begun else "none"


def draw(rows: Sequence[Row]) -> Figure:
    """Rows of `SCHEMA` -> the picture."""
    if not rows:
        return nothing_measured("Descent directions by depth")
    depths, widths = (sorted({row[key] for row in rows}) for key in ("depth", "width"))
    with styled():
        figure, panels = panel_figure(len(widths), 1.9, "depth, blocks", "share of sites")
        headline(figure, _headline(rows, depths), rows[0])
        for axes, width in zip(panels, widths, strict=True):
            here = [row for row in rows if row["width"] == width]
            axes.set_title(f"width {width}", loc="left")
            for place, depth in enumerate(depths):
                _bar(axes, {row["case"]: row for row in here if row["depth"] == depth and row["n"]}, place)
            axes.axhline(LUCK, color="black", lw=0.8, ls=DASHES)
            lost = [row for row in here if row["case"] == "direction" and row["missing"]]
            mark_missing(axes, [(depths.index(row["depth"]), GREY) for row in lost])
            depth_places(axes, depths)
        panels[0].set_ylim(0, 1.02)
        legend_below(figure, _legend(rows))
    return figure


def _bar(axes: Axes, cases: Mapping[str, Row], x: int) -> None:
    bottom = 0.0
    for case, row in ((case, cases[case]) for case in CASES if case in cases):
        axes.bar(x, row["share"], 0.7, bottom, color=CASES[case][1], lw=0)
        bottom += row["share"]
    found = cases.get("direction", {"low": None})
    if found["low"] is not None:
        axes.plot([x, x], [found["low"], found["high"]], color="black", lw=0.8, solid_capstyle="butt")


def _headline(rows: Sequence[Row], depths: Sequence[int]) -> str:
    told = []
    for depth in sorted({depths[0], depths[-1]}):
        shares = [row["share"] for row in rows if (row["depth"], row["case"]) == (depth, "direction") and row["n"]]
        amount = f"{sum(shares) / len(shares):.0%}" if shares else "an unknown share"
        told.append(f"{amount} of sites at depth {depth}")
    return f"A descent direction is resolved at {', '.join(told)}; by luck alone at {LUCK:.0%}"


def _legend(rows: Sequence[Row]) -> list[Handle]:
    bars: list[Handle] = [Patch(color=colour, lw=0, label=name) for name, colour in CASES.values()]
    luck = Line2D([], [], color="black", lw=0.8, ls=DASHES, label="by luck alone")
    return [*bars, luck, *bar_handles(rows)]
