"""Scaling forms as sums of positive terms, so that one minimiser and one Jacobian serve them all.

    log y = log sum_j f_j exp(a_j - r_j z_j)        log-sum-exp: every amplitude exp(a_j) is positive

    power         y = E + A x^-alpha                    z = log x, centred
    joint         y = E + sum_i A_i x_i^-alpha_i        the same for any number of x
    exponential   y = E + A exp(-rate x)                z = x / its span, centred
    log           y = a - b log x                       two terms f = 1 - t, t at the ends of log x: positive in between
    constant      y = E

Parameters are those of scaled data (log y and z centred): starts and bounds then mean the same for every table.
Sources: arXiv 2605.08297, Appendix M, and arXiv 2203.15556 for the log-sum-exp form; the rest derived.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

FORMS = ("power", "joint", "exponential", "log", "constant")
RATES = (0.03, 0.1, 0.3, 1.0, 3.0)
SHARES = (0.05, 0.3, 1.0)  # of the typical y, for amplitudes
FLOORS = (0.05, 0.5, 0.9)  # of the smallest y, for E
MOST_STARTS = 675
SMALLEST_RATE, LARGEST_RATE = 1e-3, 20.0
NEGLIGIBLE = 12.0  # a term this many units of log y below the smallest y is none


@dataclass(frozen=True)
class Terms:
    """The terms at n points: `z` and `factor` [T, n]; `rates` names the terms whose exponent has a rate.

    Parameters are the T amplitudes a_j, then one rate for each of `rates`.
    """

    z: FloatArray
    factor: FloatArray | None
    rates: tuple[int, ...]

    def __call__(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Parameters [B, P] -> log y [B, n] and its derivatives [B, P, n]; NaN where the sum is not positive."""
        count, points = self.z.shape
        exponent = np.repeat(theta[:, :count, None], points, axis=2)
        for place, term in enumerate(self.rates):
            exponent[:, term] -= theta[:, count + place, None] * self.z[term]
        highest = exponent.max(axis=1)
        exponent -= highest[:, None]
        shares = np.exp(exponent, out=exponent)
        if self.factor is not None:
            shares *= self.factor
        total = shares.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            log_y = np.where(total > 0, np.log(total), np.nan) + highest
            shares /= total[:, None]
        jacobian = np.empty((len(theta), count + len(self.rates), points))
        jacobian[:, :count] = shares
        for place, term in enumerate(self.rates):
            np.multiply(shares[:, term], -self.z[term], out=jacobian[:, count + place])
        return log_y, jacobian


@dataclass(frozen=True)
class Form:
    """A form scaled to one table: `terms(x [k, m])` at any points, `starts` [B, P] and bounds [P].

    `report` turns parameters [B, P] into those of the formula, in the order of `names`; `positive` where these are
    positive by construction.
    """

    name: str
    names: tuple[str, ...]
    terms: Callable[[FloatArray], Terms]
    starts: FloatArray
    lower: FloatArray
    upper: FloatArray
    report: Callable[[FloatArray], FloatArray]
    positive: bool = True


def form_of(name: str, x: FloatArray, y: FloatArray, labels: Sequence[str] = ()) -> Form:
    """The form scaled to `x` [k, n] and `y` [n]; `labels` name the x where these are several.

    All y, and where it takes logarithms all x, must be positive, and each x must have two different values (`constant`
    needs none).
    """
    shift = float(np.log(y).mean())
    low, high = float(np.log(y).min()) - shift, float(np.log(y).max()) - shift
    match name:
        case "power" | "joint":
            return _decaying(name, x, np.log, shift, low, high, labels)
        case "exponential":
            return _decaying(name, x, None, shift, low, high, labels)
        case "log":
            return _logarithmic(x, shift, low, high)
        case "constant":
            return Form(
                name, ("E",), lambda at: Terms(np.zeros((1, at.shape[1])), None, ()), np.array([[(low + high) / 2]]),
                np.array([low - 1]), np.array([high + 1]), lambda theta: np.exp(theta + shift),
            )  # fmt: skip
    raise ValueError(f"form {name!r}; accepted: {', '.join(FORMS)}")


def _decaying(
    name: str, x: FloatArray, log: Callable[..., FloatArray] | None, shift: float, low: float, high: float,
    labels: Sequence[str],
) -> Form:  # fmt: skip
    """E and one term per x. The unit of an exponential's x is its span."""
    raw = x if log is None else log(x)
    centre, unit = raw.mean(axis=1), np.ptp(raw, axis=1) if log is None else np.ones(len(x))
    count = len(x)

    def terms(at: FloatArray) -> Terms:
        z = ((at if log is None else log(at)) - centre[:, None]) / unit[:, None]
        return Terms(np.vstack([np.zeros((1, at.shape[1])), z]), None, tuple(range(1, count + 1)))

    def report(theta: FloatArray) -> FloatArray:
        """Amplitudes back at z = 0 of the table; order E, then A and rate of each x."""
        rates = theta[:, 1 + count :] / unit
        with np.errstate(over="ignore"):
            amplitudes = np.exp(theta[:, 1 : 1 + count] + shift + rates * centre)
        pairs = np.stack([amplitudes, rates], axis=2).reshape(len(theta), -1)
        return np.hstack([np.exp(theta[:, :1] + shift), pairs])

    rate = "rate" if log is None else "alpha"
    several = name == "joint" or count > 1
    pairs = [(f"A_{label}", f"{rate}_{label}") for label in labels] if several else [("A", rate)]
    floors, amplitudes = [np.log(share) + low for share in FLOORS], [np.log(share) for share in SHARES]
    grid = np.array(list(product(floors, *[amplitudes] * count, *[RATES] * count)))
    if len(grid) > MOST_STARTS:
        grid = np.random.default_rng(0).permutation(grid)[:MOST_STARTS]
    return Form(
        name,
        ("E", *(one for pair in pairs for one in pair)),
        terms,
        grid,
        np.array([low - NEGLIGIBLE] * (1 + count) + [SMALLEST_RATE] * count),
        np.array([high] + [high + NEGLIGIBLE] * count + [LARGEST_RATE] * count),
        report,
    )


def _logarithmic(x: FloatArray, shift: float, low: float, high: float) -> Form:
    first, last = float(np.log(x).min()), float(np.log(x).max())

    def terms(at: FloatArray) -> Terms:
        t = (np.log(at[0]) - first) / (last - first)
        return Terms(np.zeros((2, at.shape[1])), np.stack([1 - t, t]), ())

    def report(theta: FloatArray) -> FloatArray:
        ends = np.exp(theta + shift)
        b = (ends[:, 0] - ends[:, 1]) / (last - first)
        return np.stack([ends[:, 0] + b * first, b], axis=1)

    ends = (low, (low + high) / 2, high)
    bounds = np.array([low - NEGLIGIBLE] * 2), np.array([high + NEGLIGIBLE] * 2)
    return Form("log", ("a", "b"), terms, np.array(list(product(ends, ends))), *bounds, report, positive=False)
