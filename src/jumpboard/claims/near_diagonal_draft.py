"""Rule `near_diagonal_draft`: do most sites meet the draft's criterion of a diagonal covariance?

    share of a net's sites with max |Cov_ij| < 1e-5, i != j; per seed its mean over all nets

    supported      it is above 1/2 (lower limit of the 90 % interval over seeds)
    contradicted   it is below 1/2 (upper limit)

The criterion is an absolute one: gradients so small that their mean variance is below 1e-5 meet it whatever their
correlations, and sampling noise breaks it where there are none. So the control of `supported` is the share of runs with
such a mean variance at half of their sites or more; that of `contradicted`, the share of runs whose samples, permuted
within each coordinate, break the criterion at half of their sites or more. Criterion: draft; control: derived.
"""

from jumpboard.claims.base import CONTRADICTED, INCONCLUSIVE, SUPPORTED, Null, Ruling
from jumpboard.claims.near_diagonal import HALF
from jumpboard.claims.observations import Observations, mean_over_nets
from jumpboard.claims.statistics import share_interval

COLUMNS = ("draft_share", "null_draft_share", "tiny_variance_share")
BY_SAMPLES = True
STATISTIC = "share of sites with max |Cov_ij| < 1e-5, mean over nets"
SUPPORTING = (HALF, None)


def judge(seen: Observations) -> Ruling:
    """`seen` holds one sample size, without missing runs."""
    intervals = mean_over_nets(seen, "draft_share", share_interval)
    mean = intervals["all nets"]
    if mean.above(HALF):
        return Ruling(SUPPORTED, "", mean, intervals)
    if mean.below(HALF):
        return Ruling(CONTRADICTED, "", mean, intervals)
    return Ruling(INCONCLUSIVE, "the share is not resolved from 1/2", mean, intervals)


def null(seen: Observations, claim: str, verdict: str) -> Null:
    """The share of runs in which the criterion would have said the same anyway."""
    if verdict == CONTRADICTED:
        broken = float((seen.columns["null_draft_share"] <= HALF).mean())
        return Null(broken, "of runs break the criterion at half of their sites with permuted samples too")
    tiny = float((seen.columns["tiny_variance_share"] >= HALF).mean())
    return Null(tiny, "of runs have a mean variance below the criterion's limit at half of their sites")
