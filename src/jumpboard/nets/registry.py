"""Nets by name: `family` in the config -> the module that holds it. Imports none of them; outside the code digest."""

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jumpboard.errors import InputError

if TYPE_CHECKING:
    from jumpboard.nets.base import Net

MODULES = {
    "resmlp": "jumpboard.nets.resmlp",
    "resnet": "jumpboard.nets.resnet",
    "timm": "jumpboard.nets.timm_net",
}
DEPTH_STEPS = {"resnet": 3}
"""Families whose depths are multiples of a number, so that a config can be told so before any job runs."""
PICTURES_ONLY = ("resnet", "timm")
"""Families that take samples of (channels, height, width) alone."""


def build_net(spec: Mapping[str, Any], depth: int, width: int, input_shape: tuple[int, ...], classes: int) -> "Net":
    """The net of a config entry `{family: ..., switches}`.

    Raises InputError for an unknown family or switch, or a depth or width that the family cannot have.
    """
    switches = dict(spec)
    family = switches.pop("family", None)
    if family not in MODULES:
        raise InputError(f"net family '{family}' is not known; accepted: {', '.join(sorted(MODULES))}")
    module = importlib.import_module(MODULES[family])
    try:
        net: Net = module.build(depth, width, tuple(input_shape), classes, **switches)
    except TypeError as error:
        raise InputError(f"net family '{family}' does not take these switches: {sorted(switches)} ({error})") from None
    return net
