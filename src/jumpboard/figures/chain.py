"""Figure `chain`: losses of one net that is expanded again and again, and the signal that its next block would find.

    L(k) - L(0)        |E[zeta_+ phi(z)']|_F^2 at the chain's site after k expansions, unbiased

Losses are shown as changes, paired by seed: seeds differ more in level than a block changes.

Does each block still gain, and does the signal shrink as the loss does? Paper `depth`, chain of expansions.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.claims.statistics import in_words
from jumpboard.figures.cells import limits_of, mean_columns
from jumpboard.figures.expanded import COUNTS, DASHES, DOTS, nothing_expanded, seeds_of
from jumpboard.figures.measured import STATISTIC, mark_missing, rows_of_net, seed_handles
from jumpboard.figures.panels import Handle, headline, legend_below
from jumpboard.figures.square_axis import square_axis
from jumpboard.figures.style import COLUMN, GREY, PAGE, Colour, new_figure, styled, width_colour
from jumpboard.schemas.keys import CELL

Row = Mapping[str, Any]

SIGNAL = "signal"
LOSSES: dict[str, tuple[str, Any]] = {"test": ("test", "-"), "fresh": ("fresh", DOTS), "train": ("training", DASHES)}
MOST = 4  # nets shown

SCHEMA = Schema(
    "chain",
    1,
    (
        *CELL,
        Column("k", "int64", "blocks", "number of blocks inserted so far", key=True),
        STATISTIC,
        *limits_of(
            "value", "nats; signal: nats^2 per unit^2 of z", "loss on a split minus that at k = 0, or squared signal"
        ),
        Column(
            "level", "float64", "nats", "the loss itself, mean over the same seeds; null for the signal", nullable=True
        ),
        *COUNTS,
        Column("resolved", "bool", "-", "signal: the lower limit of every seed's own interval lies above 0"),
    ),
)
CAPTION = (
    "A net expanded again and again at one site, each block begun at its jumpboard and trained alone. Above: loss on "
    "training, test and fresh samples minus that before the first block, against the number of blocks inserted. "
    "Below: squared first-order signal that the next block would find there, unbiased, on fresh samples (test samples "
    "where there are none). Lines: mean over seeds; bands: two-sided 90 % t intervals. Hollow points: the signal of "
    "some seed is not resolved from 0. At most four nets are shown, from the narrowest and shallowest to the widest "
    "and deepest. Title: mean and interval of one net; of several, those whose whole interval lies on one side."
)


def plotted(rows: Sequence[Row], dataset: str, arch: str) -> list[dict[str, Any]]:
    """Rows of `chain` -> rows of `SCHEMA`."""
    own = rows_of_net("chain", rows, dataset, arch)
    cells, table = seeds_of(own), []
    for depth, width in _shown(cells):
        cell = {"dataset": dataset, "arch": arch, "depth": depth, "width": width, "samples": own[0]["samples"]}
        table += [cell | row for row in _courses(cells[depth, width])]
    return table


def _courses(seeds: Mapping[int, Sequence[Row]]) -> Iterator[dict[str, Any]]:
    """Rows of one net, by number of blocks and statistic."""
    begun = {seed: row for seed, rows in seeds.items() for row in rows if row["k"] == 0}
    for k in sorted({row["k"] for rows in seeds.values() for row in rows}):
        here = {seed: row for seed, rows in seeds.items() for row in rows if row["k"] == k}
        for split in LOSSES:
            name = f"net_{split}_loss"
            pairs = [(row[name], begun[seed][name]) for seed, row in here.items() if seed in begun]
            if any(None not in pair for pair in pairs):
                sound = [pair for pair in pairs if None not in pair and np.isfinite(pair).all()]
                level = {"level": float(np.mean([loss for loss, _ in sound])) if sound else None}
                told = mean_columns("value", [loss - first for loss, first in sound]) | level
                yield {"k": k, "statistic": split, "missing": len(seeds) - len(sound), "resolved": True} | told
        squares = [row for row in here.values() if np.isfinite(row["signal_feature_sq"])]
        resolved = bool(squares) and all((row["signal_feature_sq_low"] or 0) > 0 for row in squares)
        told = mean_columns("value", [row["signal_feature_sq"] for row in squares]) | {"level": None}
        yield {"k": k, "statistic": SIGNAL, "missing": len(seeds) - len(squares), "resolved": resolved} | told


def _shown(cells: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """At most `MOST` of (depth, width), evenly from the narrowest and shallowest on."""
    ordered = sorted(cells, key=lambda cell: cell[::-1])
    count = min(MOST, len(ordered))
    return [ordered[round(place * (len(ordered) - 1) / max(count - 1, 1))] for place in range(count)]


def draw(rows: Sequence[Row]) -> Figure:
    """Rows of `SCHEMA` -> the picture."""
    if not rows:
        return nothing_expanded("Chain of expansions")
    cells = sorted({(row["width"], row["depth"]) for row in rows})
    with styled():
        figure = new_figure(COLUMN if len(cells) == 1 else PAGE, 4.0)
        headline(figure, _headline(rows), rows[0])
        panels = figure.subplots(2, len(cells), sharex=True, sharey="row", squeeze=False)
        for (above, below), (width, depth) in zip(panels.T, cells, strict=True):
            here = [row for row in rows if (row["width"], row["depth"]) == (width, depth)]
            above.set_title(f"width {width}, depth {depth}", loc="left")
            for statistic, (_, line) in LOSSES.items():
                _line(
                    above,
                    [row for row in here if row["statistic"] == statistic],
                    GREY if statistic == "train" else width_colour(width),
                    line,
                )
            _signal(below, [row for row in here if row["statistic"] == SIGNAL], width_colour(width))
            lost = [row for row in here if row["statistic"] == "test" and row["missing"]]
            mark_missing(above, [(row["k"], width_colour(width)) for row in lost])
            for axes in (above, below):
                axes.grid(axis="y")
            below.set_xlabel("blocks inserted")
            below.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        for axes in panels[1]:
            _signal_axis(axes, [row for row in rows if row["statistic"] == SIGNAL and row["n"]])
        panels[0, 0].set_ylabel("change of loss, nats")
        panels[1, 0].set_ylabel("squared signal\nnats²/unit²")
        legend_below(figure, _legend(rows))
    return figure


def _line(axes: Axes, rows: Sequence[Row], colour: Colour, line: Any) -> None:
    drawn = sorted((row for row in rows if row["n"]), key=lambda row: int(row["k"]))
    axes.plot([row["k"] for row in drawn], [row["value"] for row in drawn], color=colour, ls=line)
    banded = [row for row in drawn if row["low"] is not None]
    low, high = ([row[limit] for row in banded] for limit in ("low", "high"))
    axes.fill_between([row["k"] for row in banded], low, high, color=colour, alpha=0.2, linewidth=0)


def _signal(axes: Axes, rows: Sequence[Row], colour: Colour) -> None:
    _line(axes, rows, colour, "-")
    for row in (row for row in rows if row["n"]):
        axes.plot(row["k"], row["value"], "o", color=colour, mfc=colour if row["resolved"] else "white")


def _signal_axis(axes: Axes, rows: Sequence[Row]) -> None:
    ends = [row[limit] for row in rows for limit in ("low", "high") if row[limit] is not None]
    unresolved = [row["value"] for row in rows if not row["resolved"]]
    if rows:
        square_axis(axes, [row["value"] for row in rows], ends, unresolved)


def _headline(rows: Sequence[Row]) -> str:
    last = max(row["k"] for row in rows)
    changes = [row for row in rows if (row["statistic"], row["k"]) == ("test", last) and row["n"]]
    if not changes:
        return "Chain of expansions: no losses"
    if len(changes) > 1:
        judged = [row for row in changes if row["low"] is not None]
        falls, rises = sum(row["high"] < 0 for row in judged), sum(row["low"] > 0 for row in judged)
        return f"Test loss falls in {falls}, rises in {rises} of {len(changes)} nets after {last} more blocks"
    signals = {row["k"]: _estimate(row) for row in rows if row["statistic"] == SIGNAL and row["n"]}
    told = f"Test loss changes by {_estimate(changes[0])} nats after {last} more blocks"
    return f"{told}, squared signal from {signals[0]} to {signals[last]}" if {0, last} <= signals.keys() else told


def _estimate(row: Row) -> str:
    return in_words(row["value"], row["low"], row["high"]).replace("-", "\u2212")


def _legend(rows: Sequence[Row]) -> list[Handle]:
    lines = [
        Line2D([], [], color=GREY, ls=line, label=f"{name} samples")
        for statistic, (name, line) in LOSSES.items()
        if any(row["statistic"] == statistic for row in rows)
    ]
    hollow = Line2D([], [], color=GREY, marker="o", ls="", mfc="white", label="not resolved from 0")
    unresolved = any(not row["resolved"] for row in rows if row["n"])
    return [*lines, *seed_handles(rows, marker="o"), *([hollow] if unresolved else [])]
