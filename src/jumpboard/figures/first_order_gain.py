"""Figure `first_order_gain`: how far does the first-order prediction of a new block's gain hold as its step grows?

    predicted = eta slope      realised = eta slope - eta^2 curvature/2 + ...      realised/predicted = 1 - eta/(2 eta*)

where the loss is a parabola, eta* its best step: half of the prediction is left there, none at twice the step. Both are
of held-out samples. Paper `depth`, first-order signal.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.figures.cells import limits_of, mean_columns
from jumpboard.figures.expanded import COUNTS, KIND, nothing_expanded, seeds_of
from jumpboard.figures.measured import rows_of_net
from jumpboard.figures.panels import Handle, headline, legend_below
from jumpboard.figures.style import GREY, PAGE, marker, new_figure, styled, width_colour
from jumpboard.schemas.keys import CELL, SITE

Row = Mapping[str, Any]

COLOURS = mpl.colormaps["viridis_r"]
RASTER = 300  # dots per inch of the cloud of points inside SVG and PDF
PLACES = {"o": "first site", ".": "sites between", "^": "last site"}

SCHEMA = Schema(
    "first_order_gain",
    1,
    (
        *CELL,
        SITE,
        Column("step", "int64", "1", "index of the step in the grid, smallest first", key=True),
        Column("relative_eta", "float64", "1", "eta in units of RMS |z| / RMS |phi|, mean over seeds"),
        Column("predicted_gain", "float64", "nats", "to first order, on held-out samples, mean over seeds"),
        *limits_of("gain", "nats", "held-out gain of the step"),
        *COUNTS,
    ),
)
CAPTION = (
    "Held-out gain of a step along the steepest direction of a new block, against what the slope predicts to first "
    "order, at the largest number of training samples; direction from training samples. Left: each point a site of a "
    "net and a step, mean over seeds, coloured by the step; on the black line the prediction is exact; steps that lose "
    "more than the largest prediction lie below the panel. Right: realised over predicted gain by step, median over "
    "sites and depths that are predicted to gain (line) and middle half of them (band), by width. A parabola leaves "
    "half of the prediction at its best step and none at twice that step."
)


def plotted(rows: Sequence[Row], dataset: str, arch: str) -> list[dict[str, Any]]:
    """Rows of `step_gains` -> rows of `SCHEMA`."""
    own = [
        row
        for row in rows_of_net("step_gains", rows, dataset, arch)
        if (row["jumpboard"], row["split"]) == (KIND, "test")
    ]
    table = []
    for (depth, width), seeds in seeds_of(own).items():
        points: dict[tuple[int, int], list[Row]] = defaultdict(list)
        for row in (row for one in seeds.values() for row in one if np.isfinite(row["gain"])):
            points[row["site"], row["step"]].append(row)
        cell = {"dataset": dataset, "arch": arch, "depth": depth, "width": width, "samples": own[0]["samples"]}
        for (site, step), here in sorted(points.items()):
            means = {name: float(np.mean([row[name] for row in here])) for name in ("relative_eta", "predicted_gain")}
            gain = mean_columns("gain", [row["gain"] for row in here])
            table.append(cell | {"site": site, "step": step} | means | gain | {"missing": len(seeds) - len(here)})
    return table


def draw(rows: Sequence[Row]) -> Figure:
    """Rows of `SCHEMA` -> the picture."""
    if not rows:
        return nothing_expanded("Predicted and realised gain of steps")
    widths, steps = (sorted({row[name] for row in rows}) for name in ("width", "relative_eta"))
    with styled():
        figure = new_figure(PAGE, 3.5)
        figure.set_dpi(RASTER)
        headline(figure, _headline(rows), rows[0])
        cloud, curves = figure.subplots(1, 2)
        scale = LogNorm(steps[0], max(steps[-1], 1.01 * steps[0]))
        _cloud(cloud, rows, scale)
        bar = figure.colorbar(mpl.cm.ScalarMappable(scale, COLOURS), ax=cloud, fraction=0.05, pad=0.02)
        bar.set_label("step, relative to the stream")
        bar.outline.set_visible(False)
        for rank, width in enumerate(widths):
            _curve(curves, [row for row in rows if row["width"] == width], rank)
        _finish_curves(curves)
        legend_below(figure, _legend(widths))
    return figure


def _cloud(axes: Axes, rows: Sequence[Row], scale: LogNorm) -> None:
    predicted = np.array([row["predicted_gain"] for row in rows])
    size = np.abs(predicted)
    high = float(size.max()) * 1.5 or 1.0
    least = max(float(np.quantile(size[size > 0], 0.02)) if size.any() else high / 10, 1e-6 * high)
    low = -high if (predicted < 0).any() else 0.0
    ends = [low, high]
    for shape in PLACES:
        here = [row for row in rows if _place(row) == shape]
        x, y = ([row[name] for row in here] for name in ("predicted_gain", "gain"))
        colours = [row["relative_eta"] for row in here]
        size_of = {"o": 9, ".": 5, "^": 11}[shape]
        axes.scatter(
            x, y, s=size_of, c=colours, norm=scale, cmap=COLOURS, marker=shape, lw=0, alpha=0.8, rasterized=True
        )
    for set_scale in (axes.set_xscale, axes.set_yscale):
        set_scale("symlog", linthresh=least, linscale=0.4)
    axes.plot(ends, ends, color="black", lw=0.8)
    axes.axhline(0, color=GREY, lw=0.6)
    for axis, signed in ((axes.xaxis, bool(low)), (axes.yaxis, True)):
        axis.set_minor_locator(NullLocator())
        axis.set_ticks(_ticks(least, high, signed))
    axes.set_xlim(low, high)
    harmful = any(row["gain"] < -10 * least for row in rows)
    axes.set_ylim(-high if harmful else low or -10 * least, high)
    axes.grid()
    axes.set_xlabel("predicted gain, nats")
    axes.set_ylabel("realised gain, nats")


def _ticks(least: float, high: float, signed: bool) -> list[float]:
    """0 and a few powers of ten."""
    decades = list(range(int(np.ceil(np.log10(least))), int(np.floor(np.log10(high))) + 1))
    powers = [10.0**decade for decade in decades[:: max(1, -(-len(decades) // 4))]]
    return [*(-power for power in reversed(powers) if signed), 0.0, *powers]


def _place(row: Row) -> str:
    return "o" if row["site"] == 0 else "^" if row["site"] == row["depth"] else "."


def ratios(rows: Sequence[Row]) -> dict[float, list[float]]:
    """Relative step -> realised over predicted gain of the sites that are predicted to gain."""
    found: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        if row["predicted_gain"] > 0:
            found[row["step"]].append(row)
    return {
        float(np.median([row["relative_eta"] for row in here])): [row["gain"] / row["predicted_gain"] for row in here]
        for _, here in sorted(found.items())
    }


def _curve(axes: Axes, rows: Sequence[Row], rank: int) -> None:
    found = ratios(rows)
    if not found:
        return
    low, middle, high = ([float(np.quantile(one, part)) for one in found.values()] for part in (0.25, 0.5, 0.75))
    colour = width_colour(rows[0]["width"])
    axes.plot(list(found), middle, marker(rank), ls="-", color=colour)
    axes.fill_between(list(found), low, high, color=colour, alpha=0.2, linewidth=0)


def _finish_curves(axes: Axes) -> None:
    for height, text in ((1.0, "as predicted"), (0.5, "best step"), (0.0, "no gain")):
        axes.axhline(height, color="black" if height == 1 else GREY, lw=0.8, ls="-" if height == 1 else (0, (1, 1.5)))
        axes.text(1.0, height, text, transform=axes.get_yaxis_transform(), ha="right", va="bottom", size=6.0)
    axes.set_xscale("log")
    axes.set_ylim(-0.5, 1.5)
    axes.set_xlabel("step, relative to the stream")
    axes.set_ylabel("realised / predicted gain, median")


def _headline(rows: Sequence[Row]) -> str:
    found = {step: float(np.median(one)) for step, one in ratios(rows).items()}
    if not found:
        return "No site is predicted to gain on held-out samples"
    first, *_ = found
    half = next((step for step, ratio in found.items() if ratio < 0.5), None)
    told = f"Realised over predicted gain: {found[first]:.2f} at a step of {first:.2g}"
    return f"{told}, below a half from {half:.2g} on" if half is not None else f"{told}, above a half at all steps"


def _legend(widths: Sequence[int]) -> list[Handle]:
    places = [
        Line2D([], [], color=GREY, marker=shape, ls="", ms=4 if shape == "." else 3.5, label=name)
        for shape, name in PLACES.items()
    ]
    lines = [
        Line2D([], [], color=width_colour(width), marker=marker(rank), label=f"width {width}")
        for rank, width in enumerate(widths)
    ]
    return [*places, *lines]
