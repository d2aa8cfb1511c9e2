"""Rule `first_order_prediction`: does the first-order signal of a site predict the gain of a small step there?

    sign agreement    share of sites where realised and predicted held-out gain have one sign
    slope             through the origin, of realised on predicted gain over the sites of a net

at the smallest step of a net at which the gain of any site is resolved, over the sites resolved there
(`expansion_values`); per seed, means over the nets that have such a step.

    supported      agreement above 0.9 and slope within [0.9, 1.1]       (whole 90 % intervals over seeds)
    contradicted   the slope's interval lies outside [0.5, 1.5]

Control: the same numbers averaged over all permutations of predictions among the sites of a net; a seed that they would
support as well says that any site's prediction would do. Paper `depth`, first-order signal; the test is derived.
"""

import numpy as np

from jumpboard.claims.base import CONTRADICTED, INCONCLUSIVE, SUPPORTED, Null, Ruling
from jumpboard.claims.observations import Observations, mean_over_nets
from jumpboard.claims.statistics import FloatArray, mean_interval

COLUMNS = ("prediction_slope", "sign_agreement", "predicted_sites", "permuted_slope", "permuted_agreement")
BY_SAMPLES = True
STATISTIC = "slope of realised on predicted held-out gain at the smallest resolved step, mean over nets"
AGREEMENT = 0.9
SUPPORTS, ALLOWS = (0.9, 1.1), (0.5, 1.5)


def judge(seen: Observations) -> Ruling:
    """`seen` holds one sample size, without missing runs."""
    slope, agreement = (mean_interval(over_resolved(seen, column)) for column in COLUMNS[:2])
    sites = mean_over_nets(seen, "predicted_sites")["all nets"]
    intervals = {"slope": slope, "sign agreement": agreement, "share of sites resolved": sites}
    if (seen.columns["predicted_sites"].sum(axis=(1, 2, 3)) == 0).any():
        return Ruling(INCONCLUSIVE, "in some seed no gain is resolved at any site", slope, intervals)
    if slope.below(ALLOWS[0]) or slope.above(ALLOWS[1]):
        return Ruling(CONTRADICTED, "", slope, intervals)
    if not agreement.above(AGREEMENT):
        return Ruling(INCONCLUSIVE, f"the sign agreement is not resolved above {AGREEMENT}", slope, intervals)
    if not (slope.above(SUPPORTS[0]) and slope.below(SUPPORTS[1])):
        return Ruling(INCONCLUSIVE, "the slope is not resolved within [0.9, 1.1]", slope, intervals)
    return Ruling(SUPPORTED, "", slope, intervals)


def over_resolved(seen: Observations, column: str) -> FloatArray:
    """Per seed, the mean of a column over the nets with a resolved gain; 0 where there is none."""
    resolved = seen.columns["predicted_sites"] > 0
    total, nets = ((values * resolved).sum(axis=(1, 2, 3)) for values in (seen.columns[column], resolved))
    mean: FloatArray = total / np.maximum(nets, 1)
    return mean


def null(seen: Observations, claim: str, verdict: str) -> Null:
    """The share of seeds that permuted predictions would support. It takes nothing from a contradiction."""
    slopes, agreements = (over_resolved(seen, column) for column in COLUMNS[3:])
    called = (agreements > AGREEMENT) & (slopes >= SUPPORTS[0]) & (slopes <= SUPPORTS[1])
    tolerated = {"tolerated": 1.0} if verdict == CONTRADICTED else {}
    return Null(float(called.mean()), "of seeds would be supported with permuted predictions too", **tolerated)
