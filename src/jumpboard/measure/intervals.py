"""Two-sided 90 % limits of moments from jackknife blocks.

A statistic without block j of m_j of the n rows is theta_j; with h_j = n/m_j and g blocks (delete-m_j jackknife of
Busing, Meijer & van der Leeden 1999; for equal blocks (g-1)/g sum (theta_j - mean)^2):

    Var = 1/g sum_j (h_j theta - (h_j - 1) theta_j - J)^2/(h_j - 1)    J = g theta - sum_j (1 - m_j/n) theta_j
    limits = theta -+ t(0.95, g - 1) sqrt(Var)

Variances of independent row sets add, and g is then that of the smaller set. What is positive and estimated so (ratios,
and V, T, R, R2, diag whose plain lower limit is above 0) takes limits on the logarithmic scale, which cover skewed rows
better: T of exponential rows, n = 60, N = 6, in 90 of 100 cases instead of 83.

rho_off has plain limits; at an exactly diagonal covariance, where it is degenerate, they are wider than they need be.
S near 0 is special: the jackknife doubles the part of its variance that does not come from the mean. Where |S^| is at
most 5 times its standard deviation at mu = 0, that is sqrt(2 T^/(n(n-1))) or for two laws sqrt(T^/(nm)), the exact
Var S^ = 4V/n + 2T/(n(n-1)) (two laws: see `cross`) is used, with the estimates put in, negative ones as 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.special import stdtrit

from jumpboard.measure.cross import CrossMoments
from jumpboard.measure.moments import FloatArray, Moments, Value

LEVEL = 0.90
NEAR_ZERO = 5.0
NAMES = ("S", "V", "T", "R", "R2", "diag", "rho_off")
Law: TypeAlias = Moments | CrossMoments


@dataclass(frozen=True)
class Estimate:
    """An estimate with its limits; None where there is none to be had."""

    estimate: float | None
    low: float | None
    high: float | None

    @property
    def resolved(self) -> bool:
        """The lower limit is above 0."""
        return self.low is not None and self.low > 0


UNRESOLVED = Estimate(None, None, None)


class Replicates(NamedTuple):
    """Moments without each block of one row set, and the rows in each block."""

    moments: Law
    sizes: FloatArray


def block_variance(estimate: float, values: Value, sizes: FloatArray) -> float:
    """The jackknife variance; NaN where a value is."""
    n, blocks = sizes.sum(), len(sizes)
    h = n / sizes
    left_out = np.broadcast_to(values, sizes.shape)
    pseudo = h * estimate - (h - 1) * left_out
    centre = blocks * estimate - np.sum((1 - sizes / n) * left_out)
    return float(np.mean((pseudo - centre) ** 2 / (h - 1)))


def student_limits(estimate: float, variance: float, sets: Sequence[FloatArray]) -> Estimate:
    """estimate -+ t(0.95, g - 1) sqrt(variance); without limits where the variance is no number."""
    if not np.isfinite(variance):
        return Estimate(estimate, None, None)
    half = float(stdtrit(min(map(len, sets)) - 1, (1 + LEVEL) / 2)) * variance**0.5
    return Estimate(estimate, estimate - half, estimate + half)


def jackknife(estimate: float, values: Sequence[Value], sets: Sequence[FloatArray]) -> Estimate:
    """Limits from the values without each block, one array and the block sizes per row set."""
    variance = sum(block_variance(estimate, value, sizes) for value, sizes in zip(values, sets, strict=True))
    return student_limits(estimate, variance, sets)


def jackknife_positive(estimate: float, values: Sequence[Value], sets: Sequence[FloatArray]) -> Estimate:
    """The same on the logarithmic scale: nothing unless the estimate is positive, no limits unless all values are."""
    if not estimate > 0:
        return UNRESOLVED
    if not all(np.all(np.greater(value, 0)) for value in values):
        return Estimate(estimate, None, None)
    logarithmic = jackknife(float(np.log(estimate)), [np.log(value) for value in values], sets)
    factors = (None if limit is None else limit - np.log(estimate) for limit in (logarithmic.low, logarithmic.high))
    low, high = (None if factor is None else estimate * float(np.exp(factor)) for factor in factors)
    return Estimate(estimate, low, high)


def jackknife_moment(estimate: float, values: Sequence[Value], sets: Sequence[FloatArray]) -> Estimate:
    """Limits of a moment that is positive for every law: logarithmic where its plain lower limit is above 0."""
    plain = jackknife(estimate, values, sets)
    logarithmic = jackknife_positive(estimate, values, sets) if plain.resolved else plain
    return plain if logarithmic.low is None else logarithmic


def signal_interval(moments: Law, replicates: Sequence[Replicates]) -> Estimate:
    """Limits of S by the rule above."""
    S, sets = float(moments.S), [replicate.sizes for replicate in replicates]
    if abs(S) <= NEAR_ZERO * float(moments.s_variance_at_zero) ** 0.5:
        return student_limits(S, float(moments.s_variance), sets)
    return jackknife(S, [replicate.moments.S for replicate in replicates], sets)


def moment_intervals(moments: Law, replicates: Sequence[Replicates]) -> Mapping[str, Estimate]:
    """Each of `NAMES` with its limits; `rho_off` has none where T is not resolved, nor does anything from 4 rows."""
    sets = [replicate.sizes for replicate in replicates]
    intervals = {"S": signal_interval(moments, replicates)}
    for name in NAMES[1:]:
        values = [getattr(replicate.moments, name) for replicate in replicates]
        limits = jackknife if name == "rho_off" else jackknife_moment
        intervals[name] = limits(float(getattr(moments, name)), values, sets)
    if not intervals["T"].resolved:
        intervals["rho_off"] = Estimate(intervals["rho_off"].estimate, None, None)
    return intervals
