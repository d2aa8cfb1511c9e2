"""Figure `joint_scaling`: final test loss against depth, one line per width, one panel per sample size.

    rebound(N, M) = L_test(deepest) - L_test(D*)

Where a line turns up again, more depth alone has made the net worse. Paper `depth`, joint scaling.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.claims.rebound import rebounds
from jumpboard.claims.statistics import Interval, mean_interval
from jumpboard.figures.cells import CHOSEN, COUNTS, choices, final_rows, limits_of, seed_means, trained
from jumpboard.figures.panels import (
    Handle,
    finish_layout,
    handles_of,
    headline,
    label_lines,
    legend_below,
    log_axis,
    mark_diverged,
    panel_figure,
    sized,
)
from jumpboard.figures.style import GREY, Colour, marker, styled, width_colour
from jumpboard.schemas.keys import CELL

Row = Mapping[str, Any]

RING = 8.5  # points across, where all seeds choose the same depth

SCHEMA = Schema(
    "joint_scaling",
    1,
    (
        *CELL,
        *limits_of("test_loss", "nats", "final test loss"),
        *COUNTS,
        CHOSEN,
        Column("rebound", "float64", "nats", "of this width and sample size; null unless all trained", nullable=True),
        Column("rebound_low", "float64", "nats", "lower limit of its 90 % t interval", nullable=True),
        Column("rebound_high", "float64", "nats", "upper limit of its 90 % t interval", nullable=True),
    ),
)
CAPTION = (
    "Final test loss against depth, one line per width, one panel per number of training samples. Lines: mean over "
    "seeds; bands: two-sided 90 % t intervals. Rings: D*, for each seed the depth with the lowest validation loss of "
    "the others; the larger the ring, the more seeds chose it. The number beside a width is its rebound, the test loss "
    "of the deepest net minus that at D*, where its interval lies above 0."
)


def plotted(rows: Sequence[Row], dataset: str, arch: str) -> list[dict[str, Any]]:
    """Rows of `metrics` -> rows of `SCHEMA`."""
    final = final_rows(rows, dataset, arch)
    chosen, rebounded = choices(final), _rebounds(final)
    table = []
    for row in seed_means(final, "test_loss"):
        one = rebounded.get((row["samples"], row["width"]))
        table.append(
            row
            | {"chosen": chosen.get((row["samples"], row["width"], row["depth"]), 0)}
            | {"rebound": one and one.estimate, "rebound_low": one and one.low, "rebound_high": one and one.high}
        )
    return table


def _rebounds(final: Sequence[Row]) -> dict[tuple[int, int], Interval]:
    """(samples, width) -> rebound, where every seed has trained at every depth."""
    groups: dict[tuple[int, int], list[Row]] = defaultdict(list)
    for row in final:
        groups[row["samples"], row["width"]].append(row)
    found = {}
    for key, runs in groups.items():
        depths, seeds = (len({run[name] for run in runs}) for name in ("depth", "seed"))
        sound = all(trained(run, column) for run in runs for column in ("validation_loss", "test_loss"))
        if sound and len(runs) == depths * seeds:
            validation, test = (
                np.array([run[column] for run in runs]).reshape(depths, seeds, 1).swapaxes(0, 1)
                for column in ("validation_loss", "test_loss")
            )
            found[key] = mean_interval(rebounds(validation, test)[:, 0])
    return found


def draw(rows: Sequence[Row]) -> Figure:
    """Rows of `SCHEMA` -> the picture."""
    depths, widths, sizes = (sorted({row[key] for row in rows}) for key in ("depth", "width", "samples"))
    by_size = {size: [row for row in rows if row["samples"] == size] for size in sizes}
    with styled():
        figure, panels = panel_figure(len(sizes), 2.6 if len(sizes) < 4 else 2.2, "depth, blocks", "test loss, nats")
        headline(figure, _headline(by_size), rows[0])
        for axes, (size, here) in zip(panels, by_size.items(), strict=True):
            axes.set_title(f"{sized(size)} training samples\n{_message(here)}", loc="left")
            for rank, width in enumerate(widths):
                _line(axes, [row for row in here if row["width"] == width], rank)
            log_axis(axes, depths)
            axes.grid(axis="y")
        legend_below(figure, _legend(rows))
        finish_layout(figure, panels[0], room=0.72)
        for axes, here in zip(panels, by_size.values(), strict=True):
            label_lines(axes, _ends(here), "width, rebound" if any(map(_resolved, here)) else "width")
    return figure


def _line(axes: Axes, rows: Sequence[Row], rank: int) -> None:
    drawn = sorted((row for row in rows if row["test_loss"] is not None), key=lambda row: row["depth"])
    colour = width_colour(rows[0]["width"]) if rows else GREY
    axes.plot([row["depth"] for row in drawn], [row["test_loss"] for row in drawn], marker(rank), ls="-", color=colour)
    banded = [row for row in drawn if row["low"] is not None]
    low, high = ([row[limit] for row in banded] for limit in ("low", "high"))
    axes.fill_between([row["depth"] for row in banded], low, high, color=colour, alpha=0.25, linewidth=0)
    for row in drawn:
        if row["chosen"]:
            size = RING * (row["chosen"] / row["n"]) ** 0.5
            axes.plot(row["depth"], row["test_loss"], "o", markersize=size, mfc="none", mec=colour, mew=1.0)
    for row in rows:
        if row["diverged"]:
            mark_diverged(axes, row["depth"], rank, colour)


def _resolved(row: Row) -> bool:
    return row["rebound_low"] is not None and row["rebound_low"] > 0


def _headline(by_size: Mapping[int, Sequence[Row]]) -> str:
    if all(row["n"] < 2 for rows in by_size.values() for row in rows):
        return "Test loss by depth: one seed, no intervals"
    told = []
    for size in sorted({min(by_size), max(by_size)}):
        resolved = [row["rebound"] for row in by_size[size] if _resolved(row)]
        amount = f"up to {max(resolved):.2f} nats" if resolved else "not resolved"
        told.append(f"{amount} at {sized(size)}")
    return f"Rebound with depth: {', '.join(told)}"


def _message(rows: Sequence[Row]) -> str:
    widths = sorted({row["width"] for row in rows if _resolved(row)})
    if widths:
        return f"rebound at width{'s' if len(widths) > 1 else ''} {', '.join(str(width) for width in widths)}"
    return "no rebound resolved" if any(row["rebound_low"] is not None for row in rows) else "rebound: no interval"


def _ends(rows: Sequence[Row]) -> list[tuple[float, float, str, Colour]]:
    """The deepest trained point of each width, with the text that goes beside it."""
    deepest = {row["width"]: row for row in sorted(rows, key=lambda row: row["depth"]) if row["test_loss"] is not None}
    return [
        (
            row["depth"],
            row["test_loss"],
            f"{width}" + (f", +{row['rebound']:.2f}" if _resolved(row) else ""),
            width_colour(width),
        )
        for width, row in deepest.items()
    ]


def _legend(rows: Sequence[Row]) -> list[Handle]:
    ring = Line2D([], [], color=GREY, marker="o", ls="", ms=RING, mfc="none", label="D*: lowest validation loss")
    return [*handles_of(rows, marker="o"), ring]
