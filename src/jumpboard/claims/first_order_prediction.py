"""Rule `first_order_prediction`: does the first-order signal of a site predict the gain of a small step there?

With p and g the predicted and the realised held-out gain of the smallest step of the grid, at the sites of a net where
it is resolved (`expansion_values`), per seed:

    agreement        share of sites with one sign of p and g, mean over nets
    slope            p.g / p.p, mean over nets
    between sites    sum (p - mean p).(g - mean g) / sum |p - mean p|^2 over nets, each in units of its RMS p

    supported      agreement above 0.9; slope and slope between sites within [0.9, 1.1]    (whole intervals)
    contradicted   the slope's interval lies outside [0.5, 1.5]

Without the slope between sites one number for all sites of a net would do as well as a prediction. Control: predictions
permuted among the sites of each net. Paper `depth`, first-order signal [stated]; the test is derived.
"""

from dataclasses import replace

import numpy as np

from jumpboard.claims.base import CONTRADICTED, INCONCLUSIVE, SUPPORTED, Null, Ruling
from jumpboard.claims.controls import by_permutation
from jumpboard.claims.observations import Observations, mean_over_nets
from jumpboard.claims.statistics import FloatArray, mean_interval, share_interval

COLUMNS = ("predicted_gain", "realised_gain", "resolved_sites")
BY_SAMPLES = True
STATISTIC = "slope of realised on predicted held-out gain of the smallest step, mean over nets"
AGREEMENT = 0.9
SUPPORTING, ALLOWS = (0.9, 1.1), (0.5, 1.5)


def judge(seen: Observations) -> Ruling:
    """`seen` holds one sample size, without missing runs."""
    resolving = seen.columns["resolved_sites"].sum(axis=(1, 2, 3)) > 0
    told = resolving if resolving.any() else np.ones_like(resolving)  # a seed without any such site has no slope
    agreement, *ratios = (one[told] for one in prediction_scores(*_gains(seen)))
    agreement, (slope, between) = share_interval(agreement), map(mean_interval, ratios)
    intervals = {"slope": slope, "slope between sites": between, "sign agreement": agreement}
    intervals["share of sites resolved"] = mean_over_nets(seen, "resolved_sites", share_interval)["all nets"]
    if not resolving.all():
        return Ruling(INCONCLUSIVE, "in some seed no gain is resolved at any site", slope, intervals)
    if slope.below(ALLOWS[0]) or slope.above(ALLOWS[1]):
        return Ruling(CONTRADICTED, "", slope, intervals)
    if not agreement.above(AGREEMENT):
        return Ruling(INCONCLUSIVE, f"the sign agreement is not resolved above {AGREEMENT}", slope, intervals)
    for name, one in (("slope", slope), ("slope between sites", between)):
        if not (one.above(SUPPORTING[0]) and one.below(SUPPORTING[1])):
            return Ruling(INCONCLUSIVE, f"the {name} is not resolved within [0.9, 1.1]", slope, intervals)
    return Ruling(SUPPORTED, "", slope, intervals)


def _gains(seen: Observations) -> tuple[FloatArray, FloatArray]:
    """Predicted and realised gains [seed, net, site]."""
    predicted, realised = (seen.columns[name] for name in COLUMNS[:2])
    shape = (len(seen.seeds), len(seen.depths) * len(seen.widths), predicted.shape[-1])
    return predicted.reshape(shape), realised.reshape(shape)


def prediction_scores(predicted: FloatArray, realised: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Agreement, slope and slope between sites [seed] of gains [seed, net, site], NaN where a net has no such site; 0
    where no net of a seed has any."""
    there = np.isfinite(predicted)
    sites = there.sum(axis=-1, keepdims=True)
    p, g = np.where(there, predicted, 0.0), np.where(there, realised, 0.0)
    size = np.sqrt((p**2).sum(axis=-1, keepdims=True) / np.maximum(sites, 1))
    p, g = (_ratio(one, size) for one in (p, g))
    nets = (sites > 0).sum(axis=(1, 2))
    agreement = _ratio((there & (np.sign(p) == np.sign(g))).sum(axis=-1), sites[..., 0])
    slope = _ratio((p * g).sum(axis=-1), (p * p).sum(axis=-1))
    p, g = (np.where(there, one - _ratio(one.sum(axis=-1, keepdims=True), sites), 0.0) for one in (p, g))
    between = _ratio((p * g).sum(axis=(1, 2)), (p * p).sum(axis=(1, 2)))
    return _ratio(agreement.sum(axis=1), nets), _ratio(slope.sum(axis=1), nets), between


def _ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """0 where the denominator is 0."""
    whole = np.broadcast_to(numerator, np.broadcast_shapes(numerator.shape, denominator.shape)).astype(np.float64)
    ratio: FloatArray = np.divide(whole, denominator, out=np.zeros_like(whole), where=denominator != 0)
    return ratio


def permute_sites(seen: Observations, generator: np.random.Generator) -> Observations:
    """Predictions permuted among the resolved sites of each run."""
    predicted = seen.columns["predicted_gain"]
    keys = np.where(np.isfinite(predicted), generator.random(predicted.shape), np.inf)  # those beyond stay last
    shuffled = np.take_along_axis(predicted, np.argsort(keys, axis=-1), axis=-1)
    return replace(seen, columns={**seen.columns, "predicted_gain": shuffled})


_supported_by_permuted = by_permutation(judge, permute_sites)


def null(seen: Observations, claim: str, verdict: str) -> Null:
    """The share of permuted tables that are supported. A wrong level of predictions is wrong in any order of them."""
    found = _supported_by_permuted(seen, claim, SUPPORTED)
    return replace(found, tolerated=1.0) if verdict == CONTRADICTED else found
