"""Rule `rebound`: at too small a width, does more depth alone make test loss rise again, and less so in wider nets?

    rebound(N) = L_test(deepest) - L_test(D*)    D* the depth with the lowest mean validation loss of the OTHER seeds

per seed and width N; and the slope of rebound(N) on log2(N), per seed.

    supported      at the smallest width the rebound is positive, and the slope is negative
    contradicted   at the smallest width it is positive and the slope too; or at the smallest width it is negative

(90 % intervals over seeds exclude 0.) A seed's own validation loss must not choose its D*, any more than test data may:
its luck is in both losses, and would manufacture rebounds of about one seed standard deviation where loss is flat.
Paper `depth`, joint scaling [stated]; the choice by the other seeds is derived.
"""

import numpy as np
from numpy.typing import NDArray

from jumpboard.claims.base import CONTRADICTED, INCONCLUSIVE, SUPPORTED, Ruling
from jumpboard.claims.controls import by_permutation, permute_cells
from jumpboard.claims.observations import Observations
from jumpboard.claims.statistics import FloatArray, mean_interval, slopes

COLUMNS = ("validation_loss", "test_loss")
BY_SAMPLES = True
STATISTIC = "test loss of the deepest net minus that at D*, at the smallest width, nats"
SUPPORTING = (0.0, None)


def best_depth(validation: FloatArray) -> NDArray[np.intp]:
    """Index of D*: `validation` [seed, depth, ...] -> [seed, ...]. Of equal losses the shallower net's counts."""
    best: NDArray[np.intp] = np.argmin(validation, axis=1)
    return best


def depth_best_for_others(validation: FloatArray) -> NDArray[np.intp]:
    """Index of D* for each seed from the mean of the others; of a single seed its own. Shapes as in `best_depth`."""
    alone = len(validation) == 1
    return best_depth(validation if alone else validation.sum(axis=0) - validation)


def rebounds(validation: FloatArray, test: FloatArray) -> FloatArray:
    """[seed, depth, width] twice -> [seed, width]."""
    best = depth_best_for_others(validation)[:, None]
    fallen: FloatArray = test[:, -1] - np.take_along_axis(test, best, axis=1)[:, 0]
    return fallen


def judge(seen: Observations) -> Ruling:
    """`seen` holds one sample size, without missing runs."""
    by_width = rebounds(seen.columns["validation_loss"][..., 0], seen.columns["test_loss"][..., 0])
    at = {width: mean_interval(by_width[:, w]) for w, width in enumerate(seen.widths)}
    smallest = at[seen.widths[0]]
    slope = mean_interval(slopes(np.log2(seen.widths), by_width))
    intervals = {f"rebound at width {width}": one for width, one in at.items()} | {"slope on log2(width)": slope}
    if smallest.positive and slope.negative:
        return Ruling(SUPPORTED, "", smallest, intervals)
    if smallest.positive and slope.positive:
        return Ruling(CONTRADICTED, "the rebound grows with width", smallest, intervals)
    if smallest.negative:
        return Ruling(CONTRADICTED, "the deepest net is the better one at the smallest width", smallest, intervals)
    unresolved = "slope on log2(width)" if smallest.positive else f"rebound at width {seen.widths[0]}"
    return Ruling(INCONCLUSIVE, f"the {unresolved} is not resolved", smallest, intervals)


null = by_permutation(judge, permute_cells)
