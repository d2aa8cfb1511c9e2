"""A panel of slopes: in each line an estimate with its interval, drawn against 0 and written out at the right."""

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from jumpboard.figures.style import SMALLEST_TEXT, Colour

BEYOND = 2.0  # how many times the largest slope an interval may reach within the panel


class Line(NamedTuple):
    """A named slope, or where there is none at all a heading."""

    name: str
    slope: float | None
    low: float | None
    high: float | None
    colour: Colour
    heading: bool = False

    @property
    def resolved(self) -> bool:
        """The interval lies on one side of 0."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)

    @property
    def verdict(self) -> str:
        """Falls or rises, where the interval says so."""
        if self.low is None:
            return "without slope" if self.slope is None else "without interval"
        return "unresolved" if not self.resolved or self.slope is None else "falls" if self.slope < 0 else "rises"

    def __str__(self) -> str:
        if self.slope is None:
            return "" if self.heading else "no slope"
        limits = f" [{self.low:.2f}, {self.high:.2f}]" if self.low is not None else ""
        return f"{self.slope:.2f}{limits}".replace("-", "\u2212")


def slope_panel(axes: Axes, lines: Sequence[Line]) -> None:
    """Lines from top to bottom; filled where the interval lies on one side of 0."""
    side = axes.get_yaxis_transform()
    for y, line in enumerate(lines):
        if line.heading:
            paper = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
            axes.text(-0.12, y, line.name, transform=side, size=SMALLEST_TEXT, va="center", bbox=paper)
            continue
        axes.text(1.03, y, str(line), transform=side, size=SMALLEST_TEXT, color=line.colour, va="center")
        if line.low is not None and line.high is not None:
            axes.plot([line.low, line.high], [y, y], color=line.colour, lw=1.3, solid_capstyle="butt")
        if line.slope is not None:
            face = line.colour if line.resolved else "white"
            axes.plot(line.slope, y, "o", color=line.colour, mfc=face, ms=3.5)
    axes.set_xlim(*_limits(lines))
    axes.set_ylim(len(lines) - 0.4, -0.6)
    axes.axvline(0, color="0.6", lw=0.6, zorder=0.5)
    named = [(y, line) for y, line in enumerate(lines) if not line.heading]
    axes.set_yticks([y for y, _ in named], [line.name for _, line in named], size=SMALLEST_TEXT)
    for label, (_, line) in zip(axes.get_yticklabels(), named, strict=True):
        label.set_color(line.colour)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))


def _limits(lines: Sequence[Line]) -> tuple[float, float]:
    """All slopes and 0, and intervals as far as they do not make the slopes look alike."""
    slopes = [line.slope for line in lines if line.slope is not None] or [1.0]
    ends = [end for line in lines for end in (line.low, line.high) if end is not None]
    largest = max(map(abs, slopes)) or 1.0
    low, high = min([0.0, *slopes, *ends]), max([0.0, *slopes, *ends])
    return max(low, -BEYOND * largest) - 0.1 * largest, min(high, BEYOND * largest) + 0.1 * largest
