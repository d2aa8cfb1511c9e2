"""Rule `power_law_preferred`: is a power law with a floor the best law of the test loss in one variable?

    Delta = AICc of a rival minus that of the power law, summed over fits at other sizes held fixed
    error = root mean square log error of the largest nets, as the smaller predict them, over the same fits

    supported      Delta > 4 for every rival, and the error of the power law is the lowest
    contradicted   the same is so of one rival against all other forms

The variable is the claim's first column: depth or parameters. AICc, errors and the control are those of table `fits`.
Control: losses permuted within each seed; mean over the fits of the share that prefers the same form. Paper `depth`,
Appendix M [stated]; the rivals are derived.
"""

from collections import defaultdict

import numpy as np

from jumpboard.claims.base import CONTRADICTED, INCONCLUSIVE, SUPPORTED, Null, Ruling
from jumpboard.claims.observations import Observations, Row
from jumpboard.claims.statistics import FloatArray, Interval
from jumpboard.theory.comparison import CLEAR, preferred

COLUMNS = ("{value}", "test_loss")
BY_SAMPLES = True
SUPPORTING = (CLEAR, None)
STATISTIC = "AICc of the best rival minus that of the power law, summed over fits"
LAW = "power"


def judge(seen: Observations) -> Ruling:
    """`seen` holds one sample size, without missing runs, and the rows of table `fits`."""
    criterion, error = _scores(seen)
    behind = {form: float(value[0] - criterion[LAW][0]) for form, value in criterion.items() if form != LAW}
    seeds = len(seen.seeds)
    intervals = {f"AICc of {form} less that of power": Interval(one, None, None, seeds) for form, one in behind.items()}
    intervals |= {f"error of {form}": Interval(float(one[0]), None, None, seeds) for form, one in error.items()}
    main = Interval(min(behind.values()), None, None, seeds)
    best = preferred(criterion, error)[0]
    if best == LAW:
        return Ruling(SUPPORTED, "", main, intervals)
    if best:
        return Ruling(CONTRADICTED, f"the form {best} is preferred", main, intervals)
    return Ruling(INCONCLUSIVE, "no form has both the lowest AICc by 4 and the lowest error", main, intervals)


def null(seen: Observations, claim: str, verdict: str) -> Null:
    """The share of permutations that prefer the form that the verdict is about, mean over fits."""
    form = preferred(*_scores(seen))[0] if verdict == CONTRADICTED else LAW
    shares = [row["control_share"] for row in _fits(seen)[form]]
    return Null(float(np.mean(shares)), f"of the permutations prefer the form {form}")


def _scores(seen: Observations) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    """AICc and error of each form over all fits, arrays of one."""
    fits = _fits(seen)
    criterion = {form: np.array([sum(_number(row["aicc"]) for row in rows)]) for form, rows in fits.items()}
    errors = {form: [_number(row["extrapolation_error"]) for row in rows] for form, rows in fits.items()}
    return criterion, {form: np.array([float(np.mean(np.square(one)) ** 0.5)]) for form, one in errors.items()}


def _fits(seen: Observations) -> dict[str, list[Row]]:
    """Form -> one row of each fit in the claim's variable."""
    variable = next(iter(seen.columns))
    one = {
        tuple(row[key] for key in ("depth", "width", "samples", "form")): row
        for row in seen.fitted
        if row["variable"] == variable
    }
    forms: dict[str, list[Row]] = defaultdict(list)
    for row in one.values():
        forms[row["form"]].append(row)
    return forms


def _number(value: float | None) -> float:
    """No AICc with too few rows, no prediction that is positive: nothing is worse."""
    return np.inf if value is None else value
