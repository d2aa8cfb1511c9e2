"""Tables of certificates with known contents, whole rows that fit their schemas, for tests of claims and figures.

routes    margin (test loss of the old net minus the bound) `margin` for A, half of it for B; slack 0.2 and 0.4; the new
          net's test loss lies 0.05 below the bound; failure 0.1
ladder    slacks SLACKS, gain 0.3 everywhere
"""

from collections.abc import Iterable
from typing import Any

from jumpboard.artefacts.tables import Schema
from jumpboard.schemas.ladder import LADDER
from jumpboard.schemas.routes import ROUTES
from planted_expansions import Row, Rows, blank

SCHEMAS: dict[str, Schema] = {one.name: one for one in (ROUTES, LADDER)}
ARMS = ("jumpboard_all", "jumpboard_block")
KINDS = {"A": "population", "B": "train"}
SLACKS = {"route_a": 0.2, "route_b": 0.4, "hoeffding": 0.02, "bernstein": 0.004}
GAIN = 0.3


def routes(runs: Iterable[Row], *, margin: float = 0.3, above: float = -0.05, failure: float = 0.1) -> Rows:
    """`above`: how far the new net's test loss lies above the bound."""
    rows = []
    for run in runs:
        for site in range(run["depth"] + 1):
            for arm in ARMS:
                for route, kind in KINDS.items():
                    for loss in ("brier", "cross_entropy"):
                        key = {"site": site, "arm": arm, "jumpboard": kind, "route": route, "loss": loss}
                        rows.append(blank(ROUTES) | run | key | _route(route, run, margin, above, failure))
    return rows


def _route(route: str, run: Row, margin: float, above: float, failure: float) -> Row:
    own, population = margin if route == "A" else margin / 2, route == "A"
    slack, right = (0.2 if population else 0.4), 0.9 - own
    gain = own + slack
    outcome = "void" if failure > 0.15 else ("violated" if above > 0 else "holds")
    sizes = {"parameters": 60 * run["width"], "layers": run["depth"] + 3, "train_samples": run["samples"]}
    return {
        "outcome": outcome, "insert_form": "bare", "branch": "trained", "delta": 0.05, "bound": 2.0, **sizes,
        "loss_lipschitz": 1.41, "class_share": 1.0, "frobenius_cap": 9.0, "lipschitz": 1e6 * run["depth"],
        "eps_m": 0.1, "eps_k": None if population else 0.1, "vacuity": 0.05, "old_test": 0.9, "new_test": right + above,
        "delta_r": 0.1 * gain * (2 if population else 1), "delta_erm": 0.9 * gain, "right_hand_side": right,
        "failure": failure, "holds": above <= 0, "informative": own > 0,
    }  # fmt: skip


def not_applicable(rows: Rows) -> Rows:
    """The same expansions of a net that no route covers."""
    told = ("insert_form", "branch", "delta")
    keys = [column.name for column in ROUTES.columns if column.key or column.name in told]
    return [
        blank(ROUTES) | {key: row[key] for key in keys} | {"outcome": "not applicable", "reason": "why"} for row in rows
    ]


def ladders(runs: Iterable[Row], *, covered: bool = True) -> Rows:
    rows = []
    for run in runs:
        for site in range(run["depth"] + 1):
            for loss in ("brier", "cross_entropy"):
                key: dict[str, Any] = run | {"site": site, "loss": loss, "jumpboard": "train"}
                told = {"arm": "jumpboard", "rung": "step_grid"} | numbers(0.001, 0.002)
                rows.append(blank(LADDER) | key | told)
                for arm in ARMS:
                    for rung, slack in SLACKS.items():
                        known = numbers(slack, GAIN) if covered or not rung.startswith("route") else {}
                        rows.append(blank(LADDER) | key | {"arm": arm, "rung": rung} | known)
    return rows


def numbers(slack: float, gain: float) -> Row:
    return {"slack": slack, "gain": gain, "limit": gain - slack, "failure": 0.1, "samples_used": 1000}
