"""What the figures of fitted laws share: rows of one checkpoint and the largest sample size, laws in words, colours."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from jumpboard.artefacts.tables import Column
from jumpboard.errors import InputError
from jumpboard.figures.measured import nothing_measured
from jumpboard.figures.style import GREY, Colour, width_colour

Row = Mapping[str, Any]

FINAL = "final"
POINTS = (
    Column("x", "float64", "that of the variable", "value of the variable; joint: number of trained parameters"),
    Column("y", "float64", "nats", "measured test loss"),
)
ALPHA = tuple(
    Column(name, "float64", "1", f"{meaning}; null where not identified, or joint", nullable=True)
    for name, meaning in (("alpha", "exponent of the fit"), ("alpha_low", "lower limit"), ("alpha_high", "upper limit"))
)


def rows_of_fits(table: str, rows: Iterable[Row], dataset: str, arch: str) -> list[Row]:
    """Rows of one net's fits at the end of training, else at the checkpoint that comes first in the alphabet, at the
    largest number of samples or over all of them (fits in samples and joint ones; in table `fits`, `samples` = 0).

    Raises InputError for a table that holds other nets only.
    """
    listed = list(rows)
    own = [row for row in listed if (row["dataset"], row["arch"]) == (dataset, arch)]
    if listed and not own:
        raise InputError(f"table {table} has no rows of {dataset}/{arch}")
    checkpoints = sorted({row["checkpoint"] for row in own})
    shown = FINAL if FINAL in checkpoints else next(iter(checkpoints), FINAL)
    largest = max((row["samples"] for row in own), default=0)
    return [
        row
        for row in own
        if row["checkpoint"] == shown and (row["samples"] in (largest, 0) or row["variable"] in ("samples", "joint"))
    ]


def exponent(row: Row) -> str:
    """`alpha = 0.52 [0.45, 0.60]`, or that it is not identified."""
    if row["alpha"] is None:
        return "not identified"
    return f"\u03b1 = {row['alpha']:.2f} [{row['alpha_low']:.2f}, {row['alpha_high']:.2f}]"


def colour_of(variable: str, width: int) -> Colour:
    """Laws at one width have its colour, laws over all widths none."""
    return width_colour(width) if variable == "depth" else GREY


def nothing_fitted(what: str) -> Figure:
    """The figure of a net of which no law can be shown."""
    return nothing_measured(what, "there is no law to fit")


def by_width(rows: Sequence[Row]) -> dict[int, list[Row]]:
    """Rows of each width, sorted."""
    return {width: [row for row in rows if row["width"] == width] for width in sorted({row["width"] for row in rows})}
