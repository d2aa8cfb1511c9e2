"""Rule `near_diagonal`: is most of the energy of the gradients' covariance on its diagonal?

    rho_off = (T - diag)/T, the share off the diagonal, mean over sites; per seed its mean over all nets

    supported      it is below 1/2 (upper limit of the 90 % interval over seeds)
    contradicted   it is above 1/2 (lower limit)

A ratio of unbiased moments leans towards 0 where its denominator T is not resolved, as with heavy-tailed gradients:
with T resolved at fewer than nine sites in ten the claim is inconclusive.
Control: rho_off after permuting the samples within each coordinate, where the covariance is truly diagonal. A run whose
permuted samples show 1/2 or more as well says nothing. Paper `depth`, near-diagonal covariance [stated].
"""

from jumpboard.claims.base import CONTRADICTED, INCONCLUSIVE, SUPPORTED, Null, Ruling
from jumpboard.claims.observations import Observations, mean_over_nets

COLUMNS = ("rho_off", "null_rho_off", "rho_off_resolved")
BY_SAMPLES = True
STATISTIC = "share of covariance energy off the diagonal, mean over sites and nets"
HALF = 0.5
SUPPORTING = (None, HALF)
LEAST_RESOLVED = 0.9


def judge(seen: Observations) -> Ruling:
    """`seen` holds one sample size, without missing runs."""
    intervals = mean_over_nets(seen, "rho_off")
    mean = intervals["all nets"]
    resolved = float(seen.columns["rho_off_resolved"].mean())
    if resolved < LEAST_RESOLVED:
        return Ruling(INCONCLUSIVE, f"the covariance's energy is resolved at {resolved:.0%} of sites", mean, intervals)
    if mean.below(HALF):
        return Ruling(SUPPORTED, "", mean, intervals)
    if mean.above(HALF):
        return Ruling(CONTRADICTED, "", mean, intervals)
    return Ruling(INCONCLUSIVE, "the mean is not resolved from 1/2", mean, intervals)


def null(seen: Observations, claim: str, verdict: str) -> Null:
    """The share of runs whose permuted samples show a rho_off of at least 1/2."""
    share = float((seen.columns["null_rho_off"] >= HALF).mean())
    return Null(share, "of runs have a rho_off of at least 1/2 with permuted samples too")
