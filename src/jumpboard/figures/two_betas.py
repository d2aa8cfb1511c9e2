"""Figure `two_betas`: one exponent, told twice by a chain of expansions.

    left: squared signal against excess risk, slope 1 + beta    right: excess risk after k blocks, C0 (k + k0)^(-1/beta)

Do the two betas agree? Paper `depth`, Appendix M.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from jumpboard.artefacts.tables import Schema
from jumpboard.errors import InputError
from jumpboard.figures.expanded import DASHES, nothing_expanded
from jumpboard.figures.fit_panels import plain_log_axis
from jumpboard.figures.panels import headline
from jumpboard.figures.style import PAGE, marker, new_figure, styled, width_colour
from jumpboard.schemas.fitted_chain import FITTED_CHAIN
from jumpboard.theory.power_law import AGREE, DISAGREE

Row = Mapping[str, Any]

WIDE = 5.0
WORDS = {AGREE: "agree", DISAGREE: "disagree"}
SCHEMA = Schema("two_betas", 1, FITTED_CHAIN.columns)
CAPTION = (
    "A net expanded again and again: beta from two sides. Left: squared first-order signal that the next block would "
    "find against the excess risk R_k - R*, means over seeds, and the least-squares line, whose slope is 1 + beta. "
    "Right: excess risk after k blocks, and the fitted curve C0 (k + k0)^(-1/beta) with k0 free. Limits: two-sided 90 "
    "% bootstrap intervals over seeds, R* refitted in each resample where it is not the data set's known Bayes risk. "
    "Lines are dashed where beta is not identified."
)


def plotted(rows: Sequence[Row], dataset: str, arch: str) -> list[dict[str, Any]]:
    """Rows of `fitted_chain` -> rows of `SCHEMA`, the same."""
    own = [dict(row) for row in rows if (row["dataset"], row["arch"]) == (dataset, arch)]
    if rows and not own:
        raise InputError(f"table fitted_chain has no rows of {dataset}/{arch}")
    return own


def draw(rows: Sequence[Row]) -> Figure:
    """Rows of `SCHEMA` -> the picture."""
    if not rows:
        return nothing_expanded("Two estimates of beta")
    chains = sorted({(row["width"], row["depth"], row["samples"]) for row in rows})
    with styled():
        figure = new_figure(PAGE, 2.6)
        headline(figure, _headline(rows), rows[0])
        left, right = figure.subplots(1, 2)
        for rank, chain in enumerate(chains):
            own = [row for row in rows if (row["width"], row["depth"], row["samples"]) == chain]
            _chain(left, right, sorted(own, key=lambda row: int(row["k"])), rank)
        left.set_title(f"slope: {_told(rows[0], 'slope')}" if len(chains) == 1 else "slope is 1 + \u03b2", loc="left")
        right.set_title(f"curve: {_told(rows[0], 'curve')}" if len(chains) == 1 else "power is 1/\u03b2", loc="left")
        known = "R*, the Bayes risk" if rows[0]["r_star_known"] else "fitted R*"
        left.set_xlabel(f"risk above {known}, nats")
        left.set_ylabel("squared signal\nnats\u00b2/unit\u00b2")
        right.set_xlabel("blocks inserted")
        right.set_ylabel(f"risk above\n{known}, nats")
        right.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    return figure


def _chain(left: Axes, right: Axes, rows: Sequence[Row], rank: int) -> None:
    colour, symbol = width_colour(rows[0]["width"]), marker(rank)
    there = sorted((row for row in rows if row["excess"] > 0), key=lambda row: float(row["excess"]))
    _scale(left.xaxis, left.set_xscale, [row["excess"] for row in there])
    _scale(left.yaxis, left.set_yscale, [row["signal_feature_sq"] for row in there])
    left.plot([row["excess"] for row in there], [row["signal_feature_sq"] for row in there], symbol, color=colour)
    lined = [row for row in there if row["fitted_signal"] is not None]
    style = {name: "-" if rows[0][f"{name}_beta"] is not None else DASHES for name in ("slope", "curve")}
    left.plot(
        [row["excess"] for row in lined], [row["fitted_signal"] for row in lined], color=colour, ls=style["slope"]
    )
    ks = [row["k"] for row in rows]
    right.plot(ks, [row["excess"] for row in rows], symbol, color=colour)
    right.plot(ks, [row["fitted_excess"] for row in rows], color=colour, ls=style["curve"])
    _scale(right.yaxis, right.set_yscale, [row["excess"] for row in rows])
    right.grid(axis="y")


def _scale(axis: Axis, set_scale: Callable[[str], None], values: Sequence[float]) -> None:
    """Logarithmic where all values are positive and far enough apart to have ticks on such an axis."""
    if values and min(values) > 0 and max(values) > WIDE * min(values):
        set_scale("log")
        plain_log_axis(axis, values)
    else:
        axis.set_major_locator(MaxNLocator(4))


def _told(row: Row, name: str) -> str:
    if row[f"{name}_beta"] is None:
        return f"\u03b2 not identified,\n{row[f'{name}_reason']}"
    return f"\u03b2 = {row[f'{name}_beta']:.2f} [{row[f'{name}_low']:.2f}, {row[f'{name}_high']:.2f}]"


def _headline(rows: Sequence[Row]) -> str:
    told = {(row["depth"], row["width"], row["samples"]): row["agreement"] for row in rows}
    counts = [f"{word} in {list(told.values()).count(one)}" for one, word in WORDS.items() if one in told.values()]
    if len(told) > 1:
        return f"Two estimates of \u03b2 in {len(told)} chains: {', '.join(counts) or 'none can be compared'}"
    only = next(iter(told.values()))
    return (
        f"The two estimates of \u03b2 {WORDS[only]}"
        if only in WORDS
        else "The two estimates of \u03b2 cannot be compared"
    )
