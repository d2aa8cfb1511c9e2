"""Rule `joint_gain`: does test loss fall when depth and width grow together?

The path is the grid's diagonal: i-th smallest depth with i-th smallest width, i up to the shorter of the two lists.
Per seed: the slope of test loss on log2(depth) along it, and the fall at each step.

    supported      the slope is negative, and no step rises (90 % interval over seeds excludes 0)
    contradicted   the slope is positive (likewise)

Paper `depth`, joint scaling [stated].
"""

import numpy as np

from jumpboard.claims.base import CONTRADICTED, INCONCLUSIVE, SUPPORTED, Ruling
from jumpboard.claims.controls import by_permutation, permute_cells
from jumpboard.claims.observations import Observations
from jumpboard.claims.statistics import mean_interval, slopes

COLUMNS = ("test_loss",)
BY_SAMPLES = True
STATISTIC = "slope of test loss on log2(depth) along the diagonal, nats per doubling of depth"
SUPPORTING = (None, 0.0)


def judge(seen: Observations) -> Ruling:
    """`seen` holds one sample size, without missing runs."""
    path = np.arange(min(len(seen.depths), len(seen.widths)))
    loss = seen.columns["test_loss"][:, path, path, 0]
    points = [f"depth {seen.depths[i]}, width {seen.widths[i]}" for i in path]
    slope = mean_interval(slopes(np.log2(seen.depths)[path], loss))
    falls = {f"fall from {points[i]} to {points[i + 1]}": mean_interval(loss[:, i] - loss[:, i + 1]) for i in path[:-1]}
    rising = [name.removeprefix("fall ") for name, fall in falls.items() if fall.negative]
    intervals = {"slope": slope, **falls}
    if slope.positive:
        return Ruling(CONTRADICTED, "", slope, intervals)
    if slope.negative and not rising:
        return Ruling(SUPPORTED, "", slope, intervals)
    reason = f"loss rises {' and '.join(rising)}" if slope.negative else "the slope is not resolved"
    return Ruling(INCONCLUSIVE, reason, slope, intervals)


null = by_permutation(judge, permute_cells)
