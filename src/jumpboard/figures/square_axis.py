"""An axis for squares that may be unresolved: logarithmic where all are resolved, else linear around 0, never clipped.

On the second kind everything up to the largest unresolved square is drawn on a linear scale, and shaded. Intervals may
leave the panel, means never do.
"""

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

MANTISSAS = ((1,), (1, 3), (1, 2, 5))
MOST_TICKS = 5
BEYOND = 3.0  # how many times the largest mean an interval may reach within the panel


def square_axis(axes: Axes, means: Sequence[float], bands: Sequence[float], unresolved: Sequence[float]) -> None:
    """Scale, limits and ticks of the y axis for means, the limits of their intervals, and those means with 0 inside."""
    high = min(max([*means, *bands]), BEYOND * max(map(abs, means)))
    floor = rounded_up(max(map(abs, unresolved), default=0.0) or 1.0)
    if not unresolved:
        low = max(min([*means, *bands]), min(means) / BEYOND)
        margin = 1.05 * (high / low) ** 0.06
        axes.set_yscale("log")
        axes.set_ylim(low / margin, high * margin)
        ticks = log_ticks(low / margin, high * margin)
    elif high < 4 * floor:
        low = max(min([*means, *bands]), min([*means, -high / 2]))
        margin = 0.06 * (high - low) or 0.1
        axes.axhline(0, color="0.6", lw=0.6, zorder=0.5)
        axes.set_ylim(low - margin, high + margin)
        ticks = list(MaxNLocator(4).tick_values(low - margin, high + margin))
    else:
        low = min([*means, -0.2 * floor])
        axes.set_yscale("symlog", linthresh=floor)
        axes.axhspan(-floor, floor, color="0.95", lw=0, zorder=0)
        axes.axhline(0, color="0.6", lw=0.6, zorder=0.5)
        axes.set_ylim(1.2 * low, 1.4 * high)
        ticks = [*([-floor] if 1.2 * low <= -floor else []), 0.0, floor]
        for tick in log_ticks(2 * floor, 1.4 * high):
            ticks += [tick] if tick > 1.9 * ticks[-1] else []
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(FixedLocator(ticks))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")


def rounded_up(value: float) -> float:
    """The next of 1, 2, 5, 10, ..."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value)


def log_ticks(low: float, high: float) -> list[float]:
    """Round values within the limits: powers of ten, more where there are fewer than three, thinned to a handful."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks: list[float] = []
    for factors in MANTISSAS:
        ticks = [factor * 10.0**decade for decade in decades for factor in factors]
        ticks = [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]
        if len(ticks) >= 3:
            break
    else:
        if len(ticks) < 2:
            ticks = [tick for tick in MaxNLocator(3).tick_values(low, high) if low <= tick <= high]
    return ticks[:: -(-len(ticks) // MOST_TICKS)]
