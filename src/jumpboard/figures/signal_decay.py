"""Figure `signal_decay`: first-order signal against depth, at matched training loss and at the end of training.

    |E[zeta phi(z)']|_F^2       raw, and over E|zeta|^2 E|phi|^2, at one relative site; largest over the sites of a net

Does the signal that a further block would find fall as the trained net grows? Squares are never clipped: where some are
not resolved from 0 they show as such, and slopes are those of the square itself. Paper `depth`, signal decay.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jumpboard.artefacts.tables import Column, Schema
from jumpboard.figures.cells import limits_of
from jumpboard.figures.measured import COUNTS, STATISTIC, mark_missing, nothing_measured, rows_of_net, seed_handles
from jumpboard.figures.panels import Handle, headline, legend_below, log_axis
from jumpboard.figures.signal_trends import SPLITS, STATISTICS, trends
from jumpboard.figures.slope_panel import Line, slope_panel
from jumpboard.figures.square_axis import square_axis
from jumpboard.figures.style import COLUMN, GREY, PAGE, marker, new_figure, styled, width_colour
from jumpboard.schemas.keys import CELL, CHECKPOINT, SPLIT

Row = Mapping[str, Any]

BLACK = (0.0, 0.0, 0.0, 1.0)
NAMES = {"raw": "raw", "scale_free": "scale-free", "largest": "largest"}
STYLES: dict[str, dict[str, Any]] = {
    "test": {"ls": "-", "lw": 1.3, "ms": 3.5},
    "train": {"ls": (0, (3, 1.2)), "lw": 0.8, "ms": 2.2, "mew": 0.6},
}


def _slope(name: str, meaning: str) -> tuple[Column, ...]:
    return (
        Column(name, "float64", "see scale", meaning, nullable=True),
        Column(f"{name}_low", "float64", "see scale", "lower limit of its 90 % t interval", nullable=True),
        Column(f"{name}_high", "float64", "see scale", "upper limit of its 90 % t interval", nullable=True),
        Column(f"{name}_n", "int64", "1", "seeds that the slope is taken over"),
    )


SCHEMA = Schema(
    "signal_decay",
    1,
    (
        *CELL,
        CHECKPOINT,
        SPLIT,
        STATISTIC,
        Column("relative_site", "float64", "1", "site / L; null for the largest over sites", nullable=True),
        *limits_of("signal", "nats^2 per unit^2 of z; 1 if scale-free", "squared feature signal, unbiased"),
        *COUNTS,
        Column("resolved", "bool", "-", "the lower limit of every seed's own interval lies above 0"),
        Column("scale", "string", "-", "log: slopes of log2 of the square; linear: of the square over its RMS"),
        *_slope("slope", "slope of this width's line on log2 depth, mean over seeds"),
        *_slope("mean_slope", "the same, first averaged over the widths that every run reached"),
    ),
)
CAPTION = (
    "Squared first-order feature signal against depth, one line per width, at the largest number of training samples: "
    "at one relative site, of the depths that have it; there without the scale of gradients and features; the largest "
    "over as many sites as the shallowest net has, mean over all choices of them. "
    "Columns: the training loss that most runs have reached; the end of training; slopes of the held-out lines on log2 "
    "depth. Lines: mean over seeds; bands and bars: two-sided 90 % t intervals, of held-out lines only. Hollow points: "
    "the signal of some seed is not resolved from 0; the axis is then linear around 0 (shaded unless linear "
    "throughout). Slopes are those of log2 of the square where every run is resolved, else of the square over its root "
    "mean square; hollow where the interval includes 0. Title: slopes averaged over widths."
)


def plotted(rows: Sequence[Row], dataset: str, arch: str) -> list[dict[str, Any]]:
    """Rows of `signal` -> rows of `SCHEMA`."""
    own = rows_of_net("signal", rows, dataset, arch)
    if not any((row["checkpoint"], row["split"]) == ("final", "test") for row in own):
        return []
    net = {"dataset": dataset, "arch": arch, "samples": own[0]["samples"]}
    return [net | row for row in trends(own)]


def draw(rows: Sequence[Row]) -> Figure:
    """Rows of `SCHEMA` -> the picture."""
    if not rows:
        return nothing_measured("First-order signal by depth")
    depths, widths = (sorted({row[key] for row in rows}) for key in ("depth", "width"))
    checkpoints = sorted({row["checkpoint"] for row in rows}, reverse=True)  # loss_<x>, final
    with styled():
        height = max(1.4, 0.3 + 0.115 * (len(widths) + 2) * len(checkpoints))
        sloped = any(row["slope"] is not None for row in rows)
        ratios = [1.0] * len(checkpoints) + [0.75] * sloped
        figure = new_figure(PAGE if len(ratios) > 1 else COLUMN, 1.1 + 3 * height)
        headline(figure, _headline(rows, checkpoints), rows[0])
        panels = figure.subplots(3, len(ratios), width_ratios=ratios, squeeze=False)
        for down, statistic in zip(panels, STATISTICS, strict=True):
            here = [row for row in rows if row["statistic"] == statistic]
            for axes, checkpoint in zip(down, checkpoints, strict=False):
                _curves(axes, here, checkpoint, widths)
                log_axis(axes, depths)
                axes.tick_params(labelleft=checkpoint == checkpoints[0] or not _common_axis(here))
            down[0].set_ylabel(_label(statistic, here))
            if sloped:
                slope_panel(down[-1], _slopes(here, checkpoints))
                down[-1].set_title("held-out slope on log2 depth" if statistic == STATISTICS[0] else "", loc="left")
        for axes, checkpoint in zip(panels[0], checkpoints, strict=False):
            axes.set_title(_title(checkpoint, rows), loc="left")
        for axes, _ in zip(panels[-1], checkpoints, strict=False):
            axes.set_xlabel("depth, blocks")
        legend_below(figure, _legend(rows, widths))
    return figure


def _when(checkpoint: str) -> str:
    return "at the end of training" if checkpoint == "final" else f"at training loss {checkpoint.removeprefix('loss_')}"


def _title(checkpoint: str, rows: Sequence[Row]) -> str:
    place = ("largest", "test", checkpoint)
    here = [row for row in rows if (row["statistic"], row["split"], row["checkpoint"]) == place]
    runs, missing = (sum(row[name] for row in here) for name in ("n", "missing"))
    return _when(checkpoint) + (f"\n{runs} of {runs + missing} runs" if missing else "")


def _label(statistic: str, rows: Sequence[Row]) -> str:
    if statistic == "largest":
        return "largest of equally\nmany sites, nats²/unit²"
    place = Fraction(rows[0]["relative_site"]).limit_denominator(1000)
    site = f"{place.numerator if place.numerator > 1 else ''}L/{place.denominator}" if place else "0"
    return f"raw, at site {site}\nnats²/unit²" if statistic == "raw" else f"scale-free\nat site {site}"


def _common_axis(rows: Sequence[Row]) -> bool:
    """Sizes of different checkpoints fit one axis only if it is logarithmic."""
    return all(row["resolved"] for row in rows if row["n"])


def _curves(axes: Axes, rows: Sequence[Row], checkpoint: str, widths: Sequence[int]) -> None:
    """The panel of one checkpoint; `rows` are those of all checkpoints, which share a logarithmic y axis."""
    shown = [row for row in rows if row["n"] and (_common_axis(rows) or row["checkpoint"] == checkpoint)]
    held_out = [row[limit] for row in shown if row["split"] == "test" for limit in ("low", "high")]
    unresolved = [row["signal"] for row in shown if not row["resolved"]]
    if shown:
        square_axis(axes, [row["signal"] for row in shown], [end for end in held_out if end is not None], unresolved)
    axes.grid(axis="y")
    here = [row for row in rows if (row["checkpoint"], row["split"]) == (checkpoint, "test")]
    mark_missing(axes, [(row["depth"], width_colour(row["width"])) for row in here if row["missing"]])
    for rank, width in enumerate(widths):
        for split in SPLITS:
            key = (checkpoint, width, split)
            line = [row for row in rows if (row["checkpoint"], row["width"], row["split"]) == key]
            _line(axes, sorted(line, key=lambda row: int(row["depth"])), rank)


def _line(axes: Axes, rows: Sequence[Row], rank: int) -> None:
    drawn = [row for row in rows if row["n"]]
    if not drawn:
        return
    colour, style = width_colour(rows[0]["width"]), STYLES[rows[0]["split"]]
    depths = [row["depth"] for row in drawn]
    axes.plot(depths, [row["signal"] for row in drawn], color=colour, ls=style["ls"], lw=style["lw"])
    for row in drawn:
        face = colour if row["resolved"] else "white"
        axes.plot(row["depth"], row["signal"], color=colour, marker=marker(rank), mfc=face, **style)
    if rows[0]["split"] == "test":
        banded = [row for row in drawn if row["low"] is not None]
        low, high = ([row[limit] for row in banded] for limit in ("low", "high"))
        axes.fill_between([row["depth"] for row in banded], low, high, color=colour, alpha=0.15, linewidth=0)


def _slopes(rows: Sequence[Row], checkpoints: Sequence[str]) -> list[Line]:
    """Of held-out lines: by checkpoint, those of each width and their mean."""
    lines = []
    for checkpoint in checkpoints:
        here = [row for row in rows if (row["checkpoint"], row["split"]) == (checkpoint, "test")]
        if here:
            unit = "log2 of square" if here[0]["scale"] == "log" else "square / RMS"
            lines.append(Line(f"{_when(checkpoint)}: {unit}", None, None, None, BLACK, heading=True))
        for width, row in sorted({row["width"]: row for row in here}.items()):
            lines.append(Line(str(width), row["slope"], row["slope_low"], row["slope_high"], width_colour(width)))
        if len({row["width"] for row in here}) > 1:
            lines.append(_mean_line(here[0]))
    return lines


def _mean_line(row: Row) -> Line:
    return Line("mean", row["mean_slope"], row["mean_slope_low"], row["mean_slope_high"], BLACK)


def _headline(rows: Sequence[Row], checkpoints: Sequence[str]) -> str:
    """What the mean slopes say, checkpoints of which they say the same in one."""
    said: dict[str, list[str]] = {}
    for checkpoint in checkpoints:
        here = [row for row in rows if (row["checkpoint"], row["split"]) == (checkpoint, "test")]
        verdicts: dict[str, list[str]] = {}
        for statistic, row in {row["statistic"]: row for row in here}.items():
            verdicts.setdefault(_mean_line(row).verdict, []).append(NAMES[statistic])
        told = ", ".join(_told(verdict, names) for verdict, names in verdicts.items())
        said.setdefault(told, []).append(_when(checkpoint))
    return "Held-out signal by depth, " + "; ".join(f"{' and '.join(when)}: {told}" for told, when in said.items())


def _told(verdict: str, names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"{names[0]} {verdict}"
    return f"{'all three' if len(names) == len(STATISTICS) else ' and '.join(names)} {verdict.removesuffix('s')}"


def _legend(rows: Sequence[Row], widths: Sequence[int]) -> list[Handle]:
    lines = [
        Line2D([], [], color=width_colour(width), marker=marker(rank), label=f"width {width}")
        for rank, width in enumerate(widths)
    ]
    splits = [
        Line2D([], [], color=GREY, label=name, ls=STYLES[split]["ls"], lw=STYLES[split]["lw"])
        for split, name in (("test", "held-out"), ("train", "training data"))
        if any(row["split"] == split for row in rows)
    ]
    hollow = Line2D([], [], color=GREY, marker="o", ls="", mfc="white", label="not resolved from 0")
    unresolved = any(not row["resolved"] for row in rows if row["n"])
    return [*lines, *splits, *seed_handles(rows), *([hollow] if unresolved else [])]
