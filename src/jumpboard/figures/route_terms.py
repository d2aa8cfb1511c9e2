"""Figure `route_terms`: what the paper's two bounds on the test loss of an expanded net are made of.

    margin = L_test(f) - bound = gain of the jumpboard + gain of training - price of the class
    A: Delta_R/2 + Delta_ERM - 2 eps_M        B: Delta_R^test + Delta_ERM - 2 (eps_M + eps_K)

Only a margin above 0 promises that the expanded net is better than the old one. Paper `depth`, Routes A and B.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.figures.cells import limits_of, mean_columns
from jumpboard.figures.expanded import BLUE, COUNTS, ORANGE, SKY, bar_handles, nothing_expanded, seeds_of, span
from jumpboard.figures.measured import STATISTIC, nothing_measured, rows_of_net
from jumpboard.figures.panels import Handle, headline, legend_below, panel_figure
from jumpboard.figures.style import GREY, Colour, styled
from jumpboard.schemas.keys import ARM, CELL, LOSS, ROUTE
from jumpboard.theory.routes import HOLDS, NOT_APPLICABLE, VIOLATED

Row = Mapping[str, Any]

BLACK = (0.0, 0.0, 0.0, 1.0)
PARTS: dict[str, tuple[str, Colour]] = {
    "jumpboard": ("gain of the jumpboard (half of it in A)", SKY),
    "training": ("gain of training: Δ_ERM", BLUE),
    "price": ("less the price of the class: 2 ε", ORANGE),
    "margin": ("sum: margin, a promise where above 0", BLACK),
}
LOSSES = {"brier": "Brier", "cross_entropy": "cross-entropy"}
WIDTH = 0.2
ARMS = {"jumpboard_all": "all trained", "jumpboard_block": "block trained"}

SCHEMA = Schema(
    "route_terms",
    1,
    (
        *CELL,
        ROUTE,
        LOSS,
        ARM,
        STATISTIC,
        *limits_of("value", "loss", "term of the bound, mean over sites"),
        *COUNTS,
        Column("expansions", "int64", "1", "expansions that the bound is applicable to"),
        Column("promised", "int64", "1", "of these, where the stated failure is at most 3 delta"),
        Column("violated", "int64", "1", "of these, whose test loss is above the bound"),
        Column("informed", "int64", "1", "of these, whose bound holds and is below the test loss of the old net"),
    ),
)
CAPTION = (
    "Terms of the paper's two bounds on the test loss of expanded nets, by net, one panel per route (A, B), arm and "
    "bounded loss, at the largest number of training samples: test loss of the old net minus the bound (black) is the"
    " gain of the jumpboard and of training less the price of bounding a whole class of nets. Bars: mean over seeds, "
    "each averaged over sites, with all parameters trained and with the new block alone; whiskers: two-sided 90 % t "
    "intervals. Above 0 the bound promises a gain. Void: stated failure above 3 delta."
)


def plotted(rows: Sequence[Row], dataset: str, arch: str) -> list[dict[str, Any]]:
    """Rows of `routes` -> rows of `SCHEMA`; a net that no route covers has rows without values."""
    listed = rows_of_net("routes", rows, dataset, arch)
    table: list[dict[str, Any]] = []
    kinds = product(sorted({row["route"] for row in listed}), sorted({row["loss"] for row in listed}), ARMS)
    for route, loss, arm in kinds:
        own = [row for row in listed if (row["route"], row["loss"], row["arm"]) == (route, loss, arm)]
        for (depth, width), seeds in seeds_of(own).items():
            cell = {"dataset": dataset, "arch": arch, "depth": depth, "width": width, "samples": own[0]["samples"]}
            told = [row for one in seeds.values() for row in one if row["outcome"] != NOT_APPLICABLE]
            counts = {
                "expansions": len(told),
                "promised": sum(row["outcome"] in (HOLDS, VIOLATED) for row in told),
                "violated": sum(row["outcome"] == VIOLATED for row in told),
                "informed": sum(row["outcome"] == HOLDS and row["informative"] for row in told),
            }
            terms = [
                {part: float(np.mean([_terms(row)[part] for row in one])) for part in PARTS}
                for one in seeds.values()
                if one and all(row["outcome"] != NOT_APPLICABLE for row in one)
            ]
            for part in PARTS:
                values = mean_columns("value", [term[part] for term in terms])
                missing = {"missing": len(seeds) - len(terms)}
                key = {"route": route, "loss": loss, "arm": arm, "statistic": part}
                table.append(cell | key | values | missing | counts)
    return table


def _terms(row: Row) -> dict[str, float]:
    jumpboard = row["delta_r"] / (2 if row["route"] == "A" else 1)
    margin = row["old_test"] - row["right_hand_side"]
    training = row["delta_erm"]
    return {"jumpboard": jumpboard, "training": training, "price": margin - jumpboard - training, "margin": margin}


def draw(rows: Sequence[Row]) -> Figure:
    """Rows of `SCHEMA` -> the picture."""
    if not rows:
        return nothing_expanded("Terms of the routes")
    if not any(row["n"] for row in rows):
        return nothing_measured("Terms of the routes", "neither route covers this net")
    shown = [row for row in rows if row["n"]]
    panels_of = sorted({(row["route"], row["arm"], row["loss"]) for row in shown})
    cells = sorted({(row["depth"], row["width"]) for row in shown})
    with styled():
        figure, panels = panel_figure(
            len(panels_of), 1.9, "depth, width", "loss", across=2 if len(panels_of) > 1 else 1
        )
        headline(figure, _headline(shown), rows[0])
        for axes, (route, arm, loss) in zip(panels, panels_of, strict=True):
            own = [row for row in shown if (row["route"], row["arm"], row["loss"]) == (route, arm, loss)]
            axes.set_title(f"{route}, {ARMS[arm]}, {LOSSES[loss]}: {_outcomes(own)}", loc="left")
            axes.grid(axis="y")
            for place, (part, (_, colour)) in enumerate(PARTS.items()):
                for row in (row for row in own if row["statistic"] == part):
                    x = cells.index((row["depth"], row["width"])) + (place - 1.5) * WIDTH
                    _bar(axes, row, x, colour)
            axes.axhline(0, color=GREY, lw=0.6)
            axes.set_xticks(range(len(cells)), [f"{depth}, {width}" for depth, width in cells])
            axes.tick_params(axis="x", length=0)
            axes.set_xlim(-0.6, len(cells) - 0.4)
        low, high = span(shown, "value")
        panels[0].set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))
        legend_below(figure, _legend(shown))
    return figure


def _bar(axes: Axes, row: Row, x: float, colour: Colour) -> None:
    axes.bar(x, row["value"], WIDTH * 0.92, color=colour, lw=0, zorder=2)
    if row["low"] is not None:
        ink = "0.55" if row["statistic"] == "margin" else "black"
        axes.plot([x, x], [row["low"], row["high"]], color=ink, lw=0.8, zorder=3, solid_capstyle="butt")


def _outcomes(rows: Sequence[Row]) -> str:
    own = [row for row in rows if row["statistic"] == "margin"]
    promised, violated, every = (sum(row[name] for row in own) for name in ("promised", "violated", "expansions"))
    return f"{violated} of {promised} violated" + (f", {every - promised} void" if every > promised else "")


def _headline(rows: Sequence[Row]) -> str:
    told = []
    for route in sorted({row["route"] for row in rows}):
        own = [row for row in rows if (row["route"], row["statistic"]) == (route, "margin")]
        informed, every = (sum(row[name] for row in own) for name in ("informed", "expansions"))
        told.append(
            f"Route {route} promises {informed} of {every} expansions a gain" if informed else f"Route {route} none"
        )
    return "; ".join(told)


def _legend(rows: Sequence[Row]) -> list[Handle]:
    bars: list[Handle] = [Patch(color=colour, lw=0, label=name) for name, colour in PARTS.values()]
    return [*bars, *bar_handles(rows)]
