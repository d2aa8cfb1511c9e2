"""Figure `depth_width_map`: mean final test loss of every net, depth x width, one map per sample size.

Growing depth and width together is a walk up and to the right. Paper `depth`, joint scaling.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from jumpboard.artefacts.tables import Schema
from jumpboard.figures.cells import CHOSEN, COUNTS, choices, final_rows, limits_of, seed_means
from jumpboard.figures.panels import Handle, headline, legend_below, panel_figure, sized
from jumpboard.figures.style import SMALLEST_TEXT, styled
from jumpboard.schemas.keys import CELL

Row = Mapping[str, Any]

COLOURS = mpl.colormaps["cividis"]

SCHEMA = Schema("depth_width_map", 1, (*CELL, *limits_of("test_loss", "nats", "final test loss"), *COUNTS, CHOSEN))
CAPTION = (
    "Mean final test loss in nats by depth and width, one map per number of training samples, one scale of colours. "
    "Frames: D*, for each seed the depth with the lowest validation loss of the others at that width; a frame is solid "
    "where all seeds chose it, else dashed. `k div.`: k seeds diverged and are left out of the mean."
)


def plotted(rows: Sequence[Row], dataset: str, arch: str) -> list[dict[str, Any]]:
    """Rows of `metrics` -> rows of `SCHEMA`."""
    final = final_rows(rows, dataset, arch)
    chosen = choices(final)
    return [
        row | {"chosen": chosen.get((row["samples"], row["width"], row["depth"]), 0)}
        for row in seed_means(final, "test_loss")
    ]


def draw(rows: Sequence[Row]) -> Figure:
    """Rows of `SCHEMA` -> the picture."""
    depths, widths, sizes = (sorted({row[key] for row in rows}) for key in ("depth", "width", "samples"))
    losses = [row["test_loss"] for row in rows if row["test_loss"] is not None] or [0.0]
    scale = Normalize(min(losses), max(losses))
    with styled():
        figure, panels = panel_figure(len(sizes), 0.85 + 0.3 * len(depths), "width, units", "depth, blocks")
        headline(figure, _headline(rows), rows[0])
        for axes, size in zip(panels, sizes, strict=True):
            here = [row for row in rows if row["samples"] == size]
            axes.set_title(f"{sized(size)} training samples", loc="left")
            for row in here:
                _cell(axes, row, widths.index(row["width"]), depths.index(row["depth"]), scale)
            axes.set_xlim(-0.5, len(widths) - 0.5)
            axes.set_ylim(-0.5, len(depths) - 0.5)
            axes.set_xticks(range(len(widths)), [str(width) for width in widths])
            axes.set_yticks(range(len(depths)), [str(depth) for depth in depths])
            axes.tick_params(length=0)
            axes.spines[:].set_visible(False)
        colours, shrunk = mpl.cm.ScalarMappable(scale, COLOURS), min(1.0, 3 / len(panels))
        bar = figure.colorbar(colours, ax=panels, shrink=shrunk, anchor=(0, 1), fraction=0.05, aspect=25, pad=0.01)
        bar.set_label("test loss, nats")
        bar.outline.set_visible(False)
        legend_below(figure, _legend(rows))
    return figure


def _headline(rows: Sequence[Row]) -> str:
    trained = [row for row in rows if row["test_loss"] is not None]
    if not trained:
        return "All runs diverged"
    best = min(trained, key=lambda row: float(row["test_loss"]))
    place = f"depth {best['depth']}, width {best['width']}, {sized(best['samples'])}"
    return f"Lowest test loss: {best['test_loss']:.2f} nats at {place}"


def _frame(row: Row) -> dict[str, Any]:
    return {"fill": False, "lw": 1.1, "linestyle": "-" if row["chosen"] == row["n"] else (0, (2.5, 1.5))}


def _legend(rows: Sequence[Row]) -> list[Handle]:
    frames = {row["chosen"] == row["n"]: _frame(row) for row in rows if row["chosen"]}
    who = {True: "all seeds", False: "some seeds"}
    return [
        Patch(label=f"D*: lowest validation loss, {who[all_seeds]}", **frames[all_seeds])
        for all_seeds in sorted(frames, reverse=True)
    ]


def _cell(axes: Axes, row: Row, x: int, y: int, scale: Normalize) -> None:
    loss = row["test_loss"]
    colour = COLOURS(scale(loss)) if loss is not None else (1.0, 1.0, 1.0, 1.0)
    hatch = "" if loss is not None else "//////"
    axes.add_patch(Rectangle((x - 0.48, y - 0.48), 0.96, 0.96, facecolor=colour, edgecolor="0.75", hatch=hatch, lw=0))
    ink = "white" if loss is not None and scale(loss) < 0.5 else "black"
    if row["chosen"]:
        axes.add_patch(Rectangle((x - 0.43, y - 0.41), 0.86, 0.82, edgecolor=ink, **_frame(row)))
    lines = [] if loss is None else [f"{loss:.2f}"]
    lines += [f"{row['diverged']} div."] if row["diverged"] else []
    axes.text(x, y, "\n".join(lines), ha="center", va="center", color=ink, size=SMALLEST_TEXT, linespacing=1.0)
