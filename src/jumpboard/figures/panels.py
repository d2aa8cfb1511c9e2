"""Small multiples: where panels stand, log axes with a tick at each value, labels beside the lines they name."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, NullLocator

from jumpboard.figures.style import COLUMN, GREY, PAGE, SMALLEST_TEXT, Colour, new_figure

Handle = Line2D | Patch

LABEL_SIZE = 6.5
LABEL_GAP = 1.15 * LABEL_SIZE  # points from one label to the next
TITLE_LETTERS_PER_INCH = 13
LEGEND_LETTERS_PER_INCH = 18


def panel_figure(
    panels: int, height: float, xlabel: str, ylabel: str, across: int | None = None
) -> tuple[Figure, list[Axes]]:
    """A figure of `panels` panels with shared axes, each row `height` inches high; `across` a row, else one to three.

    A single panel is as wide as a column, more fill a page. Axes are named at the left and lower edges only.
    """
    across = across or {1: 1, 2: 2, 4: 2}.get(panels, 3)
    down = -(-panels // across)
    figure = new_figure(COLUMN if panels == 1 else PAGE, height * down + 0.5)
    every = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).ravel()
    for place, axes in enumerate(every):
        axes.set_visible(place < panels)
        axes.tick_params(labelbottom=True)
        if place + across >= panels:
            axes.set_xlabel(xlabel)
        if place % across == 0:
            axes.set_ylabel(ylabel)
    return figure, list(every[:panels])


def headline(figure: Figure, message: str, row: Mapping[str, Any]) -> None:
    """The figure's title: its message, in as few lines as fit and these of like length, and the net it is about."""
    widest = int(figure.get_figwidth() * TITLE_LETTERS_PER_INCH)
    few = len(textwrap.wrap(message, widest))
    even = next(width for width in range(1, widest + 1) if len(textwrap.wrap(message, width)) == few)
    figure.suptitle("\n".join([*textwrap.wrap(message, even), f"{row['dataset']}, {row['arch']}"]))


def sized(samples: int) -> str:
    """`M = 4,000`, in one piece."""
    return f"M\u00a0=\u00a0{samples:,}"


def log_axis(axes: Axes, values: Sequence[int], pad: float | None = None) -> None:
    """A log2 x axis with one tick per value, from the smallest over `pad` to the largest times `pad`."""
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(list(values)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}" if value < 1000 else f"{value / 1000:g}k")
    pad = pad or (max(values) / min(values)) ** 0.06
    pad = pad if pad > 1 else 2.0
    axes.set_xlim(min(values) / pad, max(values) * pad)


def finish_layout(figure: Figure, axes: Axes, room: float) -> None:
    """Fix the layout, then keep `room` inches free on the right of a log x axis (of all panels: they share it)."""
    figure.draw_without_rendering()
    left, right = axes.get_xlim()
    taken = 1 - room * figure.dpi / axes.bbox.width
    axes.set_xlim(left, left * (right / left) ** (1 / taken))


def spread(wanted: Sequence[float], gap: float, floor: float, ceiling: float) -> list[float]:
    """Positions in the same order as the wanted ones, at least `gap` apart and as near to them as that allows.

    Neighbours that are too close share the displacement (least squares). Of floor and ceiling the latter is kept.
    """
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    blocks: list[tuple[float, int]] = []  # sum of wanted places, less the gaps below them, and how many
    for rank, index in enumerate(order):
        total, count = wanted[index] - rank * gap, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / count:
            total, count = total + blocks[-1][0], count + blocks[-1][1]
            blocks.pop()
        blocks.append((total, count))
    bases = [total / count for total, count in blocks for _ in range(count)]
    placed = [0.0] * len(wanted)
    for rank, index in enumerate(order):
        placed[index] = max(bases[rank], floor) + rank * gap
        placed[index] = min(placed[index], ceiling - (len(order) - 1 - rank) * gap)
    return placed


def label_lines(axes: Axes, ends: Sequence[tuple[float, float, str, Colour]], head: str) -> None:
    """Write (x, y, text, colour) right of the lines' ends, without overlap, under the heading `head`.

    Call it when limits and layout are final: places are computed in points.
    """
    if not ends:
        return
    points = 72 / axes.get_figure(root=True).dpi  # type: ignore[union-attr]
    pixels = axes.transData.transform([(x, y) for x, y, _, _ in ends])
    bottom, top = axes.bbox.y0 * points, axes.bbox.y1 * points
    column = float(pixels[:, 0].max()) * points + 11
    wanted = [float(y) * points for y in pixels[:, 1]]
    heights = spread(wanted, LABEL_GAP, bottom + LABEL_GAP / 2, top - 1.6 * LABEL_GAP)
    back = axes.transData.inverted()
    for (x, y, text, colour), height in zip(ends, heights, strict=True):
        label = axes.annotate(
            text,
            (x, y),
            xytext=tuple(back.transform((column / points, height / points))),
            textcoords="data",
            color=colour,
            size=LABEL_SIZE,
            va="center",
            arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.5, "shrinkA": 1, "shrinkB": 4, "relpos": (0, 0.5)},
            annotation_clip=False,
        )
        label.set_in_layout(False)
    corner = back.transform((column / points, top / points))
    axes.text(corner[0], corner[1], head, size=SMALLEST_TEXT, color=GREY, va="top").set_in_layout(False)


def mark_diverged(axes: Axes, x: float, rank: int, colour: Colour) -> None:
    """A cross at the upper edge of the panel, above the x where runs diverged; `rank` keeps lines apart."""
    edge = axes.get_xaxis_transform()
    axes.plot([x], [1 - 0.05 * rank], "X", color=colour, ms=5, mew=0, clip_on=False, transform=edge)


def handles_of(rows: Sequence[Mapping[str, Any]], marker: str = "") -> list[Handle]:
    """Legend entries for means, intervals and crosses, those that the plotted rows have."""
    seeds = max(row["n"] for row in rows)
    handles: list[Handle] = [
        Line2D([], [], color=GREY, marker=marker, label=f"mean of {seeds} seeds" if seeds > 1 else "one seed")
    ]
    if any(row["low"] is not None for row in rows):
        handles.append(Patch(color=GREY, alpha=0.25, lw=0, label="90 % interval"))
    if any(row["diverged"] for row in rows):
        handles.append(Line2D([], [], color=GREY, marker="X", ls="", ms=5, mew=0, label="some seeds diverged"))
    return handles


def legend_below(figure: Figure, handles: Sequence[Handle]) -> None:
    """One legend for the whole figure, under the panels, in as few lines as fit."""
    lengths = [len(str(handle.get_label())) + 7 for handle in handles]  # 7: the sample of the line, and gaps
    room = figure.get_figwidth() * LEGEND_LETTERS_PER_INCH
    lines = 1
    while lines < len(handles) and sum(max(lengths[at : at + lines]) for at in range(0, len(handles), lines)) > room:
        lines += 1
    columns = -(-len(handles) // lines)
    figure.legend(handles=list(handles), loc="outside lower center", ncols=columns, columnspacing=1.4)
