"""Certificates that hold for one pair of nets, and how many samples each rung of the ladder needs.

d = loss of the old net - loss of the other, range 2B, n samples that chose neither net, V the variance of d:

    bernstein    mean - sqrt(2 V ln(2/delta)/n) - 7 (2B) ln(2/delta)/(3 (n - 1))
    step_grid    the same with ln(2 G/delta): all G steps of a grid along one direction at once
    hoeffding    mean - 2B sqrt(ln(1/delta)/(2 n))

lie above the true gain with probability at most delta. The slack is what is taken off the mean: the smallest gain that
n samples certify. Paper `depth` [derived]; Maurer and Pontil 2009, theorem 4, and Hoeffding 1963.
"""

import math
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

MOST = 2**62
Value = TypeVar("Value", float, NDArray[np.float64])


def bernstein_slack(variance: Value, span: float, n: int, delta: float, steps: int = 1) -> Value:
    """Of n >= 2 differences within `span`, `steps` of them examined on the same samples."""
    log = math.log(2 * steps / delta)
    slack: Value = (2 * variance * log / n) ** 0.5 + 7 * span * log / (3 * (n - 1))
    return slack


def hoeffding_slack(span: float, n: int, delta: float) -> float:
    """Of n >= 1 differences within `span`."""
    return span * math.sqrt(math.log(1 / delta) / (2 * n))


def samples_needed(slack: Callable[[int], float], gain: float) -> int | None:
    """The smallest n, at least 2, from which a slack that falls with n is below `gain`; None where the gain is not
    above 0 or more than 2^62 samples would be needed."""
    if not gain > 0 or slack(MOST) >= gain:
        return None
    few, many = 1, 2
    while slack(many) >= gain:
        few, many = many, 2 * many
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (middle, many) if slack(middle) >= gain else (few, middle)
    return many
