"""Does a direction found on n train rows still help on m test rows? The effective alignment dimension and flips.

    Z = <mean_train, mean_test>    E Z = S    Var Z = V (1/n + 1/m) + T/(nm)    flip: Z <= 0
    d_par = S^2/V    d_2 = S^2/T    d_align = min(d_par, d_2) = S^2/max(V, T)
    n_eff = nm/(n + m + 1)    r = S^2/Var Z
    P(flip) <= 1/(1 + r)  Cantelli    <= 1/r  Chebyshev    <= 1/(1 + d_align n_eff)  certificate
    P(flip) ~ Phi(-sqrt r)  normal approximation, not a bound

Paper `width` and the group's draft. S^2 is the unbiased (S^2)^, so numerators and denominators
are unbiased, ratios nearly so. Two laws: Var Z, V and T as in `cross`; Var Z <= (V (n + m) + T)/(nm) keeps the
certificate above Cantelli's bound. Rules: where S is not resolved (its lower limit is not above 0) everything but n_eff
is None; if two laws have S resolved below 0, the four probabilities are 1. A ratio is None also where its numerator or
denominator is estimated at or below 0. Limits of probabilities are those of r or d_align, sent through the bound.
"""

from collections.abc import Callable, Mapping, Sequence
from math import erfc, sqrt

import numpy as np

from jumpboard.measure.cross import CrossMoments
from jumpboard.measure.intervals import UNRESOLVED, Estimate, Law, Replicates, jackknife_positive
from jumpboard.measure.moments import FloatArray, Value

RATIOS = ("d_par", "d_2", "d_align", "r")
PROBABILITIES = ("cantelli", "chebyshev", "certificate", "normal")


def effective_samples(n: int, m: int) -> float:
    """n_eff = nm/(n + m + 1)."""
    return n * m / (n + m + 1)


def cantelli(r: float) -> float:
    """P(Z <= 0) <= 1/(1 + r) where E Z > 0."""
    return 1 / (1 + r)


def chebyshev(r: float) -> float:
    """P(Z <= 0) <= min(1, 1/r) where E Z > 0."""
    return 1 / max(r, 1.0)


def certificate(d_align: float, n_eff: float) -> float:
    """P(Z <= 0) <= 1/(1 + d_align n_eff) where E Z > 0."""
    return 1 / (1 + d_align * n_eff)


def normal(r: float) -> float:
    """Phi(-sqrt r)."""
    return erfc(sqrt(r / 2)) / 2


def alignment_ratios(moments: Law, n: int, m: int) -> dict[str, Value]:
    """`RATIOS` for means over n and m rows; NaN where numerator or denominator is not positive."""

    def ratio(denominator: Value) -> FloatArray:
        above, below = np.broadcast_arrays(moments.S_squared, denominator)
        positive = (above > 0) & (below > 0)
        quotient: FloatArray = np.divide(above, below, out=np.full(above.shape, np.nan), where=positive)
        return quotient

    V, T = moments.V, moments.T
    return {
        "d_par": ratio(V),
        "d_2": ratio(T),
        "d_align": ratio(np.maximum(V, T)),
        "r": ratio(moments.z_variance(n, m)),
    }


def _sent_through(bound: Callable[[float], float], ratio: Estimate) -> Estimate:
    """The estimate and limits of a falling function of a ratio."""
    estimate, low, high = (None if x is None else bound(x) for x in (ratio.estimate, ratio.high, ratio.low))
    return Estimate(estimate, low, high)


def _with_probabilities(ratios: Mapping[str, Estimate], n_eff: float) -> dict[str, Estimate]:
    r, d_align = ratios["r"], ratios["d_align"]
    return {
        **ratios,
        "n_eff": Estimate(n_eff, n_eff, n_eff),
        "cantelli": _sent_through(cantelli, r),
        "chebyshev": _sent_through(chebyshev, r),
        "certificate": _sent_through(lambda d: certificate(d, n_eff), d_align),
        "normal": _sent_through(normal, r),
    }


def alignment(moments: Law, S: Estimate, replicates: Sequence[Replicates], n: int, m: int) -> dict[str, Estimate]:
    """`RATIOS`, n_eff and `PROBABILITIES` with limits, for means over n and m rows; S as from `moment_intervals`."""
    ratios = dict.fromkeys(RATIOS, UNRESOLVED)
    if S.resolved:
        values, sets = alignment_ratios(moments, n, m), [replicate.sizes for replicate in replicates]
        left_out = [alignment_ratios(replicate.moments, n, m) for replicate in replicates]
        ratios = {
            name: jackknife_positive(float(values[name]), [one[name] for one in left_out], sets) for name in RATIOS
        }
    statistics = _with_probabilities(ratios, effective_samples(n, m))
    if isinstance(moments, CrossMoments) and S.high is not None and S.high < 0:
        statistics.update(dict.fromkeys(PROBABILITIES, Estimate(1.0, 1.0, 1.0)))
    return statistics


def plug_in_alignment(moments: Law, n: int, m: int) -> dict[str, float | None]:
    """The same from plug-in moments, without limits; None where a moment is 0, and probabilities 1 where S <= 0."""
    values = {name: float(value) for name, value in alignment_ratios(moments, n, m).items()}
    ratios = {name: Estimate(value if value > 0 else None, None, None) for name, value in values.items()}
    statistics = {name: one.estimate for name, one in _with_probabilities(ratios, effective_samples(n, m)).items()}
    if moments.S <= 0:
        statistics.update(dict.fromkeys(PROBABILITIES, 1.0))
    return statistics
