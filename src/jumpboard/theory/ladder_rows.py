"""Rows of the table `ladder`: rungs of one expansion, from the paper's bounds to limits on the fixed pair of nets."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from jumpboard.theory.limits import bernstein_slack, hoeffding_slack, samples_needed
from jumpboard.theory.member import Class, Member, Row
from jumpboard.theory.routes import Route

TIMES = {"A": 2, "B": 4}  # of eps_n in a route's slack, M = K = n for B
NUMBERS = ("gain", "slack", "limit", "failure", "samples_needed")


def route_rungs(
    one: Member, found: Class | str, routes: Sequence[tuple[Row, Route | None]], samples: int
) -> Iterator[Row]:
    """Those of the paper's bounds, from their rows of `routes`; M is `samples`."""
    for row, route in routes:
        rung = f"route_{row['route'].lower()}"
        key = {**one.key, "rung": rung, "jumpboard": row["jumpboard"], "reason": row["reason"]}
        if route is None or isinstance(found, str):
            yield {**key, "samples_used": samples, **dict.fromkeys(NUMBERS)}
            continue
        needed = samples_needed(partial(_route_slack, one, found, TIMES[row["route"]]), route.gain)
        yield key | _numbers(samples, route.gain, route.slack, route.failure, needed)


def _route_slack(one: Member, found: Class, times: int, n: int) -> float:
    return times * found.complexity(one.loss).deviation(n, one.delta * found.weights.share)


def pair_rungs(one: Member) -> Iterator[Row]:
    """Limits on the gain of the selected net, on test samples."""
    gain = one.gain(one.selected("train")[1], "test")
    variance = float(gain.variance[0])
    slacks: dict[str, Callable[[int], float]] = {
        "bernstein": lambda n: bernstein_slack(variance, 2 * one.bound, n, one.delta),
        "hoeffding": lambda n: hoeffding_slack(2 * one.bound, n, one.delta),
    }
    for rung, slack in slacks.items():
        yield _tested(one.key, rung, gain.n, float(gain.mean[0]), slack, one.delta)


def board_rung(one: Member, steps: int) -> Row:
    """The limit on the jumpboard's gain that holds for all `steps` of its grid, on test samples."""
    gain = one.gain(one.boards["train"], "test")
    variance = float(gain.variance[0])

    def slack(n: int) -> float:
        return bernstein_slack(variance, 2 * one.bound, n, one.delta, steps)

    return _tested({**one.key, "arm": "jumpboard"}, "step_grid", gain.n, float(gain.mean[0]), slack, one.delta)


def _tested(key: Row, rung: str, n: int, gain: float, slack: Callable[[int], float], delta: float) -> Row:
    named = {**key, "rung": rung, "jumpboard": "train", "reason": ""}
    return named | _numbers(n, gain, slack(n), delta, samples_needed(slack, gain))


def _numbers(n: int, gain: float, slack: float, failure: float, needed: int | None) -> Row:
    values = (gain, slack, gain - slack, failure, needed)
    return {"samples_used": n, **dict(zip(NUMBERS, values, strict=True))}
