"""Rival forms against one another: by AICc, and by how well the smaller nets predict the largest.

    AICc as in `theory.fitting`, of F, the sum of Huber losses
    extrapolation error: root mean square of log residuals at the largest x, of the fit to all others
    preferred: the form whose AICc is more than 4 below every other's, and whose extrapolation error is the lowest

F is half the residual sum of squares but for outliers, so that differences of AICc are what they are for Gaussian log
residuals. With several x the largest of the first is held out. An extrapolation fit needs 4 different x.
Paper `depth`, Appendix M; derived.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jumpboard.theory.fitting import aicc
from jumpboard.theory.forms import FloatArray, form_of
from jumpboard.theory.minimise import minimise

DISTINCT = 4
CLEAR = 4.0
THINNED = 4  # of many targets each has every fourth start


@dataclass(frozen=True)
class Scores:
    """Of one form on several targets: F, AICc (infinite with too few rows), extrapolation error (NaN where it is not
    fitted, infinite where the prediction is not positive), each [B]."""

    objective: FloatArray
    aicc: FloatArray
    error: FloatArray


def rivals_of(count: int) -> tuple[str, ...]:
    """The forms that are compared with `count` x, the power law first."""
    return ("power", "exponential", "log", "constant") if count == 1 else ("joint", "exponential", "constant")


def largest(x: FloatArray) -> NDArray[np.bool_]:
    """The rows [n] that an extrapolation holds out."""
    held: NDArray[np.bool_] = x[0] == x[0].max()
    return held


def scores(name: str, x: FloatArray, targets: FloatArray, labels: Sequence[str] = ()) -> Scores:
    """Of form `name` on the positive `targets` [B, n], permutations of one another, at `x` [k, n]."""
    log_y = np.log(targets) - np.log(targets[0]).mean()
    theta, best = _fitted(name, x, targets[0], log_y, labels)
    return Scores(
        best, aicc(best, x.shape[1], theta.shape[1]), _extrapolation_error(name, x, targets[0], log_y, labels)
    )


def preferred(criterion: Mapping[str, FloatArray], error: Mapping[str, FloatArray]) -> list[str]:
    """The preferred form of each target [B], by AICc (`criterion`) and error of each form; empty if there is none."""
    names = list(criterion)
    by_aicc, by_error = (np.stack([one[name] for name in names]) for one in (criterion, error))
    least = by_aicc.argmin(axis=0)
    two = np.sort(by_aicc, axis=0)[:2]
    with np.errstate(invalid="ignore"):
        clear = two[1] - two[0] > CLEAR
    told = clear & np.isfinite(by_error).any(axis=0)
    nearest = np.where(np.isfinite(by_error), by_error, np.inf).argmin(axis=0)
    return [
        names[form] if known and form == other else "" for form, other, known in zip(least, nearest, told, strict=True)
    ]


def permuted_within(y: FloatArray, seeds: Sequence[Any], count: int) -> FloatArray:
    """`count` permutations [count, n] of `y` [n] among the rows of each seed: a table without a law."""
    generator, units = np.random.default_rng(0), np.asarray(seeds)
    targets = np.tile(y, (count, 1))
    for seed in np.unique(units):
        own = units == seed
        targets[:, own] = generator.permuted(targets[:, own], axis=1)
    return targets


def _extrapolation_error(
    name: str, x: FloatArray, y: FloatArray, log_y: FloatArray, labels: Sequence[str]
) -> FloatArray:
    kept = ~largest(x)
    if min(len(np.unique(one)) for one in x[:, kept]) < DISTINCT:
        return np.full(len(log_y), np.nan)
    theta, _ = _fitted(name, x[:, kept], y, log_y[:, kept], labels)
    predicted = form_of(name, x[:, kept], y, labels).terms(x[:, ~kept])(theta)[0]
    error = np.sqrt(np.mean((predicted - log_y[:, ~kept]) ** 2, axis=1))
    return np.where(np.isfinite(error), error, np.inf)


def extrapolated(name: str, x: FloatArray, y: FloatArray, labels: Sequence[str] = ()) -> FloatArray | None:
    """y at all `x` [k, n] of the fit to the smaller ones; None where that is not fitted."""
    kept = ~largest(x)
    if min(len(np.unique(one)) for one in x[:, kept]) < DISTINCT:
        return None
    shift = np.log(y).mean()
    theta, _ = _fitted(name, x[:, kept], y, np.log(y[kept])[None] - shift, labels)
    predicted: FloatArray = np.exp(form_of(name, x[:, kept], y, labels).terms(x)(theta)[0][0] + shift)
    return predicted


def _fitted(
    name: str, x: FloatArray, y: FloatArray, log_y: FloatArray, labels: Sequence[str]
) -> tuple[FloatArray, FloatArray]:
    """The best fit of each target: parameters [B, P] and F [B]. `y` sets the scale alone."""
    form = form_of(name, x, y, labels)
    tried = form.starts if len(log_y) == 1 else form.starts[::THINNED]
    count, starts = len(log_y), len(tried)
    theta, losses = minimise(
        form.terms(x),
        np.tile(tried, (count, 1)),
        np.repeat(log_y, starts, axis=0),
        np.ones(x.shape[1]),
        form.lower,
        form.upper,
    )
    chosen = losses.reshape(count, starts).argmin(axis=1)
    best: FloatArray = theta.reshape(count, starts, -1)[np.arange(count), chosen]
    return best, losses.reshape(count, starts).min(axis=1)
