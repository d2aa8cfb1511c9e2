"""The picture of `jumpboard fit --plot`: measured points and fitted curve of each group, and their residuals.

With several x the points stand over the fitted value. A law is drawn dashed where its exponent is not identified.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jumpboard.artefacts.files import replacing
from jumpboard.figures.expanded import DASHES
from jumpboard.figures.fit_panels import draw_curve, draw_points, draw_residuals, finish
from jumpboard.figures.panels import legend_below
from jumpboard.figures.style import COLUMN, Colour, marker, new_figure, styled
from jumpboard.theory.fitting import Fit
from jumpboard.theory.forms import FloatArray


def draw_fits(
    groups: Mapping[str, tuple[FloatArray, FloatArray]], fits: Mapping[str, Fit], names: Sequence[str], y_name: str
) -> Figure:
    """`groups`: x [k, n] and y [n] of each group; `names` of the x."""
    one_x = len(names) == 1
    with styled():
        figure = new_figure(COLUMN * 1.4, 4.0)
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
        handles = []
        for rank, (group, (x, y)) in enumerate(groups.items()):
            fit, colour = fits[group], _colour(rank, len(groups))
            rows = _rows(x[0] if one_x else fit.curve, y, fit)
            told, sound = _exponents(fit)
            draw_points(above, rows, colour, marker(rank))
            draw_curve(above, rows, colour, "-" if sound else DASHES)
            draw_residuals(below, rows, colour, marker(rank))
            label = f"{group}: {told}" if group else told
            handles.append(Line2D([], [], color=colour, marker=marker(rank), ls="-" if sound else DASHES, label=label))
        finish(above, below, names[0] if one_x else f"fitted {y_name}")
        if all((x > 0).all() for x, _ in groups.values()):
            below.set_xscale("log")
        above.set_ylabel(y_name)
        below.set_ylabel("residual, %")
        legend_below(figure, handles)
    return figure


def _rows(x: FloatArray, y: FloatArray, fit: Fit) -> list[dict[str, Any]]:
    """The rows that panels draw."""
    low, high = ([None] * len(y) if limit is None else list(limit) for limit in (fit.curve_low, fit.curve_high))
    columns = zip(x, y, fit.curve, low, high, np.log(y / fit.curve), strict=True)
    return [dict(zip(("x", "y", "fitted", "low", "high", "residual"), row, strict=True)) for row in columns]


def _exponents(fit: Fit) -> tuple[str, bool]:
    """What the legend says of the rates, and whether all of them are identified."""
    rates = {name: one for name, one in fit.parameters.items() if name.startswith(("alpha", "rate", "b"))}
    told = [
        f"{name} = {one.estimate:.3g} [{one.low:.3g}, {one.high:.3g}]" if one.identified else f"{name} not identified"
        for name, one in rates.items()
    ]
    return ", ".join(told), all(one.identified for one in rates.values())


def _colour(rank: int, count: int) -> Colour:
    red, green, blue, alpha = mpl.colormaps["viridis"](0.1 + 0.8 * rank / max(count - 1, 1))
    return float(red), float(green), float(blue), float(alpha)


def save_as(figure: Figure, path: Path) -> None:
    """Write in the format that the name ends in, whole or not at all, without a date."""
    suffix = path.suffix[1:]
    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}
    with styled(), replacing(path) as temporary:
        figure.savefig(temporary, format=suffix, dpi=200, metadata=dates[suffix])
