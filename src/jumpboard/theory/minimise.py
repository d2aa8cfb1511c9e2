"""Many small robust fits as one: batched Levenberg-Marquardt on the SUM of Huber losses of log residuals.

    F(theta) = sum_i w_i H(log y_i(theta) - log y_i)        H(r) = r^2/2 for |r| <= DELTA, else DELTA (|r| - DELTA/2)

A sum, not a mean: its gradient does not shrink as rows are added, so that no tolerance ends a large fit early. Each
problem of the batch has its own start, and may have its own weights and targets (resamples, permutations); bounds are
kept by projection. A batch too large for memory is cut, which changes nothing: problems do not touch one another.
Residuals above DELTA = 0.05, 5 % of y, count as outliers: seeds of one net differ by less.
Source: derived (arXiv 2203.15556 has the loss, with DELTA = 0.001, far below the noise of seeds).
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from jumpboard.theory.forms import FloatArray

DELTA = 0.05
ITERATIONS = 200
LOOSEST, TIGHTEST = 1e-9, 1e9
FLAT = 1e-9  # relative fall of F, promised or seen, of a step that is hardly damped
EXACT = 1e-24  # F of a model that runs through every point, but for rounding
NUMBERS = 2**23  # of a Jacobian, 64 MiB: some six arrays of its size are held at once
Model = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""Parameters [B, P] -> log y [B, n] and its derivatives [B, P, n]."""


def huber(residuals: FloatArray) -> FloatArray:
    """The loss of each residual."""
    size = np.abs(residuals)
    inside = np.minimum(size, DELTA)
    loss: FloatArray = inside * (size - inside / 2)
    return loss


def objective(model: Model, theta: FloatArray, log_y: FloatArray, weights: FloatArray) -> FloatArray:
    """F of each problem [B]; infinite where the model is not defined."""
    return _evaluated(model, theta, log_y, weights)[0]


def minimise(
    model: Model, starts: FloatArray, log_y: FloatArray, weights: FloatArray, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """From `starts` [B, P] to minima: parameters [B, P] and F [B].

    `log_y` and `weights` are [B, n], or [n] for all problems alike; parameters stay within `lower` and `upper` [P].
    """
    step = max(1, NUMBERS // (starts.shape[1] * log_y.shape[-1]))
    parts = [slice(start, start + step) for start in range(0, len(starts), step)]
    targets, weighted = np.atleast_2d(log_y), np.atleast_2d(weights)
    found = [_minimised(model, starts[part], _of(targets, part), _of(weighted, part), lower, upper) for part in parts]
    return np.concatenate([theta for theta, _ in found]), np.concatenate([losses for _, losses in found])


def _minimised(
    model: Model, starts: FloatArray, targets: FloatArray, weighted: FloatArray, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """One batch; `targets` and `weighted` are [B, n] or [1, n]."""
    theta = np.clip(starts, lower, upper)
    best, gradient, hessian = _evaluated(model, theta, targets, weighted)
    final, losses = theta.copy(), best.copy()
    at = np.arange(len(theta))
    damping = np.full(len(theta), 1e-2)
    for _ in range(ITERATIONS):
        trial = np.clip(theta + _step(theta, gradient, hessian, damping, lower, upper), lower, upper)
        promised = np.einsum("bp,bp->b", gradient, theta - trial)
        loss, new_gradient, new_hessian = _evaluated(model, trial, _of(targets, at), _of(weighted, at))
        better = loss < best
        small = np.minimum(promised, np.where(better, best - loss, np.inf)) <= FLAT * best
        done = small & (damping <= 1) | ~better & (damping >= TIGHTEST) | (best <= EXACT)
        moved = np.abs(trial - theta).max(axis=1) > 0
        done |= ~moved
        theta[better], best[better] = trial[better], loss[better]
        gradient[better], hessian[better] = new_gradient[better], new_hessian[better]
        damping = np.clip(np.where(better, damping / 8, damping * 4), LOOSEST, TIGHTEST)
        final[at], losses[at] = theta, best
        if done.any():
            left = ~done
            theta, best, gradient, hessian = theta[left], best[left], gradient[left], hessian[left]
            damping, at = damping[left], at[left]
            if not len(at):
                break
    return final, losses


def _of(rows: FloatArray, at: NDArray[np.intp] | slice) -> FloatArray:
    """Of some of the problems; a single row is for all."""
    return rows if len(rows) == 1 else rows[at]


def _evaluated(
    model: Model, theta: FloatArray, log_y: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """F, its gradient, and its Hessian without second derivatives of the model, by weights that majorise H."""
    predicted, jacobian = model(theta)
    residuals = predicted - log_y
    size = np.abs(residuals)
    loss = np.einsum("bn,bn->b", np.broadcast_to(weights, size.shape), huber(residuals))
    pull = weights / np.maximum(size / DELTA, 1.0)
    weighted = jacobian * pull[:, None]
    gradient = (weighted @ residuals[:, :, None])[:, :, 0]
    hessian = weighted @ jacobian.swapaxes(1, 2)
    return np.where(np.isfinite(loss), loss, np.inf), gradient, hessian


def _step(
    theta: FloatArray, gradient: FloatArray, hessian: FloatArray, damping: FloatArray, lower: FloatArray,
    upper: FloatArray,
) -> FloatArray:  # fmt: skip
    """Damped by the Hessian's diagonal; parameters that a bound holds back do not move."""
    held = ((theta <= lower) & (gradient >= 0)) | ((theta >= upper) & (gradient <= 0))
    free = ~held
    diagonal = np.einsum("bpp->bp", hessian)
    matrix = hessian * (free[:, :, None] & free[:, None, :])
    place = np.arange(theta.shape[1])
    matrix[:, place, place] = np.where(held, 1.0, diagonal * (1 + damping[:, None]) + 1e-12)
    return np.asarray(np.linalg.solve(matrix, np.where(held, 0.0, -gradient)[:, :, None])[:, :, 0], dtype=np.float64)
