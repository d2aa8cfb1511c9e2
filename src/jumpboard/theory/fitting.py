"""A form fitted to a table: the best of a grid of starts, bootstrap intervals, and what of it is identified.

All starts are one batch, all resamples another; each resample starts from the 5 best distinct optima. A parameter is
`not identified`, and has no number, where

    one of its x has fewer than 5 different values (E, a and b: any x)    it, or a limit, sits at a bound of the search
    its 90 % interval is wider than a factor 3, or includes 0              there are too few units for an interval
    y does not vary, or a constant fits as well by AICc = n log(2F/n) + 2q + 2q(q + 1)/(n - q - 1), q = P + 1
    one x is a multiple or a power of another: their terms could change places

Paper `depth`, Appendix M; Hurvich and Tsai 1989 for AICc; the conditions are derived.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jumpboard.theory.forms import FloatArray, Form, Terms, form_of
from jumpboard.theory.minimise import minimise
from jumpboard.theory.resampling import limits, resample, stretch

DISTINCT = 5
FEW = f"fewer than {DISTINCT} different x"
WIDEST = 3.0
OPTIMA = 5
SAME, APART = 1e-6, 1e-3  # relative, of F; absolute, of scaled parameters
TAIL = 0.05  # share of resamples at a bound, where a limit is one
EXACT = 1e-24  # F per row of an exact fit
EVEN = 1e-9  # log y within this do not vary


@dataclass(frozen=True)
class Parameter:
    """A parameter of the formula with its 90 % limits; all None where it is not identified, for the `reason`."""

    estimate: float | None
    low: float | None
    high: float | None
    reason: str = ""

    @property
    def identified(self) -> bool:
        return self.estimate is not None


@dataclass(frozen=True)
class Optimum:
    """The best of all starts: parameters [P], F, the best distinct optima [<= 5, P], and the share of starts that
    reached F."""

    theta: FloatArray
    objective: float
    optima: FloatArray
    starts: int
    share: float


@dataclass(frozen=True)
class Fit:
    """A fitted form. `curve`, `curve_low` and `curve_high` are y at the points asked for; limits None without them."""

    form: Form
    optimum: Optimum
    parameters: Mapping[str, Parameter]
    curve: FloatArray
    curve_low: FloatArray | None
    curve_high: FloatArray | None


def aicc(objective: FloatArray, n: int, parameters: int) -> FloatArray:
    """AICc of fits with F `objective` [B] to n rows; infinite with too few of them."""
    q = parameters + 1
    if n <= q + 1:
        return np.full(len(objective), np.inf)
    fitted = n * np.log(2 * np.maximum(objective / n, EXACT))
    return np.asarray(fitted + 2 * q + 2 * q * (q + 1) / (n - q - 1), dtype=np.float64)


def scaled(y: FloatArray) -> FloatArray:
    """log y about its mean, the target of every form."""
    log_y = np.log(y)
    centred: FloatArray = log_y - log_y.mean()
    return centred


def optimise(form: Form, x: FloatArray, y: FloatArray) -> Optimum:
    """The form's best fit to `y` [n] at `x` [k, n]."""
    theta, losses = minimise(form.terms(x), form.starts, scaled(y), np.ones(len(y)), form.lower, form.upper)
    order = np.argsort(losses, kind="stable")
    best = float(losses[order[0]])
    optima: list[FloatArray] = []
    for place in order:
        if all(np.abs(theta[place] - other).max() > APART for other in optima):
            optima.append(theta[place])
        if len(optima) == OPTIMA:
            break
    share = float(np.mean(losses <= best * (1 + SAME) + SAME**2))
    return Optimum(theta[order[0]], best, np.array(optima), len(losses), share)


def replicate(form: Form, x: FloatArray, y: FloatArray, optima: FloatArray, weights: FloatArray) -> FloatArray:
    """Parameters [B, P] of the resamples `weights` [B, n]: of each, the best fit from the optima."""
    starts = np.tile(optima, (len(weights), 1))
    repeated = np.repeat(weights, len(optima), axis=0)
    theta, losses = minimise(form.terms(x), starts, scaled(y), repeated, form.lower, form.upper)
    chosen = losses.reshape(len(weights), -1).argmin(axis=1)
    best: FloatArray = theta.reshape(len(weights), len(optima), -1)[np.arange(len(weights)), chosen]
    return best


