"""Rule `descent_direction`: is there, in most trained nets, a new block whose first step lowers held-out loss?

A net counts where Holm's procedure over its sites, on one-sided paired t-tests of the held-out gain of the steepest
step, rejects `no gain` at 0.05 at one site or more. Direction and step come from training samples.

    supported      more than half of the nets count
    contradicted   no net counts

Control, for `supported`: nets that count with a random direction, one orthogonal to the steepest, and that of shuffled
labels, at most 5 % of them. The share of nets with an empirical Bernstein limit above 0 at some site is the stricter
form, and only reported. Paper `depth`, descent direction [stated]; tests and controls are derived.
"""

from jumpboard.claims.base import CONTRADICTED, INCONCLUSIVE, SUPPORTED, Null, Ruling
from jumpboard.claims.expansion_values import CONTROLS, LEVEL
from jumpboard.claims.observations import Observations, mean_over_nets
from jumpboard.claims.statistics import ROUNDING

CONTROL_COLUMNS = tuple(f"{name}_descends" for name in CONTROLS)
COLUMNS = ("descends", "descending_sites", "bernstein_descends", *CONTROL_COLUMNS)
BY_SAMPLES = True
STATISTIC = "share of nets with a held-out descent direction at some site"
HALF = 0.5


def judge(seen: Observations) -> Ruling:
    """`seen` holds one sample size, without missing runs."""
    intervals = {f"nets, {name}": one for name, one in mean_over_nets(seen, "descends").items()}
    share = intervals["nets, all nets"]
    intervals["sites"] = mean_over_nets(seen, "descending_sites")["all nets"]
    intervals["nets by the empirical Bernstein limit"] = mean_over_nets(seen, "bernstein_descends")["all nets"]
    for name, column in zip(CONTROLS, CONTROL_COLUMNS, strict=True):
        intervals[f"nets, {name} direction"] = mean_over_nets(seen, column)["all nets"]
    if share.estimate > HALF + ROUNDING:
        return Ruling(SUPPORTED, "", share, intervals)
    if not seen.columns["descends"].any():
        return Ruling(CONTRADICTED, "", share, intervals)
    return Ruling(INCONCLUSIVE, f"there is one in {share.estimate:.0%} of nets", share, intervals)


def null(seen: Observations, claim: str, verdict: str) -> Null:
    """The share of control nets that count. What they gain takes nothing from a verdict that no net gains."""
    share = sum(float(seen.columns[column].mean()) for column in CONTROL_COLUMNS) / len(CONTROL_COLUMNS)
    return Null(share, "of control nets have one too", LEVEL if verdict == SUPPORTED else 1.0)
