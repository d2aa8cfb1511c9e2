"""The table `routes`: what each row says of its route is what its terms give, computed again by `theory.routes`."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from jumpboard.theory.routes import NOT_APPLICABLE, Route, route_a, route_b

Row = Mapping[str, Any]
ROUNDING = 1e-9


def routes_fault(rows: Iterable[Row]) -> str:
    """The first row that says something else; empty where there is none."""
    for row in rows:
        place = f"seed {row['seed']}, site {row['site']}, {row['arm']}, route {row['route']}, {row['loss']}"
        if (row["outcome"] == NOT_APPLICABLE, bool(row["reason"])) != (row["right_hand_side"] is None,) * 2:
            return (
                f"the row of {place} is '{row['outcome']}' for the reason '{row['reason']}', which its numbers are not"
            )
        wrong = _wrong(row) if row["outcome"] != NOT_APPLICABLE else ""
        if wrong:
            return f"column '{wrong}' of {place} is not what the row's terms give"
    return ""


def _wrong(row: Row) -> str:
    route = _route(row)
    right = route.right_hand_side(row["old_test"])
    numbers = {"right_hand_side": right, "failure": route.failure}
    said = {
        "outcome": route.outcome(row["old_test"], row["new_test"], row["delta"]),
        "holds": row["new_test"] <= row["right_hand_side"],
        "informative": row["right_hand_side"] < row["old_test"],
    }
    differing = [name for name, value in numbers.items() if not _close(row[name], value)]
    return next(iter(differing + [name for name, value in said.items() if row[name] != value]), "")


def _route(row: Row) -> Route:
    gains = row["delta_r"], row["delta_erm"], row["eps_m"]
    if row["route"] == "A":
        return route_a(*gains, row["test_samples"], row["bound"], row["delta"])
    return route_b(*gains, row["eps_k"], row["delta"])


def _close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=ROUNDING, abs_tol=ROUNDING) or (math.isnan(one) and math.isnan(other))
