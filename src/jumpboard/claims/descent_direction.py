"""Rule `descent_direction`: is there, in most trained nets, a new block whose first step lowers held-out loss?

A net counts where Holm's procedure over its sites, on one-sided paired t-tests of the held-out gain of the steepest
step, rejects `no gain` at 0.05 at one site or more. Direction and step come from training samples.

    supported      more than half of the nets count, and more than along control directions (90 % interval over seeds)
    contradicted   no net counts

Control directions are a random one, one orthogonal to the steepest, and that of shuffled labels. They are compared and
not tested alone: half of all directions go down to first order, which enough samples show. Control, for `supported`:
the four directions of each net exchanged at random. The share of nets with an empirical Bernstein limit above 0 at some
site is the stricter form, and only reported. Paper `depth`, descent direction [stated]; tests and controls are derived.
"""

from dataclasses import replace

import numpy as np

from jumpboard.claims.base import CONTRADICTED, INCONCLUSIVE, SUPPORTED, Null, Ruling
from jumpboard.claims.controls import by_permutation
from jumpboard.claims.expansion_values import CONTROLS
from jumpboard.claims.observations import Observations, mean_over_nets
from jumpboard.claims.statistics import ROUNDING, mean_interval, share_interval

CONTROL_COLUMNS = tuple(f"{name}_descends" for name in CONTROLS)
COLUMNS = ("descends", "descending_sites", "bernstein_descends", *CONTROL_COLUMNS)
BY_SAMPLES = True
STATISTIC = "share of nets with a held-out descent direction at some site"
HALF = 0.5
SUPPORTING = (HALF, None)


def judge(seen: Observations) -> Ruling:
    """`seen` holds one sample size, without missing runs."""
    intervals = {f"nets, {name}": one for name, one in mean_over_nets(seen, "descends", share_interval).items()}
    share = intervals["nets, all nets"]
    for name, column in (
        ("sites", "descending_sites"),
        ("nets by the empirical Bernstein limit", "bernstein_descends"),
    ):
        intervals[name] = mean_over_nets(seen, column, share_interval)["all nets"]
    for name, column in zip(CONTROLS, CONTROL_COLUMNS, strict=True):
        intervals[f"nets, {name} direction"] = mean_over_nets(seen, column, share_interval)["all nets"]
    controls = np.mean([seen.columns[column] for column in CONTROL_COLUMNS], axis=0)
    excess = (seen.columns["descends"] - controls).reshape(len(seen.seeds), -1).mean(axis=1)
    intervals["nets, over control directions"] = mean_interval(excess)
    if not seen.columns["descends"].any():
        return Ruling(CONTRADICTED, "", share, intervals)
    if share.estimate <= HALF + ROUNDING:
        return Ruling(INCONCLUSIVE, f"there is one in {share.estimate:.0%} of nets", share, intervals)
    if not intervals["nets, over control directions"].positive:
        return Ruling(INCONCLUSIVE, "no more often than along control directions", share, intervals)
    return Ruling(SUPPORTED, "", share, intervals)


def exchange_directions(seen: Observations, generator: np.random.Generator) -> Observations:
    """The steepest and the control directions change places at random within each net."""
    names = ("descends", *CONTROL_COLUMNS)
    exchanged = generator.permuted(np.stack([seen.columns[name] for name in names]), axis=0)
    return replace(seen, columns={**seen.columns, **dict(zip(names, exchanged, strict=True))})


def null(seen: Observations, claim: str, verdict: str) -> Null:
    """The control above. What control directions gain takes nothing from a verdict that no net gains."""
    found = by_permutation(judge, exchange_directions)(seen, claim, verdict)
    return replace(found, tolerated=1.0) if verdict == CONTRADICTED else found
