"""Rule `two_betas_agree`: is the exponent of a chain's signal that of its excess risk?

    supported      in every chain the two intervals of beta overlap, each narrower than a factor 2
    contradicted   in every chain they are disjoint

Beta and its intervals are those of table `betas`; where one is not identified the claim is open. Control: the squared
signals permuted over k within each seed, in the same table. Paper `depth`, Appendix M; the test is derived.
"""

import numpy as np

from jumpboard.claims.base import CONTRADICTED, INCONCLUSIVE, SUPPORTED, Null, Ruling
from jumpboard.claims.observations import Observations, Row
from jumpboard.claims.statistics import Interval
from jumpboard.theory.power_law import AGREE, CURVE, DISAGREE, SLOPE

COLUMNS = ("chain_loss", "chain_signal")
BY_SAMPLES = True
SUPPORTING = (None, None)  # a difference of 0 is neither side of anything
STATISTIC = "beta by the slope minus beta by the curve, mean over chains"


def judge(seen: Observations) -> Ruling:
    """`seen` holds one sample size, without missing runs, and the rows of table `betas`."""
    told = {row["agreement"] for row in seen.fitted}
    identified = [row for row in seen.fitted if row["beta"] is not None]
    sign = {SLOPE: 1.0, CURVE: -1.0}
    main = Interval(0.0, None, None, 0)
    if len(identified) == len(seen.fitted):
        difference = float(2 * np.mean([sign[row["estimator"]] * row["beta"] for row in identified]))
        main = Interval(difference, None, None, len(seen.seeds))
    intervals = {_named(row): Interval(row["beta"], row["low"], row["high"], row["seeds"]) for row in identified}
    if told == {AGREE}:
        return Ruling(SUPPORTED, "", main, intervals)
    if told == {DISAGREE}:
        return Ruling(CONTRADICTED, "", main, intervals)
    faults = [f"{_named(row)}: {row['reason']}" for row in seen.fitted if row["reason"]]
    reason = f"beta is not identified ({'; '.join(faults)})" if faults else "intervals are too wide, or chains differ"
    return Ruling(INCONCLUSIVE, reason, main, intervals)


def _named(row: Row) -> str:
    return f"{row['estimator']} at depth {row['depth']}, width {row['width']}"


def null(seen: Observations, claim: str, verdict: str) -> Null:
    """The share of permutations that are told the same as the chain, mean over chains."""
    share = float(np.mean([row["control_share"] for row in seen.fitted]))
    return Null(share, f"of the permutations are called {verdict}")
