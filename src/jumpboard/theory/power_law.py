"""The exponent beta of a chain of expansions, by two roads that must agree. Paper `depth`, Appendix M.

    Assumption G:  |mu_k|^2 = gamma Delta_k^(1 + beta)     slope of log |mu_k|^2 on log Delta_k = 1 + beta
    it then follows that     Delta_k = C0 (k + k0)^(-1/beta)     with k0 free: a chain does not start at infinity

Delta_k = R_k - R* is the excess risk after k blocks. R* is known or fitted with the curve, as

    log R_k = log(R* + Delta_0 (1 + k/k0)^(-1/beta))        C0 = Delta_0 k0^(1/beta)

and every bootstrap resample of seeds carries its own R* into both estimates. Risks and squares are averaged over seeds
before logarithms are taken: unbiased squares of single seeds may be negative. The law in the number of parameters P:
exponent 1/(3 beta) where depth grows as width, (1 - nu)/((3 - nu) beta) where it grows as width^(1 - nu).
The paper's law [stated]; the test [derived].
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from jumpboard.theory.fitting import DISTINCT, TAIL, WIDEST, Parameter, interval, too_wide
from jumpboard.theory.forms import NEGLIGIBLE, FloatArray
from jumpboard.theory.minimise import minimise
from jumpboard.theory.resampling import limits, resample, stretch

NARROW = 2.0
SLOPE, CURVE = "slope", "curve"
AGREE, DISAGREE, OPEN = "agree", "disagree", "open"
FIRST_BLOCKS, POWERS = (0.3, 1.0, 3.0, 10.0, 30.0), (0.3, 1.0, 3.0, 10.0)  # starts of k0 and 1/beta
FLOORS = (0.05, 0.5, 0.9)  # starts of R*, of the lowest risk
LOWER, UPPER = np.array([np.log(1e-2), 0.05]), np.array([np.log(1e3), 20.0])  # bounds of log k0 and 1/beta
LEAST_RISK = 1e-12
Curves = tuple[FloatArray, FloatArray, float, FloatArray]


@dataclass(frozen=True)
class Betas:
    """Both estimates of beta by name, R*, and at each k the means, the fitted curve and the fitted line (NaN where the
    line has no logarithms to go through)."""

    beta: Mapping[str, Parameter]
    r_star: Parameter
    excess: FloatArray
    signal: FloatArray
    curve: FloatArray
    line: FloatArray
    share: float


def exponent_in_parameters(beta: float, nu: float = 0.0) -> float:
    """Exponent of the excess risk in P where depth grows as width^(1 - nu), 0 <= nu < 1."""
    return (1 - nu) / ((3 - nu) * beta)


def excess_risk(k: FloatArray, first: float, k0: float, beta: float) -> FloatArray:
    """Delta_k of a chain that starts at Delta_0 = `first`."""
    risk: FloatArray = first * (1 + k / k0) ** (-1 / beta)
    return risk


@dataclass(frozen=True)
class Curve:
    """log R_k at `k` [n]; parameters log R*, log Delta_0, log k0 and 1/beta."""

    k: FloatArray

    def __call__(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Parameters [B, 4] -> log R [B, n] and its derivatives [B, 4, n]."""
        ratio = self.k / np.exp(theta[:, 2:3])
        exponent = theta[:, 1:2] - theta[:, 3:] * np.log1p(ratio)
        log_risk = np.logaddexp(theta[:, :1], exponent)
        share = np.exp(exponent - log_risk)
        inner = theta[:, 3:] * ratio / (1 + ratio)
        return log_risk, np.stack([1 - share, share, share * inner, -share * np.log1p(ratio)], axis=1)


def two_betas(
    k: FloatArray, risk: FloatArray, signal: FloatArray, r_star: float | None = None, resamples: int = 200
) -> Betas:
    """From `risk` and squared `signal` [S, n] of S seeds at `k` [n], both estimates with their 90 % limits.

    Risks must be positive. `r_star` is the known least risk, None where it is to be fitted.
    """
    return _betas(k, risk, signal, r_star, _curves(k, risk, r_star, resamples))


def _betas(k: FloatArray, risk: FloatArray, signal: FloatArray, r_star: float | None, curves: Curves) -> Betas:
    theta, replicates, share, weights = curves
    factor = stretch(risk.size, range(len(risk)), 1)
    means, squares = risk.mean(axis=0), signal.mean(axis=0)
    lowest = float(np.exp(theta[0]))
    slope, intercept = (float(one) for one in _slope(means - lowest, squares))
    slopes = _slope(weights @ risk - np.exp(replicates[:, :1]), weights @ signal)[0]
    fault = _fault(k, means, theta, replicates, r_star is not None, factor)
    excess = means - lowest
    with np.errstate(invalid="ignore"):
        line = np.exp(intercept + slope * np.log(excess))
    return Betas(
        {
            SLOPE: _parameter(slope - 1, slopes - 1, factor, fault, positive=False),
            CURVE: _parameter(1 / theta[3], 1 / replicates[:, 3], factor, fault or _held(theta, replicates), True),
        },
        _r_star(lowest, replicates, r_star, factor, fault),
        excess,
        squares,
        np.exp(Curve(k)(theta[None])[0][0]) - lowest,
        line,
        share,
    )


