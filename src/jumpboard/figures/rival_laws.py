"""Figure `rival_laws`: the power law against an exponential, a logarithmic law and a constant.

    error on the largest nets, predicted by the smaller        AICc above that of the best form

Which law do the losses follow? A form that is leftmost in both panels is preferred. Paper `depth`, Appendix M.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.figures.expanded import BLUE, GREEN, ORANGE
from jumpboard.figures.fit_panels import plain_log_axis
from jumpboard.figures.fitted_nets import nothing_fitted, rows_of_fits
from jumpboard.figures.panels import headline, legend_below
from jumpboard.figures.style import GREY, PAGE, new_figure, styled
from jumpboard.schemas.fits import HELD, VARIABLE
from jumpboard.schemas.keys import ARCH, DATASET
from jumpboard.theory.comparison import CLEAR

Row = Mapping[str, Any]

LAWS = {
    "power": ("power law", BLUE, "o"),
    "exponential": ("exponential", ORANGE, "s"),
    "log": ("logarithmic", GREEN, "D"),
    "constant": ("constant", GREY, "X"),
}
SCHEMA = Schema(
    "rival_laws",
    1,
    (
        DATASET,
        ARCH,
        VARIABLE,
        *HELD,
        Column("form", "string", "-", "power, exponential, log or constant", key=True),
        Column("aicc_above_best", "float64", "1", "AICc minus that of the best form", nullable=True),
        Column("extrapolation_error", "float64", "1", "root mean square log error of the largest nets", nullable=True),
        Column("preferred", "string", "-", "the form with the lowest AICc by more than 4 and the lowest error, if any"),
    ),
)
CAPTION = (
    "Four forms of the law of the final test loss, at the largest number of training samples: in depth at each width, "
    "and in the number of trained parameters over all nets. Left: root mean square log error of the largest nets, "
    "predicted by the fit to the smaller. Right: AICc above that of the best form; the line marks 4. A form is "
    "preferred where it is leftmost in both panels and the others lie right of the line."
)


def plotted(rows: Sequence[Row], dataset: str, arch: str) -> list[dict[str, Any]]:
    """Rows of `fits` -> rows of `SCHEMA`, of fits that have rivals."""
    keys = ("variable", "depth", "width", "samples")
    fits: dict[tuple[Any, ...], dict[str, Row]] = {}
    for row in rows_of_fits("fits", rows, dataset, arch):
        if row["variable"] != "joint":
            fits.setdefault(tuple(row[key] for key in keys), {})[row["form"]] = row
    table = []
    for fit, forms in fits.items():
        known = [row["aicc"] for row in forms.values() if row["aicc"] is not None]
        for form, row in forms.items() if set(forms) == set(LAWS) else ():
            above = row["aicc"] - min(known) if row["aicc"] is not None else None
            name = {"dataset": dataset, "arch": arch, "form": form} | dict(zip(keys, fit, strict=True))
            told = {key: row[key] for key in ("extrapolation_error", "preferred")}
            table.append(name | told | {"aicc_above_best": above})
    return table


def draw(rows: Sequence[Row]) -> Figure:
    """Rows of `SCHEMA` -> the picture."""
    if not rows:
        return nothing_fitted("Rivals of the power law")
    names = list(dict.fromkeys(_named(row) for row in sorted(rows, key=_order)))
    with styled():
        figure = new_figure(PAGE, 1.5 + 0.24 * len(names))
        headline(figure, _headline(rows), rows[0])
        left, right = figure.subplots(1, 2, sharey=True)
        for form, (_, colour, symbol) in LAWS.items():
            for axes, column, scale in ((left, "extrapolation_error", 100), (right, "aicc_above_best", 1)):
                own = [row for row in rows if row["form"] == form and row[column] is not None]
                places = [names.index(_named(row)) for row in own]
                axes.plot([scale * row[column] for row in own], places, symbol, color=colour, ms=4.5, alpha=0.85, mew=0)
        _axes(left, names, "error on the largest nets, % (log scale)")
        left.set_xscale("log")
        plain_log_axis(left.xaxis, left.get_xlim())
        _axes(right, names, "AICc above the best form")
        right.set_xscale("symlog", linthresh=10)
        right.set_xlim(left=-1)
        right.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        right.axvline(CLEAR, color="0.3", lw=0.6)
        legend_below(figure, [Line2D([], [], color=c, marker=m, ls="", label=name) for name, c, m in LAWS.values()])
    return figure


def _axes(axes: Axes, names: Sequence[str], xlabel: str) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(axis="y")
    axes.set_xlabel(xlabel)


def _order(row: Row) -> tuple[Any, ...]:
    return row["variable"] == "parameters", row["variable"], row["depth"], row["width"]


def _named(row: Row) -> str:
    held = [f"{size} {row[size]}" for size in ("depth", "width") if row[size]]
    return ", ".join([f"in {row['variable']}", *held])


def _headline(rows: Sequence[Row]) -> str:
    fits = {_named(row): row["preferred"] for row in rows}
    chosen = [form for form in fits.values() if form]
    told = ", ".join(f"{LAWS[form][0]} {chosen.count(form)}" for form in LAWS if form in chosen)
    law = chosen.count("power")
    rest = f"; preferred: {told}" if told else "; no form is"
    return f"A power law is preferred in {law} of {len(fits)} fits{rest}"
