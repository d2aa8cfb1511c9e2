"""Data sets by name: `loader` in config/datasets.yaml -> the module that holds it. Imports none of
them; outside the code digest.

A loader module has the names of its `OPTIONS`, `SAMPLER`: whether another seed gives new rows of the same law (a
generator) or the same rows in another order (a finite set), and `draw(spec, count, seed) -> Rows`; or, for a set that
comes in parts of its own, `draw_splits(spec, copy, scratch) -> {split: Rows}`.
"""

import importlib
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from jumpboard.errors import InputError

MODULES = {
    "mnist1d": "jumpboard.data.mnist1d",
    "digits": "jumpboard.data.digits",
    "mnist5k": "jumpboard.data.mnist5k",
    "local": "jumpboard.data.local",
    "teacher": "jumpboard.data.teacher",
}
KNOWN_LAWS = ("teacher",)
"""Loaders whose law is known: they have `population(spec)`, the columns of the table `card` that say so."""


def loader(spec: Mapping[str, Any]) -> ModuleType:
    """The module of an inventory entry. Raises InputError for an unknown loader or option."""
    name = spec.get("loader")
    if name not in MODULES:
        raise InputError(f"data loader '{name}' is not known; accepted: {', '.join(sorted(MODULES))}")
    module = importlib.import_module(MODULES[name])
    unknown = sorted(set(spec.get("options", {})) - set(module.OPTIONS))
    if unknown:
        accepted = ", ".join(module.OPTIONS) or "none"
        raise InputError(f"data loader '{name}' does not know options {unknown}; accepted: {accepted}")
    return module
