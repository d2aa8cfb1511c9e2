"""Rival forms against one another: by AICc, and by how well the smaller nets predict the largest.

    AICc = n log(2F/n) + 2q + 2q(q + 1)/(n - q - 1)      q: parameters and the noise's scale; F: sum of Huber losses
    extrapolation error: root mean square of log residuals at the largest x, of the fit to all others

F is half the residual sum of squares but for outliers, so that differences of AICc are what they are for Gaussian log
residuals. With several x the largest of the first is held out. An extrapolation fit needs 4 different x.
Paper `depth`, Appendix M; Hurvich and Tsai 1989 for AICc; the rest derived.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jumpboard.theory.forms import FloatArray, form_of
from jumpboard.theory.minimise import minimise

DISTINCT = 4
SMALLEST = 1e-24  # F per row of an exact fit


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
    n, q = x.shape[1], theta.shape[1] + 1
    aicc = np.full(len(best), np.inf)
    if n > q + 1:
        aicc = n * np.log(2 * np.maximum(best / n, SMALLEST)) + 2 * q + 2 * q * (q + 1) / (n - q - 1)
    return Scores(best, aicc, _extrapolation_error(name, x, targets[0], log_y, labels))


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
    """The best of all starts for each target: parameters [B, P] and F [B]. `y` sets the scale alone."""
    form = form_of(name, x, y, labels)
    count, starts = len(log_y), len(form.starts)
    theta, losses = minimise(
        form.terms(x),
        np.tile(form.starts, (count, 1)),
        np.repeat(log_y, starts, axis=0),
        np.ones(x.shape[1]),
        form.lower,
        form.upper,
    )
    chosen = losses.reshape(count, starts).argmin(axis=1)
    best: FloatArray = theta.reshape(count, starts, -1)[np.arange(count), chosen]
    return best, losses.reshape(count, starts).min(axis=1)
