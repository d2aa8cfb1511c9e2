"""Figure `learning_curves`: training and validation loss against step, one panel per width and sample size.

Where the dashed line falls and the solid one turns up, a net goes on learning its training samples by heart.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.errors import InputError
from jumpboard.figures.cells import COUNTS, limits_of, mean_columns
from jumpboard.figures.panels import Handle, handles_of, headline, legend_below, mark_diverged, sized
from jumpboard.figures.style import COLUMN, GREY, PAGE, depth_colour, new_figure, styled
from jumpboard.schemas.keys import CELL, SPLIT

Row = Mapping[str, Any]

STEP = Column("step", "int64", "steps", "optimiser steps done", key=True)
STYLES: dict[str, Any] = {"validation": "-", "train": (0, (3, 1.2))}

SCHEMA = Schema("learning_curves", 1, (*CELL, SPLIT, STEP, *limits_of("loss", "nats", "loss on the split"), *COUNTS))
CAPTION = (
    "Loss against optimiser steps, one panel per width and number of training samples, one colour per depth. Solid: "
    "validation; dashed: training, smoothed over batches. Lines: mean over seeds; bands: two-sided 90 % t intervals. A "
    "cross at the upper edge: a seed of that depth diverged here, and from here on the mean is that of the others. "
    "Title: loss at the last step minus the lowest of the mean validation curve, averaged over nets."
)


def plotted(rows: Sequence[Row], dataset: str, arch: str) -> list[dict[str, Any]]:
    """Rows of `curves` -> rows of `SCHEMA`. A seed without a finite loss at a step of its cell counts as diverged."""
    names = ("dataset", "arch", "depth", "width", "samples")
    points: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    seeds: dict[tuple[Any, ...], set[int]] = defaultdict(set)
    for row in rows:
        if (row["dataset"], row["arch"]) == (dataset, arch) and row["split"] in STYLES:
            cell = tuple(row[name] for name in names)
            seeds[cell].add(row["seed"])
            losses = points[*cell, row["split"], row["step"]]
            if np.isfinite(row["loss"]):
                losses.append(row["loss"])
    if not points:
        raise InputError(f"table curves has no rows of {dataset}/{arch}")
    return [
        dict(zip((*names, "split", "step"), key, strict=True))
        | mean_columns("loss", points[key])
        | {"diverged": len(seeds[key[:5]]) - len(points[key])}
        for key in sorted(points)
    ]


def draw(rows: Sequence[Row]) -> Figure:
    """Rows of `SCHEMA` -> the picture."""
    depths, widths, sizes = (sorted({row[key] for row in rows}) for key in ("depth", "width", "samples"))
    curves: dict[tuple[int, int, int, str], list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: int(row["step"])):
        curves[row["samples"], row["width"], row["depth"], row["split"]].append(row)
    with styled():
        height = 1.0 + len(sizes) * (2.0 if len(sizes) < 3 else 1.3)
        figure = new_figure(COLUMN if len(widths) == 1 else PAGE, height)
        headline(figure, _headline(curves, sizes), rows[0])
        panels = figure.subplots(len(sizes), len(widths), sharex=True, sharey=True, squeeze=False)
        for y, size in enumerate(sizes):
            panels[y, 0].set_ylabel(f"{sized(size)}\nloss, nats")
            for x, width in enumerate(widths):
                axes = panels[y, x]
                axes.grid(axis="y")
                axes.set_title(f"width {width}" if y == 0 else "", loc="left")
                axes.set_xlabel("step" if y == len(sizes) - 1 else "")
                axes.xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10], integer=True))
                axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
                for rank, depth in enumerate(depths):
                    for split in STYLES:
                        _line(axes, curves[size, width, depth, split], rank, _thickness(rank, len(depths)))
        panels[0, 0].set_ylim(*_limits(rows))
        legend_below(figure, _legend(rows, depths))
    return figure


def _line(axes: Axes, rows: Sequence[Row], rank: int, thickness: float) -> None:
    drawn = [row for row in rows if row["n"]]
    lost = [row["step"] for row in rows if row["diverged"]]
    if lost:
        mark_diverged(axes, lost[0], rank, depth_colour(rows[0]["depth"]))
    if not drawn:
        return
    colour, split = depth_colour(rows[0]["depth"]), rows[0]["split"]
    steps, losses = ([row[name] for row in drawn] for name in ("step", "loss"))
    axes.plot(steps, losses, color=colour, lw=thickness, ls=STYLES[split], zorder=3 - rank / 10)
    banded = [row for row in drawn if row["low"] is not None]
    low, high = ([row[limit] for row in banded] for limit in ("low", "high"))
    axes.fill_between([row["step"] for row in banded], low, high, color=colour, alpha=0.2, linewidth=0)


def _limits(rows: Sequence[Row]) -> tuple[float, float]:
    """From 0 to the largest mean loss of a net whose seeds all trained: a loss on its way to infinity sets no scale."""
    means = [row for row in rows if row["n"]]
    calm = [row["loss"] for row in means if not row["diverged"]] or [row["loss"] for row in means] or [1.0]
    return 0.0, 1.05 * max(calm)


def _headline(curves: Mapping[tuple[int, int, int, str], Sequence[Row]], sizes: Sequence[int]) -> str:
    told = []
    for size in sorted({sizes[0], sizes[-1]}):
        whole = [
            [row["loss"] for row in rows]
            for (samples, _, _, split), rows in curves.items()
            if (samples, split) == (size, "validation") and rows and not any(row["diverged"] for row in rows)
        ]
        rise = f"{np.mean([losses[-1] - min(losses) for losses in whole]):.2f}\u00a0nats" if whole else "unknown"
        told.append(f"{rise} at {sized(size)}")
    return f"Validation loss ends above its lowest by {', '.join(told)}"


def _legend(rows: Sequence[Row], depths: Sequence[int]) -> list[Handle]:
    colours = [
        Line2D([], [], color=depth_colour(depth), linewidth=_thickness(rank, len(depths)), label=f"depth {depth}")
        for rank, depth in enumerate(depths)
    ]
    splits = [Line2D([], [], color=GREY, label=split, linestyle=style) for split, style in STYLES.items()]
    return [*colours, *splits, *handles_of(rows)[1:]]


def _thickness(rank: int, depths: int) -> float:
    """Deeper nets have thicker lines: colour is not the only difference."""
    return 0.7 + 0.9 * rank / max(depths - 1, 1)
