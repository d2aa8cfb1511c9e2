"""Rule `beats_training_on`: does an expanded net gain more held-out loss than the old net trained on as long?

    gain of the expanded net (mean over its sites, if it has any) minus that of the old net trained on, mean over nets

    supported      it is positive (90 % interval over seeds excludes 0)
    contradicted   it is negative (likewise)

Beside it, where there is one: the same minus the gain of a net of the new shape trained from the beginning, as long as
both together. Control: the two arms exchanged at random within each seed and net. Paper `depth`, expansion and widening
[stated]; the arms are derived.
"""

from dataclasses import replace

import numpy as np

from jumpboard.claims.base import CONTRADICTED, INCONCLUSIVE, SUPPORTED, Ruling
from jumpboard.claims.controls import by_permutation
from jumpboard.claims.observations import Observations, mean_over_nets
from jumpboard.claims.statistics import mean_interval

COLUMNS = ("over_training_on", "over_scratch", "scratch_sites")
BY_SAMPLES = True
STATISTIC = "test loss of the old net trained on minus that of the expanded net, mean over nets, nats"
SUPPORTING = (0.0, None)


def judge(seen: Observations) -> Ruling:
    """`seen` holds one sample size, without missing runs."""
    means = mean_over_nets(seen, "over_training_on")
    intervals = {f"over training on, {name}": one for name, one in means.items()}
    gain = means["all nets"]
    there = seen.columns["scratch_sites"] > 0
    if there.any(axis=(1, 2, 3)).all():
        intervals["over a net from scratch"] = mean_interval(
            seen.columns["over_scratch"].mean(axis=(1, 2, 3), where=there)
        )
    if gain.positive:
        return Ruling(SUPPORTED, "", gain, intervals)
    if gain.negative:
        return Ruling(CONTRADICTED, "", gain, intervals)
    return Ruling(INCONCLUSIVE, "the difference is not resolved", gain, intervals)


def exchange_arms(seen: Observations, generator: np.random.Generator) -> Observations:
    """Differences of half of the runs, chosen at random, change sign."""
    gain = seen.columns["over_training_on"]
    return replace(seen, columns={**seen.columns, "over_training_on": gain * generator.choice((-1.0, 1.0), gain.shape)})


null = by_permutation(judge, exchange_arms)
