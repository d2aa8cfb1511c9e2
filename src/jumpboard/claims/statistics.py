"""Intervals over seeds, and slopes within a seed.

    mean +- t(0.95, n - 1) s / sqrt(n)        two-sided 90 %; s: standard deviation over the n seeds

of shares cut at 0 and 1: no share lies beyond, so that the coverage stays, and no limit that is cut decides a verdict.
A seed is the unit: everything that shares one (depths, widths, sample sizes) is first reduced to one number per seed.
Within a net, tests at many sites are corrected by Holm's procedure: no false rejection with probability 1 - level.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

FloatArray = NDArray[np.float64]

LEVEL = 0.90
SMALL = 0.01
ROUNDING = 1e-9  # equal seeds have an interval without width: its limits must not exclude 0 by a rounding error


@dataclass(frozen=True)
class Interval:
    """An estimate, its limits (None with fewer than two seeds) and the number of seeds."""

    estimate: float
    low: float | None
    high: float | None
    n: int

    @property
    def positive(self) -> bool:
        """The lower limit is above 0."""
        return self.above(0)

    @property
    def negative(self) -> bool:
        """The upper limit is below 0."""
        return self.below(0)

    def above(self, level: float) -> bool:
        """The lower limit is above `level`."""
        return self.low is not None and self.low > level + ROUNDING

    def below(self, level: float) -> bool:
        """The upper limit is below `level`."""
        return self.high is not None and self.high < level - ROUNDING

    def __str__(self) -> str:
        return in_words(self.estimate, self.low, self.high)


def in_words(estimate: float, low: float | None, high: float | None) -> str:
    """`estimate [low, high]` to three decimals; to five where all of it would be lost in the third."""
    limits = [] if low is None or high is None else [low, high]
    digits = 5 if 0 < max(map(abs, [estimate, *limits])) < SMALL else 3
    interval = f" [{', '.join(f'{limit:.{digits}f}' for limit in limits)}]" if limits else ""
    return f"{estimate:.{digits}f}{interval}"


@cache
def _quantile(freedom: int) -> float:
    return float(stdtrit(freedom, (1 + LEVEL) / 2))


def mean_interval(values: Sequence[float] | FloatArray) -> Interval:
    """The mean of one value per seed with its t interval. Raises ValueError for no value at all."""
    seeds = np.asarray(values, dtype=np.float64)
    n = len(seeds)
    if n == 0:
        raise ValueError("an interval needs at least one seed")
    mean = float(seeds.mean())
    if n < 2:
        return Interval(mean, None, None, n)
    half = _quantile(n - 1) * float(seeds.std(ddof=1)) / n**0.5
    return Interval(mean, mean - half, mean + half, n)


def share_interval(values: Sequence[float] | FloatArray) -> Interval:
    """The same for shares: its limits end at 0 and 1."""
    mean = mean_interval(values)
    if mean.low is None or mean.high is None:
        return mean
    return replace(mean, low=max(mean.low, 0.0), high=min(mean.high, 1.0))


def slopes(x: ArrayLike, y: FloatArray) -> FloatArray:
    """Least-squares slopes of `y` [..., k] on `x` [k]; exactly 0 where `y` is constant. Needs two different x."""
    points = np.asarray(x, dtype=np.float64)
    centred = points - points.mean()
    rise: FloatArray = (y - y[..., :1]) @ centred / (centred @ centred)
    return rise


def holm(p: ArrayLike, level: float) -> NDArray[np.bool_]:
    """Which of the hypotheses with p-values [k] are rejected: the i-th smallest (from 0) while it is at most
    level/(k - i). Holm 1979."""
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    passed = np.cumprod(values[order] <= level / np.arange(len(values), 0, -1)).astype(bool)
    rejected = np.empty(len(values), dtype=bool)
    rejected[order] = passed
    return rejected
