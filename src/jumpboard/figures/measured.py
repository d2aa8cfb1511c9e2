"""What the figures of activation gradients share: which rows they show, and how they count seeds without a value.

Nets are measured after training, so that a seed has no row at a checkpoint that it never reached. It is counted as
missing there if the net was measured at another checkpoint with this seed, as it is at initialisation.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from jumpboard.artefacts.tables import Column
from jumpboard.errors import InputError
from jumpboard.figures.panels import Handle, mark_diverged
from jumpboard.figures.style import COLUMN, GREY, Colour, new_figure, styled

Row = Mapping[str, Any]
Key = tuple[Any, ...]

STATISTIC = Column("statistic", "string", "-", "which quantity the row is about", key=True)
COUNTS = (
    Column("n", "int64", "1", "seeds that the mean is taken over"),
    Column("missing", "int64", "1", "seeds without a value: diverged, or the training loss never fell this low"),
)


def rows_of_net(table: str, rows: Iterable[Row], dataset: str, arch: str) -> list[Row]:
    """Rows of one net at its largest number of training samples; none if nothing at all was measured.

    Raises InputError for a table that holds other nets only.
    """
    listed = list(rows)
    own = [row for row in listed if (row["dataset"], row["arch"]) == (dataset, arch)]
    if listed and not own:
        raise InputError(f"table {table} has no rows of {dataset}/{arch}")
    largest = max((row["samples"] for row in own), default=0)
    order = ("depth", "width", "seed", "site")
    return sorted(
        (row for row in own if row["samples"] == largest), key=lambda row: tuple(row.get(key, 0) for key in order)
    )


def runs_of(rows: Iterable[Row], checkpoint: str, split: str) -> dict[tuple[int, int], dict[int, list[Row]]]:
    """(depth, width) -> seed -> its rows by site; none for a seed that was measured elsewhere only."""
    runs: dict[tuple[int, int], dict[int, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        sites = runs[row["depth"], row["width"]][row["seed"]]
        if (row["checkpoint"], row["split"]) == (checkpoint, split):
            sites.append(row)
    return runs


def mark_missing(axes: Axes, places: Iterable[tuple[float, Colour]]) -> None:
    """Crosses at the upper edge of the panel, one below the other where several stand at one x."""
    taken: Counter[float] = Counter()
    for x, colour in places:
        mark_diverged(axes, x, taken[x], colour)
        taken[x] += 1


def nothing_measured(what: str, why: str = "no net was measured at the end of training") -> Figure:
    """The figure of a net of which there is nothing to show."""
    with styled():
        figure = new_figure(COLUMN, 1.0)
        figure.text(0.5, 0.5, f"{what}:\n{why}", ha="center", va="center")
    return figure


def seed_handles(rows: Sequence[Row], marker: str = "") -> list[Handle]:
    """Legend entries for means, intervals and crosses, those that the plotted rows have."""
    seeds = max(row["n"] for row in rows)
    handles: list[Handle] = [
        Line2D([], [], color=GREY, marker=marker, label=f"mean of {seeds} seeds" if seeds > 1 else "one seed")
    ]
    if any(row["low"] is not None for row in rows):
        handles.append(Patch(color=GREY, alpha=0.25, lw=0, label="90 % interval"))
    if any(row["missing"] for row in rows):
        handles.append(Line2D([], [], color=GREY, marker="X", ls="", ms=5, mew=0, label="some seeds missing"))
    return handles
