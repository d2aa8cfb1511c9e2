"""Values of one run from the tables of its expansions, a number per column; train jumpboards alone count.

    jumpboard    descends                 1 if Holm rejects, at any site, that the steepest step gains nothing; else 0
                 descending_sites         share of sites where it does
                 bernstein_descends       1 if the empirical Bernstein limit is above 0 at any site, else 0
                 random_descends, orthogonal_descends, shuffled_descends     `descends` of the control directions
    step_gains   predicted_gain, realised_gain      of the smallest step, at the sites where it is resolved
                 resolved_sites           share of sites where it is
    expansion    worse                    number of expansions whose selected model is worse on training samples
                                          than the jumpboard it began at
                 trained_worse            share of expansions where training alone ended worse than that
                 over_training_on         gain of arm jumpboard_all, mean over sites, minus that of trained_on
                 over_scratch             the same minus the gain of nets from scratch, over the sites that have one
                 scratch_sites            number of those; over_scratch is 0 where there is none
    widening     over_training_on, over_scratch, scratch_sites      the same of arm widened, which has no site
    routes       (over all arms, sites and losses; route_b alike)
                 route_a                  largest test loss of the old net minus the bound
                 route_a_failure          largest stated failure of the bounds that promise anything, 0 without any
                 route_a_promised         number of these
                 route_a_violated         number of these that are exceeded
                 route_a_informed         number of these that hold and lie below the test loss of the old net
                 route_a_reversed         number of these that promise a gain of the old net over the new one
    chain        chain_loss, chain_signal      test loss and squared signal after k blocks, a number per k

Tests are one-sided paired t-tests of the mean gain per sample. The gain of a step is resolved where |gain| > 2 standard
errors. In the linear regime gain and error grow alike, so that a site that is not resolved at the smallest step of the
grid becomes so only where curvature has taken over: it says nothing on the first order and does not count.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from jumpboard.claims.observations import Row, Values
from jumpboard.claims.runs import by_site
from jumpboard.claims.statistics import holm
from jumpboard.theory.routes import HOLDS, NOT_APPLICABLE, VIOLATED

KIND = "train"
STEEPEST, CONTROLS = "steepest", ("random", "orthogonal", "shuffled")
LEVEL = 0.05
RESOLVED = 2.0  # standard errors
COMPARED = ("over_training_on", "over_scratch", "scratch_sites")


def of_jumpboard(rows: Sequence[Row]) -> Values:
    """From the rows of one run and split; a direction that was not tried is undefined."""
    directions = _grouped([row for row in rows if row["jumpboard"] == KIND], "direction")
    rejected = {name: _rejected(by_site("jumpboard", own, name)) for name, own in directions.items()}
    steepest = rejected.get(STEEPEST)
    limits = [row["bernstein_low"] for row in directions.get(STEEPEST, ())]
    return {
        "descends": _any(steepest),
        "descending_sites": None if steepest is None else float(steepest.mean()),
        "bernstein_descends": None if steepest is None else float(max(limits) > 0),
        **{f"{name}_descends": _any(rejected.get(name)) for name in CONTROLS},
    }


def _rejected(sites: Sequence[Row]) -> NDArray[np.bool_]:
    """Sites whose gain is above 0; all differences equal: t is 0, as in `expansion.gains`."""
    gain, error, n = (np.array([row[name] for row in sites], dtype=np.float64) for name in ("gain", "gain_se", "n"))
    t = np.divide(gain, error, out=np.zeros_like(gain), where=error > 0)
    return holm(stdtr(n - 1, -t), LEVEL)


def _any(rejected: NDArray[np.bool_] | None) -> float | None:
    return None if rejected is None else float(rejected.any())


def of_step_gains(rows: Sequence[Row]) -> Values:
    """From the rows of one run and split."""
    steps = _grouped([row for row in rows if row["jumpboard"] == KIND], "step")
    if not steps:
        return dict.fromkeys(("predicted_gain", "realised_gain", "resolved_sites"))
    sites = by_site("step_gains", steps[min(steps)], "smallest step")
    resolved = [row for row in sites if abs(row["gain"]) > RESOLVED * row["gain_se"]]
    return {
        "predicted_gain": tuple(row["predicted_gain"] for row in resolved),
        "realised_gain": tuple(row["gain"] for row in resolved),
        "resolved_sites": len(resolved) / len(sites),
    }


def of_expansion(rows: Sequence[Row]) -> Values:
    """From the rows of one run."""
    begun = [row for row in rows if row["jumpboard"] == KIND and row["delta_erm"] is not None]
    arms = _grouped([row for row in rows if row["jumpboard"] in (KIND, "none")], "arm")
    expanded = by_site("expansion", arms["jumpboard_all"], "jumpboard_all") if "jumpboard_all" in arms else []
    return {
        "worse": float(sum(not row["delta_erm"] >= 0 for row in begun)) if begun else None,
        "trained_worse": float(np.mean([row["branch"] == "jumpboard" for row in begun])) if begun else None,
        **_compared(expanded, arms),
    }


def of_widening(rows: Sequence[Row]) -> Values:
    """From the rows of one run."""
    arms = _grouped(rows, "arm")
    return _compared(arms.get("widened", []), arms)


def of_routes(rows: Sequence[Row]) -> Values:
    """From the rows of one run; undefined where a route is not applicable."""
    routes = _grouped(rows, "route")
    return {name: value for route in ("A", "B") for name, value in _of_route(route, routes.get(route, ())).items()}


def _of_route(route: str, rows: Sequence[Row]) -> Values:
    name = f"route_{route.lower()}"
    counted = ("failure", "promised", "violated", "informed", "reversed")
    if not rows or any(row["outcome"] == NOT_APPLICABLE for row in rows):
        return dict.fromkeys([name, *(f"{name}_{one}" for one in counted)])
    promised = [row for row in rows if row["outcome"] in (HOLDS, VIOLATED)]
    values = (
        max((row["failure"] for row in promised), default=0.0),
        float(len(promised)),
        float(sum(row["outcome"] == VIOLATED for row in promised)),
        float(sum(row["holds"] and row["informative"] for row in promised)),
        float(sum(_margin(row) + 4 * (row["eps_m"] + (row["eps_k"] or 0.0)) < 0 for row in promised)),
    )
    told: Values = {f"{name}_{one}": value for one, value in zip(counted, values, strict=True)}
    return {name: max(map(_margin, rows)), **told}


def _margin(row: Row) -> float:
    """What the bound promises: the gain less a slack of 2 eps. The way back promises minus the gain less the slack."""
    return float(row["old_test"] - row["right_hand_side"])


def of_chain(rows: Sequence[Row]) -> Values:
    """From the rows of one run."""
    ordered = sorted(rows, key=lambda row: int(row["k"]))
    columns = {"chain_loss": "net_test_loss", "chain_signal": "signal_feature_sq"}
    return {name: tuple(float(row[column]) for row in ordered) for name, column in columns.items()}


def _compared(expanded: Sequence[Row], arms: Mapping[str, Sequence[Row]]) -> Values:
    """A net from scratch that diverged has no gain and does not count."""
    trained_on = arms.get("trained_on", [])
    scratch = [row for row in arms.get("scratch", []) if row["status"] == "trained"]
    if not expanded or not trained_on:
        return dict.fromkeys(COMPARED)
    there = {row.get("site") for row in scratch}
    matched = [row for row in expanded if row.get("site") in there]
    over_scratch = _gain(matched) - _gain(scratch) if scratch else 0.0
    return dict(zip(COMPARED, (_gain(expanded) - _gain(trained_on), over_scratch, float(len(scratch))), strict=True))


def _gain(rows: Sequence[Row]) -> float:
    return float(np.mean([row["gain"] for row in rows]))


def _grouped(rows: Sequence[Row], column: str) -> dict[Any, list[Row]]:
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row[column]].append(row)
    return groups


EXPANDED: dict[str, Callable[[Sequence[Row]], Values]] = {
    "jumpboard": of_jumpboard,
    "step_gains": of_step_gains,
    "expansion": of_expansion,
    "widening": of_widening,
    "routes": of_routes,
    "chain": of_chain,
}
