"""Rule `route`: does a bound on the test loss of expanded nets hold as often as it says, and does it say anything?

A net is violated where half of its expansions that promise anything, or more, exceed the bound; by Markov's inequality
that happens with probability at most p, twice the largest failure that any of them states. A net is informed where an
expansion of it that promises anything stays below a bound that is itself below the test loss of the old net.

    contradicted   as many nets as are violated, or more, have probability below 0.01 under Binomial(nets, p)
    supported      not contradicted, and in some cell all seeds are informed
    inconclusive   else: the bounds hold and say nothing (vacuous)

Nets share samples, so that the binomial test is not exact. Control: the two nets of each expansion exchanged, the bound
then promising that the old net is better than the new one; in at most a tenth of the nets. Paper `depth`, Routes A and
B [draft]; the test is derived.
"""

import numpy as np
from scipy.special import bdtrc

from jumpboard.claims.base import CONTRADICTED, INCONCLUSIVE, SUPPORTED, Null, Ruling
from jumpboard.claims.observations import Observations, mean_over_nets
from jumpboard.claims.statistics import Interval

COLUMNS = ("{value}", "{value}_failure", "{value}_promised", "{value}_violated", "{value}_informed", "{value}_reversed")
BY_SAMPLES = False
SUPPORTING = (0.0, None)
STATISTIC = "largest test loss of the old net minus the bound over the expansions of a net, mean over nets"
REJECTED = 0.01


def judge(seen: Observations) -> Ruling:
    """`seen` holds all nets that are certified, without missing runs."""
    margin, failure, promised, violated, informed, _ = (seen.columns[name] for name in named(seen))
    promising = promised > 0
    nets = int(promising.sum())
    broken = int((2 * violated >= promised)[promising].sum())
    p = min(1.0, 2 * float(failure[promising].max())) if nets else 1.0
    main = mean_over_nets(seen, named(seen)[0])["all nets"]
    intervals = {
        "margin": main,
        f"nets of {nets} that are violated": Interval(broken, None, None, len(seen.seeds)),
        "expansions that are violated": Interval(float(violated.sum()), None, None, len(seen.seeds)),
        "share of nets that are informed": Interval(float((informed > 0).mean()), None, None, len(seen.seeds)),
    }
    if binomial_tail(broken, nets, p) < REJECTED:
        return Ruling(
            CONTRADICTED, f"{broken} of {nets} nets are violated, at a rate of at most {p:.2g}", main, intervals
        )
    if np.isfinite(margin).all() and (informed > 0).all(axis=0).any():
        return Ruling(SUPPORTED, "", main, intervals)
    return Ruling(INCONCLUSIVE, "vacuous: in no cell are all seeds informed", main, intervals)


def named(seen: Observations) -> list[str]:
    """The rule's columns as this claim names them, in the order of `COLUMNS`: the shortest is `{value}`."""
    value = min(seen.columns, key=len)
    return [column.format(value=value) for column in COLUMNS]


def binomial_tail(count: int, n: int, p: float) -> float:
    """P(X >= count) for X ~ Binomial(n, p); 1 for count 0."""
    return 1.0 if count == 0 else float(bdtrc(count - 1, n, p))


def null(seen: Observations, claim: str, verdict: str) -> Null:
    """The share of nets of which an exchanged expansion is promised a gain."""
    exchanged = seen.columns[named(seen)[-1]]
    return Null(float((exchanged > 0).mean()), "of nets are promised a gain by the way back as well")
