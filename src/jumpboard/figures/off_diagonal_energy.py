"""Figure `off_diagonal_energy`: how near to diagonal is the covariance of activation gradients, by width and by depth?

    rho_off = (T - diag)/T, unbiased       mean |correlation| over pairs of coordinates

Each beside its value after permuting the samples of every coordinate. Paper `depth`, near-diagonal covariance.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.figures.cells import limits_of, mean_columns
from jumpboard.figures.measured import (
    COUNTS,
    STATISTIC,
    mark_missing,
    nothing_measured,
    rows_of_net,
    runs_of,
    seed_handles,
)
from jumpboard.figures.panels import (
    LABEL_SIZE,
    Handle,
    finish_layout,
    headline,
    label_lines,
    legend_below,
    log_axis,
)
from jumpboard.figures.style import PAGE, depth_colour, marker, new_figure, styled, width_colour
from jumpboard.schemas.keys import CELL

Row = Mapping[str, Any]

DIAGONAL_BELOW = 0.5
DOTS = (0, (1, 1.5))
STATISTICS = {"rho_off": "off-diagonal share of energy", "mean_correlation": "mean |correlation|"}
AXES = (("width", "depth"), ("depth", "width"))  # what x is, and what lines are
COLOURS = {"depth": depth_colour, "width": width_colour}

SCHEMA = Schema(
    "off_diagonal_energy",
    1,
    (
        *CELL,
        STATISTIC,
        *limits_of("value", "1", "rho_off or mean |correlation| of held-out gradients, mean over sites"),
        Column("null_value", "float64", "1", "the same after permuting the samples", nullable=True),
        *COUNTS,
    ),
)
CAPTION = (
    "Covariance of held-out activation gradients at the end of training, at the largest number of training samples: "
    "share of its energy off the diagonal (unbiased) and mean |correlation| of pairs of coordinates, against width and "
    "against depth. Each run is averaged over its sites. Lines: mean over seeds; bands: two-sided 90 % t intervals. "
    "Grey: the same after permuting the samples of each coordinate, from the least to the greatest net. Dotted: the "
    "share of 0.5 below which a covariance counts as near-diagonal. Title: nets whose whole interval lies on one side."
)


def plotted(rows: Sequence[Row], dataset: str, arch: str) -> list[dict[str, Any]]:
    """Rows of `covariance` -> rows of `SCHEMA`."""
    own = rows_of_net("covariance", rows, dataset, arch)
    runs, table = runs_of(own, "final", "test"), []
    if not any(sites for seeds in runs.values() for sites in seeds.values()):
        return []
    for (depth, width), seeds in sorted(runs.items()):
        cell = {"dataset": dataset, "arch": arch, "depth": depth, "width": width, "samples": own[0]["samples"]}
        for statistic in STATISTICS:
            values, nulls = (_means(seeds, name) for name in (statistic, f"null_{statistic}"))
            missing = len(seeds) - len(values)
            null = float(np.mean(nulls)) if nulls else None
            row = {"statistic": statistic, **mean_columns("value", values), "null_value": null, "missing": missing}
            table.append(cell | row)
    return table


def _means(seeds: Mapping[int, Sequence[Row]], column: str) -> list[float]:
    """Mean over sites of every run; sites where it is undefined, as a correlation is at N = 1, take no part."""
    runs = ([site[column] for site in sites if site[column] is not None] for sites in seeds.values())
    finite = ([value for value in run if np.isfinite(value)] for run in runs)
    return [float(np.mean(run)) for run in finite if run]


def draw(rows: Sequence[Row]) -> Figure:
    """Rows of `SCHEMA` -> the picture."""
    if not rows:
        return nothing_measured("Off-diagonal energy of gradients")
    with styled():
        figure = new_figure(PAGE, 4.6)
        headline(figure, _headline(rows), rows[0])
        panels = figure.subplots(2, 2, sharex="col", sharey="row")
        for down, (statistic, label) in zip(panels, STATISTICS.items(), strict=True):
            down[0].set_ylabel(label)
            here = [row for row in rows if row["statistic"] == statistic]
            for axes, (x, by) in zip(down, AXES, strict=True):
                axes.grid(axis="y")
                axes.tick_params(labelbottom=True, labelleft=True)
                _null(axes, here, x)
                mark_missing(axes, [(row[x], COLOURS[by](row[by])) for row in here if row["missing"]])
                for rank, value in enumerate(sorted({row[by] for row in here})):
                    _line(axes, [row for row in here if row[by] == value], x, by, rank)
                log_axis(axes, sorted({row[x] for row in rows}))
        for axes, name in zip(panels[-1], ("width, units", "depth, blocks"), strict=True):
            axes.set_xlabel(name)
        for axes, (x, _) in zip(panels[0], AXES, strict=True):
            ends = (axes.get_xlim()[0], max(row[x] for row in rows))
            axes.plot(ends, [DIAGONAL_BELOW] * 2, color="black", lw=0.8, ls=DOTS)
        _limit_heights(panels[:, 0], rows)
        legend_below(figure, _legend(rows))
        for axes in panels[0]:
            finish_layout(figure, axes, room=0.4)
        for down, statistic in zip(panels, STATISTICS, strict=True):
            here = [row for row in rows if row["statistic"] == statistic]
            for axes, (x, by) in zip(down, AXES, strict=True):
                _name_lines(axes, here, x, by)
    return figure


def _limit_heights(panels: Sequence[Axes], rows: Sequence[Row]) -> None:
    """Shares from 0 to 1, correlations up to a little above the greatest; intervals of few seeds may go beyond."""
    for axes, statistic, ceiling in zip(panels, STATISTICS, (1.0, 0.05), strict=True):
        here = [row for row in rows if row["statistic"] == statistic]
        values = [row[name] for row in here for name in ("value", "null_value") if row[name] is not None]
        ends = [row["high"] for row in here if row["high"] is not None]
        greatest = max([ceiling, *values, min(max(ends, default=0.0), 1.3 * max(values, default=0.0))])
        axes.set_ylim(min([0.0, *values]) - 0.04 * greatest, greatest * (1.0 if greatest == ceiling else 1.08))


def _line(axes: Axes, rows: Sequence[Row], x: str, by: str, rank: int) -> None:
    colour = COLOURS[by](rows[0][by])
    drawn = sorted((row for row in rows if row["n"]), key=lambda row: int(row[x]))
    axes.plot([row[x] for row in drawn], [row["value"] for row in drawn], marker(rank), ls="-", color=colour)
    banded = [row for row in drawn if row["low"] is not None]
    low, high = ([row[limit] for row in banded] for limit in ("low", "high"))
    axes.fill_between([row[x] for row in banded], low, high, color=colour, alpha=0.2, linewidth=0)


def _null(axes: Axes, rows: Sequence[Row], x: str) -> None:
    """A band from the least to the greatest net, with the mean in it."""
    values: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        if row["null_value"] is not None:
            values[row[x]].append(row["null_value"])
    places = sorted(values)
    low, middle, high = ([float(one(values[at])) for at in places] for one in (min, np.mean, max))
    axes.fill_between(places, low, high, color="0.5", alpha=0.3, linewidth=0)
    axes.plot(places, middle, color="0.5", lw=2, alpha=0.8, marker="_" if len(places) == 1 else "")


def _name_lines(axes: Axes, rows: Sequence[Row], x: str, by: str) -> None:
    """Names at the right edge; beside its last point that of a line that ends before."""
    last = {row[by]: row for row in sorted(rows, key=lambda row: int(row[x])) if row["n"]}
    edge = max((row[x] for row in last.values()), default=0)
    ends = [(row[x], row["value"], str(row[by]), COLOURS[by](row[by])) for _, row in sorted(last.items())]
    label_lines(axes, [end for end in ends if end[0] == edge], by)
    for place, height, name, colour in ends:
        if place < edge:
            axes.annotate(
                name, (place, height), (6, 0), textcoords="offset points", color=colour, size=LABEL_SIZE, va="center"
            )


def _headline(rows: Sequence[Row]) -> str:
    energies = [row for row in rows if row["statistic"] == "rho_off" and row["n"]]
    if not energies:
        return "Off-diagonal energy of gradients: undefined in all nets"
    values = [row["value"] for row in energies]
    told = f"Share of gradient covariance off the diagonal: {min(values):.2f} to {max(values):.2f}"
    judged = [row for row in energies if row["low"] is not None]
    if not judged:
        return f"{told}; one seed, no intervals"
    above = sum(row["low"] > DIAGONAL_BELOW for row in judged)
    below = sum(row["high"] < DIAGONAL_BELOW for row in judged)
    return f"{told}; above 0.5 in {above}, below in {below} of {len(judged)} nets"


def _legend(rows: Sequence[Row]) -> list[Handle]:
    return [
        *seed_handles(rows, marker="o"),
        Line2D([], [], color="0.5", lw=2, alpha=0.8, label="samples permuted (null)"),
        Line2D([], [], color="black", lw=0.8, ls=DOTS, label=f"near-diagonal below {DIAGONAL_BELOW}"),
    ]
