"""Rule `width_raises_observability`: do wider nets have a larger alignment dimension, and fewer flips?

    slopes on log2(width) of d_align = min(S^2/V, S^2/T) and of the share of flips, <mean_train, mean_test> <= 0, each
    averaged over depths, per seed

    supported      that of d_align is positive and that of the flips negative (90 % intervals over seeds exclude 0)
    contradicted   one of them is resolved with the other sign

Where S is not resolved d_align is no number but 0 with `d_align_resolved` 0: with fewer than nine runs in ten resolved
the claim is inconclusive. Control: width labels permuted within each seed and depth. Paper `depth`, observability
[stated]; slopes and limits are derived.
"""

import numpy as np

from jumpboard.claims.base import CONTRADICTED, INCONCLUSIVE, SUPPORTED, Ruling
from jumpboard.claims.controls import by_permutation, permute_widths
from jumpboard.claims.near_diagonal import LEAST_RESOLVED
from jumpboard.claims.observations import Observations
from jumpboard.claims.statistics import Interval, mean_interval, slopes

COLUMNS = ("d_align", "d_align_resolved", "flips")
BY_SAMPLES = True
STATISTIC = "slope of d_align on log2(width), mean over depths, per doubling of width"
SUPPORTING = (0.0, None)


def judge(seen: Observations) -> Ruling:
    """`seen` holds one sample size, without missing runs."""
    rise, flips = (_slope(seen, name) for name in ("d_align", "flips"))
    intervals = {"slope of d_align": rise, "slope of flips": flips}
    resolved = float(seen.columns["d_align_resolved"].mean())
    if resolved < LEAST_RESOLVED:
        return Ruling(INCONCLUSIVE, f"the alignment dimension is resolved in {resolved:.0%} of runs", rise, intervals)
    if rise.negative or flips.positive:
        wrong = "d_align falls" if rise.negative else "flips grow more frequent"
        return Ruling(CONTRADICTED, f"{wrong} with width", rise, intervals)
    if rise.positive and flips.negative:
        return Ruling(SUPPORTED, "", rise, intervals)
    return Ruling(
        INCONCLUSIVE, f"the slope of {'flips' if rise.positive else 'd_align'} is not resolved", rise, intervals
    )


def _slope(seen: Observations, name: str) -> Interval:
    by_depth = slopes(np.log2(seen.widths), seen.columns[name][..., 0])
    return mean_interval(by_depth.mean(axis=1))


null = by_permutation(judge, permute_widths)
