"""How every figure looks, and how it is written: the same picture gives the same bytes.

Sizes are those on paper: 3.4 in for a column, 7 in for a page, no text below 6 pt. Colours lie on perceptually ordered,
colour-blind safe maps, and depend on nothing but the value: a width lies on `inferno`, a depth on `viridis`, with equal
steps per doubling. Text is stored as paths, so that it looks the same where the font is missing.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from jumpboard.artefacts.files import replacing

Colour = tuple[float, float, float, float]

COLUMN, PAGE = 3.4, 7.0
SMALLEST_TEXT = 6.0
GREY = (0.45, 0.45, 0.45, 1.0)
MARKERS = "osD^vP<"

RC: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 7.5,
    "figure.titlesize": 8.5,
    "figure.titleweight": "bold",
    "axes.titlesize": 7.5,
    "axes.labelsize": 7.5,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "grid.color": "0.9",
    "grid.linewidth": 0.5,
    "legend.fontsize": 6.5,
    "legend.frameon": False,
    "legend.handlelength": 1.6,
    "lines.linewidth": 1.3,
    "lines.markersize": 3.5,
    "svg.fonttype": "path",
    "svg.hashsalt": "jumpboard",
    "figure.constrained_layout.use": True,
    "path.simplify": True,
}


@contextmanager
def styled() -> Iterator[None]:
    """Draw and save inside this context; the style of the caller's session is neither used nor touched."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(RC)
        yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of a size in inches, tied to no window and no global state."""
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure


def width_colour(width: int) -> Colour:
    """From 2 units to 256; beyond, the end of the map."""
    return _on_map("inferno", (math.log2(width) - 1) / 7)


def depth_colour(depth: int) -> Colour:
    """From 1 block to 64; beyond, the end of the map."""
    return _on_map("viridis", math.log2(depth) / 6)


def marker(rank: int) -> str:
    """By rank among the lines of a figure: colour is never the only difference."""
    return MARKERS[rank % len(MARKERS)]


def _on_map(name: str, position: float) -> Colour:
    """Black and the palest tenth of the map are left out: the one looks like text, the other vanishes on paper."""
    red, green, blue, alpha = mpl.colormaps[name](0.06 + 0.82 * min(max(position, 0.0), 1.0))
    return float(red), float(green), float(blue), float(alpha)


def save(figure: Figure, svg: Path, png: Path, caption: str) -> None:
    """Write the figure as SVG and as PNG of 200 dpi, each whole or not at all, its caption in the metadata as
    description, without date or software."""
    with styled():
        with replacing(svg) as temporary:
            figure.savefig(temporary, format="svg", metadata={"Date": None, "Creator": None, "Description": caption})
        with replacing(png) as temporary:
            figure.savefig(temporary, format="png", dpi=200, metadata={"Software": None, "Description": caption})


def save_pdf(figure: Figure, pdf: Path) -> None:
    """Write the figure as PDF, whole or not at all, without date or software in it."""
    with styled(), replacing(pdf) as temporary:
        figure.savefig(temporary, format="pdf", metadata={"CreationDate": None, "Creator": None, "Producer": None})
