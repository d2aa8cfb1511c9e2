"""Rule `data_moves_rebound`: is the best depth at a given width larger with more training data?

    slope of log2 D*(N, M) on log2(M), averaged over widths N, per seed    D*: the depth with the lowest validation loss

    supported      the slope is positive (90 % interval over seeds excludes 0)
    contradicted   the slope is negative (likewise)

The comparison is paired: the same seeds and widths at every sample size M. Paper `depth`, joint scaling [stated].
"""

import numpy as np

from jumpboard.claims.base import CONTRADICTED, INCONCLUSIVE, SUPPORTED, Ruling
from jumpboard.claims.controls import by_permutation, permute_sample_sizes
from jumpboard.claims.observations import Observations
from jumpboard.claims.rebound import best_depth
from jumpboard.claims.statistics import mean_interval, slopes

COLUMNS = ("validation_loss",)
BY_SAMPLES = False
STATISTIC = "slope of log2(D*) on log2(samples), mean over widths, doublings of depth per doubling of samples"
SUPPORTING = (0.0, None)


def judge(seen: Observations) -> Ruling:
    """`seen` holds all sample sizes, without missing runs."""
    best = np.log2(seen.depths)[best_depth(seen.columns["validation_loss"])]
    by_width = slopes(np.log2(seen.samples), best)
    slope = mean_interval(by_width.mean(axis=1))
    intervals = {"slope": slope}
    intervals |= {f"slope at width {width}": mean_interval(by_width[:, w]) for w, width in enumerate(seen.widths)}
    if slope.positive:
        return Ruling(SUPPORTED, "", slope, intervals)
    if slope.negative:
        return Ruling(CONTRADICTED, "", slope, intervals)
    return Ruling(INCONCLUSIVE, "the slope is not resolved", slope, intervals)


null = by_permutation(judge, permute_sample_sizes)
