"""Bootstrap resamples as weights, and intervals from them.

A resample draws n rows, or all rows of S seeds, with replacement: a row's weight is how often it was drawn. Limits are
the 5 % and 95 % quantiles of the resamples' estimates, their distances from the estimate stretched by

    t(0.95, S - 1)/z(0.95) sqrt(S/(S - 1))      seeds;    t(0.95, n - P)/z(0.95) sqrt(n/(n - P))    rows, P parameters

without which intervals from a few seeds are too narrow (resampling four of them loses a quarter of the variance).
Source: derived.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtrit

from jumpboard.theory.forms import FloatArray

LEVEL = 0.90


def resample(n: int, seeds: Sequence[Any] | None, count: int, generator: np.random.Generator) -> FloatArray:
    """`count` resamples of n rows as weights [count, n]; `seeds` [n] names the unit that each row is of."""
    units = np.arange(n) if seeds is None else np.unique(np.asarray(seeds), return_inverse=True)[1]
    number = int(units.max()) + 1
    drawn = generator.multinomial(number, np.full(number, 1 / number), size=count)
    weights: FloatArray = drawn[:, units].astype(np.float64)
    return weights


def stretch(n: int, seeds: Sequence[Any] | None, parameters: int) -> float | None:
    """The factor above; None where there are too few units for an interval."""
    units, lost = (n, parameters) if seeds is None else (len(set(seeds)), 1)
    if units <= lost:
        return None
    return float(stdtrit(units - lost, (1 + LEVEL) / 2) / ndtri((1 + LEVEL) / 2) * (units / (units - lost)) ** 0.5)


def limits(estimate: FloatArray, replicates: FloatArray, factor: float) -> tuple[FloatArray, FloatArray]:
    """Two-sided 90 % limits [P] from replicates [B, P], on the scale they are given in."""
    low, high = np.quantile(replicates, ((1 - LEVEL) / 2, (1 + LEVEL) / 2), axis=0)
    return estimate + factor * (low - estimate), estimate + factor * (high - estimate)
