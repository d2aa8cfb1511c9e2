"""Rules by name: `kind` in config/claims.yaml -> the module that holds it. Imports none; outside the code digest."""

import importlib
from typing import TYPE_CHECKING, cast

from jumpboard.errors import InputError

if TYPE_CHECKING:
    from jumpboard.claims.base import Rule

MODULES = {
    "joint_gain": "jumpboard.claims.joint_gain",
    "rebound": "jumpboard.claims.rebound",
    "data_moves_rebound": "jumpboard.claims.data_moves_rebound",
    "trend_in_depth": "jumpboard.claims.trend_in_depth",
    "width_raises_observability": "jumpboard.claims.width_raises_observability",
    "near_diagonal": "jumpboard.claims.near_diagonal",
    "near_diagonal_draft": "jumpboard.claims.near_diagonal_draft",
    "descent_direction": "jumpboard.claims.descent_direction",
    "first_order_prediction": "jumpboard.claims.first_order_prediction",
    "fallback": "jumpboard.claims.fallback",
    "beats_training_on": "jumpboard.claims.beats_training_on",
    "route": "jumpboard.claims.route",
    "two_betas_agree": "jumpboard.claims.two_betas_agree",
    "power_law_preferred": "jumpboard.claims.power_law_preferred",
}


def rule_of(kind: str) -> "Rule":
    """The module of a kind of rule. Raises InputError for an unknown one."""
    if kind not in MODULES:
        raise InputError(f"rule kind '{kind}' is not known; accepted: {', '.join(sorted(MODULES))}")
    return cast("Rule", importlib.import_module(MODULES[kind]))