def fit(
    name: str, x: FloatArray, y: FloatArray, labels: Sequence[str] = (), seeds: Sequence[Any] | None = None,
    resamples: int = 200, at: FloatArray | None = None,
) -> Fit:  # fmt: skip
    """Fit form `name` to `y` [n] at `x` [k, n]; `seeds` [n] are the bootstrap's units, rows where None.

    `labels` [k] name the x. The curve is at `at` [k, m], or at `x`. y must be positive, and x where the form takes its
    logarithm; each x must vary.
    """
    form = form_of(name, x, y, labels)
    optimum = optimise(form, x, y)
    factor = stretch(len(y), seeds, len(optimum.theta))
    terms, shift = form.terms(x if at is None else at), float(np.log(y).mean())
    curve = terms(optimum.theta[None])[0][0] + shift
    fault = _fault(form, x, y, optimum)
    if factor is None or fault:
        reason = fault or "too few units for an interval"
        parameters = dict.fromkeys(form.names, Parameter(None, None, None, reason))
        return Fit(form, optimum, parameters, np.exp(curve), None, None)
    weights = resample(len(y), seeds, resamples, np.random.default_rng(0))
    replicates = replicate(form, x, y, optimum.optima, weights)
    low, high = limits(curve, terms(replicates)[0] + shift, factor)
    parameters = identify(form, x, optimum.theta, replicates, factor)
    return Fit(form, optimum, parameters, np.exp(curve), np.exp(low), np.exp(high))


def _fault(form: Form, x: FloatArray, y: FloatArray, optimum: Optimum) -> str:
    """Why nothing at all is identified; empty where nothing stands against it."""
    if all(len(np.unique(one)) < DISTINCT for one in x):
        return FEW
    if np.ptp(np.log(y)) < EVEN:
        return "y does not vary"
    if _follows(form.terms(x)):
        return "one x follows from another"
    level, free = optimise(form_of("constant", x, y), x, y), len(optimum.theta)
    constant, law = (
        aicc(np.array([F]), len(y), count)[0] for F, count in ((level.objective, 1), (optimum.objective, free))
    )
    return "a constant fits as well" if free > 1 and constant <= law else ""


def _follows(terms: Terms) -> bool:
    """Whether two terms with rates fall along the same line."""
    along = terms.z[list(terms.rates)]
    return len(along) > 1 and bool(np.triu(np.abs(np.corrcoef(along)), 1).max() > 1 - EVEN)


def identify(
    form: Form, x: FloatArray, theta: FloatArray, replicates: FloatArray, factor: float
) -> dict[str, Parameter]:
    """Each parameter of the formula with its limits, or the reason why it has none."""
    few = [len(np.unique(one)) < DISTINCT for one in x]
    estimate, copies = form.report(theta[None])[0], form.report(replicates)
    low, high = interval(estimate, copies, factor, form.positive)
    held = _at_bound(form, theta[None])[0] | (_at_bound(form, replicates).mean(axis=0) > TAIL)
    found = {}
    for place, name in enumerate(form.names):
        own = few[(place - 1) // 2 : (place + 1) // 2] if form.positive and place else few
        if any(own):
            reason = FEW
        elif held[place]:
            reason = "at a bound of the search"
        else:
            reason = too_wide(low[place], high[place], WIDEST)
        numbers = (float(estimate[place]), float(low[place]), float(high[place]))
        found[name] = Parameter(None, None, None, reason) if reason else Parameter(*numbers)
    return found


def interval(estimate: FloatArray, copies: FloatArray, factor: float, positive: bool) -> tuple[FloatArray, FloatArray]:
    """Limits [P] of reported parameters, on their logarithms where they are positive."""
    if not positive:
        return limits(estimate, copies, factor)
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = limits(np.log(estimate), np.log(copies), factor)
        return np.exp(low), np.exp(high)


def too_wide(low: float, high: float, widest: float) -> str:
    """Why an interval pins nothing down; empty where it does."""
    if not (np.isfinite(low) and np.isfinite(high)):
        return "no finite interval"
    if low <= 0 <= high:
        return "the interval includes 0"
    return f"interval wider than a factor {widest:g}" if max(low / high, high / low) > widest else ""


def _at_bound(form: Form, theta: FloatArray) -> NDArray[np.bool_]:
    """Which reported parameters [B, P] sit at a bound: scaled amplitudes stand before rates, reported ones between."""
    near = 1e-6 * (form.upper - form.lower)
    held: NDArray[np.bool_] = (theta - form.lower <= near) | (form.upper - theta <= near)
    if not form.positive:
        return np.broadcast_to(held.any(axis=1, keepdims=True), held.shape)
    count = held.shape[1] // 2
    order = [0, *(place for i in range(count) for place in (1 + i, 1 + count + i))]
    return held[:, order]
