"""Rule `fallback`: is the selected model never worse on training samples than the jumpboard it began at?

    supported      in no expansion
    contradicted   in any

without tolerance. It holds by construction, since the jumpboard is taken where training ended worse (Condition 2): it
is a check of the pipeline. What can fail is training alone: the share of expansions where it ended worse is reported
beside it, and withdraws nothing. Paper `depth`, fallback [stated].
"""

from jumpboard.claims.base import CONTRADICTED, SUPPORTED, Null, Ruling
from jumpboard.claims.observations import Observations, mean_over_nets
from jumpboard.claims.statistics import share_interval

COLUMNS = ("worse", "trained_worse")
BY_SAMPLES = True
STATISTIC = "number of expansions of a net whose selected model is worse than the jumpboard, mean over nets"
SUPPORTING = (None, 0.0)


def judge(seen: Observations) -> Ruling:
    """`seen` holds one sample size, without missing runs."""
    worse = mean_over_nets(seen, "worse")["all nets"]
    alone = mean_over_nets(seen, "trained_worse", share_interval)["all nets"]
    intervals = {"worse": worse, "share where training alone was worse": alone}
    count = int(seen.columns["worse"].sum())
    if count:
        return Ruling(CONTRADICTED, f"in {count} expansion{'s' if count > 1 else ''}", worse, intervals)
    return Ruling(SUPPORTED, "", worse, intervals)


def null(seen: Observations, claim: str, verdict: str) -> Null:
    """The share of expansions where training alone ended worse than the jumpboard; a mean over nets."""
    return Null(float(seen.columns["trained_worse"].mean()), "of trainings alone ended worse", tolerated=1.0)
