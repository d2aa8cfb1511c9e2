"""Rule `trend_in_depth`: does a value of trained nets fall as they grow deeper?

    slope of the value on log2(depth), averaged over widths, per seed

    supported      the slope is negative (90 % interval over seeds excludes 0)
    contradicted   the slope is positive (likewise)

Squared signals may be negative, which means not resolved: they stay as they are, on a linear scale, in units of their
root mean square over all nets (one number for all, so that it moves no verdict). Where every value is resolved the
slope is that of log2 of the value. Paper `depth`, signal decay [stated]; the scales are derived.
"""

import numpy as np

from jumpboard.claims.base import CONTRADICTED, INCONCLUSIVE, SUPPORTED, Ruling
from jumpboard.claims.controls import by_permutation, permute_depths
from jumpboard.claims.observations import Observations
from jumpboard.claims.statistics import mean_interval, slopes

COLUMNS = ("{value}", "{value}_resolved")
BY_SAMPLES = True
STATISTIC = "slope of the value on log2(depth), mean over widths"
SUPPORTING = (None, 0.0)


def judge(seen: Observations) -> Ruling:
    """`seen` holds one sample size, without missing runs."""
    (name, values), (_, resolved) = seen.columns.items()
    if (resolved > 0).all() and (values > 0).all():
        scaled = np.log2(values)
        statistic = f"slope of log2({name}) on log2(depth), mean over widths, doublings per doubling of depth"
    else:
        scaled = values / (float(np.sqrt((values**2).mean())) or 1.0)
        statistic = (
            f"slope of {name} on log2(depth), mean over widths, root mean squares per doubling of depth: linear, as not"
            " every value is resolved"
        )
    by_width = slopes(np.log2(seen.depths), scaled[..., 0].swapaxes(1, 2))
    slope = mean_interval(by_width.mean(axis=1))
    intervals = {"slope": slope}
    intervals |= {f"slope at width {width}": mean_interval(by_width[:, w]) for w, width in enumerate(seen.widths)}
    if slope.negative:
        return Ruling(SUPPORTED, "", slope, intervals, statistic)
    if slope.positive:
        return Ruling(CONTRADICTED, "", slope, intervals, statistic)
    return Ruling(INCONCLUSIVE, "the slope is not resolved", slope, intervals, statistic)


null = by_permutation(judge, permute_depths)