def agreement(beta: Mapping[str, Parameter]) -> str:
    """`agree` where the intervals overlap and each is narrower than a factor 2, `disagree` where they are disjoint,
    else, and where one is not identified, `open`."""
    one, other = beta[SLOPE], beta[CURVE]
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return OPEN
    if one.low > other.high or other.low > one.high:
        return DISAGREE
    return AGREE if one.high < NARROW * one.low and other.high < NARROW * other.low else OPEN


def permuted_agreements(
    k: FloatArray, risk: FloatArray, signal: FloatArray, r_star: float | None, count: int, resamples: int = 200
) -> list[str]:
    """`agreement` for `count` permutations of the signals among the k of each seed."""
    generator, curves = np.random.default_rng(0), _curves(k, risk, r_star, resamples)
    shuffled = (generator.permuted(signal, axis=1) for _ in range(count))
    return [agreement(_betas(k, risk, one, r_star, curves).beta) for one in shuffled]


def _curves(k: FloatArray, risk: FloatArray, r_star: float | None, resamples: int) -> Curves:
    """The best curve [4], those of the resamples [B, 4], the share of starts that reached it, and the weights of seeds
    [B, S], which sum to 1."""
    means = risk.mean(axis=0)
    low, high = np.log(means.min()), np.log(means.max())
    floor = (low - NEGLIGIBLE, high) if r_star is None else (np.log(max(r_star, LEAST_RISK)),) * 2
    lower = np.array([floor[0], low - NEGLIGIBLE, *LOWER])
    upper = np.array([floor[1], high + NEGLIGIBLE, *UPPER])
    starts = [
        (np.log(part) + low, np.log(max(means[0] - part * means.min(), LEAST_RISK)), np.log(k0), power)
        for part, k0, power in product(FLOORS, FIRST_BLOCKS, POWERS)
    ]
    model, ones = Curve(k), np.ones(len(k))
    found, losses = minimise(model, np.array(starts), np.log(means), ones, lower, upper)
    order = np.argsort(losses, kind="stable")
    best = found[order[0]]
    share = float(np.mean(losses <= losses[order[0]] * (1 + 1e-6) + 1e-12))
    weights = resample(len(risk), None, resamples, np.random.default_rng(0)) / len(risk)
    tried = found[order[:5]]
    copies, fits = minimise(
        model, np.tile(tried, (resamples, 1)), np.repeat(np.log(weights @ risk), len(tried), axis=0), ones, lower, upper
    )
    chosen = fits.reshape(resamples, -1).argmin(axis=1)
    return best, copies.reshape(resamples, len(tried), -1)[np.arange(resamples), chosen], share, weights


def _slope(excess: FloatArray, squares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Least-squares slope and intercept of log squares on log excess [..., n]; NaN where one has no logarithm."""
    with np.errstate(invalid="ignore", divide="ignore"):
        x, y = (np.log(np.where(one > 0, one, np.nan)) for one in (excess, squares))
        centred = x - x.mean(axis=-1, keepdims=True)
        slope = (centred * y).sum(axis=-1) / (centred**2).sum(axis=-1)
    return slope, y.mean(axis=-1) - slope * x.mean(axis=-1)


def _fault(
    k: FloatArray, means: FloatArray, theta: FloatArray, replicates: FloatArray, known: bool, factor: float | None
) -> str:
    """Why neither beta can be told; empty where nothing stands against it."""
    if factor is None:
        return "one seed has no interval"
    if len(k) < DISTINCT:
        return f"fewer than {DISTINCT} different k"
    if not known:
        held = np.exp(np.vstack([theta, replicates])[:, 0]) <= means.min() * np.exp(1e-3 - NEGLIGIBLE)
        if held[0] or held[1:].mean() > TAIL:
            return "R* at a bound of the search"
    return ""


def _held(theta: FloatArray, replicates: FloatArray) -> str:
    """Of k0 and 1/beta: the estimate, or a limit, sits at a bound."""
    searched = np.vstack([theta, replicates])[:, 2:]
    edge = 1e-6 * (UPPER - LOWER)
    held = ((searched - LOWER <= edge) | (UPPER - searched <= edge)).any(axis=1)
    return "k0 or beta at a bound of the search" if held[0] or held[1:].mean() > TAIL else ""


def _parameter(estimate: float, copies: FloatArray, factor: float | None, fault: str, positive: bool) -> Parameter:
    if fault or factor is None:
        return Parameter(None, None, None, fault)
    if not np.isfinite(estimate):
        return Parameter(None, None, None, "a mean square or excess risk is not positive")
    low, high = (float(one[0]) for one in interval(np.array([estimate]), copies[:, None], factor, positive))
    reason = "beta is not positive" if high <= 0 else too_wide(low, high, WIDEST)
    return Parameter(None, None, None, reason) if reason else Parameter(float(estimate), low, high)


def _r_star(lowest: float, replicates: FloatArray, known: float | None, factor: float | None, fault: str) -> Parameter:
    if known is not None:
        return Parameter(known, known, known)
    if fault or factor is None:
        return Parameter(None, None, None, fault)
    low, high = (float(one[0]) for one in limits(np.log([lowest]), replicates[:, :1], factor))
    reason = too_wide(float(np.exp(low)), float(np.exp(high)), WIDEST)
    return Parameter(None, None, None, reason) if reason else Parameter(lowest, float(np.exp(low)), float(np.exp(high)))
