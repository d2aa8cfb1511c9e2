"""Figure `power_law_fits`: test loss, the fitted power laws with their bands, and what they leave over.

    in depth at each width    in samples at each depth and width    in the number of parameters, all nets
    jointly in all sizes that vary

Is a power law what the test loss follows, and is its exponent known? Paper `depth`, joint scaling and Appendix M.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.figures.expanded import DASHES
from jumpboard.figures.fit_panels import draw_curve, draw_points, draw_residuals, finish, plain_log_axis
from jumpboard.figures.fitted_nets import ALPHA, POINTS, by_width, colour_of, exponent, nothing_fitted, rows_of_fits
from jumpboard.figures.panels import Handle, headline, legend_below, sized
from jumpboard.figures.style import COLUMN, GREY, PAGE, marker, new_figure, styled, width_colour
from jumpboard.schemas.fits import VARIABLE
from jumpboard.schemas.keys import CELL, SEED
from jumpboard.theory.fitting import DISTINCT

Row = Mapping[str, Any]

SHOWN = {
    "depth": "depth, blocks",
    "samples": "training samples",
    "parameters": "trained parameters",
    "joint": "fitted test loss, nats",
}

SCHEMA = Schema(
    "power_law_fits",
    1,
    (
        *CELL,
        SEED,
        VARIABLE,
        *POINTS,
        Column("fitted", "float64", "nats", "by the power law; joint: by the joint one"),
        Column("low", "float64", "nats", "lower limit of the law's 90 % interval", nullable=True),
        Column("high", "float64", "nats", "upper limit of the law's 90 % interval", nullable=True),
        Column("residual", "float64", "1", "log(measured/fitted)"),
        *ALPHA,
    ),
)
CAPTION = (
    "Final test loss and power laws E + A x^-alpha fitted to it at the largest number of training samples: in depth "
    "at each width, in the number of trained parameters over all nets, in samples where a net has enough of them, and "
    "jointly E + sum A_i x_i^-alpha_i in all "
    "sizes that vary (over all sample sizes, measured against fitted). Points: nets; lines: laws, dashed where the "
    "exponent is not identified; bands: two-sided 90 % bootstrap intervals over seeds. Below: residuals, log of "
    "measured over fitted. Where these are not scattered about 0 the law is not that of the data, however narrow its "
    "exponent's limits."
)


def plotted(rows: Sequence[Row], dataset: str, arch: str) -> list[dict[str, Any]]:
    """Rows of `fitted` -> rows of `SCHEMA`."""
    names = [column.name for column in SCHEMA.columns]
    own = [row for row in rows_of_fits("fitted", rows, dataset, arch) if row["variable"] in SHOWN]
    sizes: dict[tuple[int, int], set[float]] = defaultdict(set)
    for row in own:
        if row["variable"] == "samples":
            sizes[row["depth"], row["width"]].add(row["x"])
    own = [row for row in own if row["variable"] != "samples" or len(sizes[row["depth"], row["width"]]) >= DISTINCT]
    return [{name: row["test_loss"] if name == "y" else row[name] for name in names} for row in own]


def draw(rows: Sequence[Row]) -> Figure:
    """Rows of `SCHEMA` -> the picture."""
    variables = [name for name in SHOWN if any(row["variable"] == name for row in rows)]
    if not variables:
        return nothing_fitted("Power laws")
    with styled():
        figure = new_figure(COLUMN if len(variables) == 1 else PAGE, 4.2)
        headline(figure, _headline(rows), rows[0])
        panels = figure.subplots(2, len(variables), sharex="col", height_ratios=(2, 1), squeeze=False)
        for (above, below), variable in zip(panels.T, variables, strict=True):
            here = [row for row in rows if row["variable"] == variable]
            _panel(above, below, variable, here, sorted({row["width"] for row in rows}))
            finish(above, below, SHOWN[variable])
        panels[0, 0].set_ylabel("test loss, nats")
        panels[1, 0].set_ylabel("residual, %")
        legend_below(figure, _legend(rows))
    return figure


def _panel(above: Axes, below: Axes, variable: str, rows: Sequence[Row], widths: Sequence[int]) -> None:
    if variable == "joint":
        rows = [{**row, "x": row["fitted"], "low": None, "high": None} for row in rows]
        above.set_title("jointly, all nets", loc="left")
    elif variable == "samples":
        above.set_title("in samples", loc="left")
    else:
        above.set_title(f"in {variable}, {sized(max(row['samples'] for row in rows))}", loc="left")
    if variable in ("parameters", "joint"):
        line = "-" if variable == "joint" or rows[0]["alpha"] is not None else DASHES
        draw_curve(above, rows, GREY, line)
    for width, own in by_width(rows).items():
        rank = widths.index(width)
        draw_points(above, own, width_colour(width), marker(rank))
        if variable == "depth":
            draw_curve(above, own, width_colour(width), "-" if own[0]["alpha"] is not None else DASHES)
        if variable == "samples":
            for depth in sorted({row["depth"] for row in own}):
                law = [row for row in own if row["depth"] == depth]
                draw_curve(above, law, width_colour(width), "-" if law[0]["alpha"] is not None else DASHES)
        draw_residuals(below, own, width_colour(width), marker(rank))
    below.set_xscale("log", base=2 if variable == "depth" else 10)
    plain_log_axis(below.xaxis, [row["x"] for row in rows])
    if variable == "depth":
        below.set_xticks(sorted({row["x"] for row in rows}))


def _headline(rows: Sequence[Row]) -> str:
    told = []
    depth = {row["width"]: row for row in rows if row["variable"] == "depth"}
    known = [row for _, row in sorted(depth.items()) if row["alpha"] is not None]
    if len(known) > 1:
        least, most = (extreme(known, key=lambda row: float(row["alpha"])) for extreme in (min, max))
        ends = (f"{row['alpha']:.2f} (width {row['width']})" for row in (least, most))
        told.append(f"\u03b1 in depth from {' to '.join(ends)}")
    elif depth:
        told.append(
            f"in depth at width {known[0]['width']} {exponent(known[0])}" if known else "in depth not identified"
        )
    samples = {(row["depth"], row["width"]): row for row in rows if row["variable"] == "samples"}
    if len(samples) == 1:
        told.append(f"in samples {exponent(next(iter(samples.values())))}")
    elif samples:
        known = [row for row in samples.values() if row["alpha"] is not None]
        told.append(f"in samples identified for {len(known)} of {len(samples)} nets")
    parameters = next((row for row in rows if row["variable"] == "parameters"), None)
    if parameters is not None:
        told.append(f"in parameters {exponent(parameters)}")
    return f"Power laws: {'; '.join(told)}" if told else "Power laws of the test loss"


def _legend(rows: Sequence[Row]) -> list[Handle]:
    depth = {row["width"]: row for row in rows if row["variable"] == "depth"}
    handles: list[Handle] = []
    for rank, width in enumerate(sorted({row["width"] for row in rows})):
        name = f"width {width}" + (f": {exponent(depth[width])}" if width in depth else "")
        handles.append(Line2D([], [], color=colour_of("depth", width), marker=marker(rank), ls="-", label=name))
    if any(row["variable"] != "joint" and row["alpha"] is None for row in rows):
        handles.append(Line2D([], [], color=GREY, ls=DASHES, label="exponent not identified"))
    if any(row["low"] is not None for row in rows):
        handles.append(Patch(color=GREY, alpha=0.25, lw=0, label="90 % interval"))
    return handles
