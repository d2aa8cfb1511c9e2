"""The rows of an inventory entry: its splits from its own seed, fresh ones of the same law from another."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jumpboard.data.registry import loader
from jumpboard.data.rows import DRAWN, Rows, cut
from jumpboard.errors import InputError


def _check_seed(spec: Mapping[str, Any], seed: int) -> None:
    if not 0 <= seed < 2**32:
        raise InputError(f"seed {seed} of data loader '{spec['loader']}' must lie in 0 to 2**32 - 1")


def _draw(spec: Mapping[str, Any], count: int, seed: int) -> Rows:
    _check_seed(spec, seed)
    rows: Rows = loader(spec).draw(spec, count, seed)
    return rows


def draw_rows(spec: Mapping[str, Any], copy: Path | None = None, scratch: Path | None = None) -> dict[str, Rows]:
    """All splits of an inventory entry, in the order train, validation, test; its seed alone determines them.

    A loader of local copies reads them from `copy`, and holds what it reads in files of the folder `scratch`.
    Raises InputError for an unknown loader, option or split, or more rows than a finite source holds.
    """
    sizes = spec["splits"]
    if set(sizes) - set(DRAWN) or not sizes or min(sizes.values()) < 1:
        raise InputError(f"splits {dict(sizes)}: accepted are sizes of at least 1 for any of {', '.join(DRAWN)}")
    module = loader(spec)
    if hasattr(module, "draw_splits"):
        _check_seed(spec, spec["seed"])
        parts: dict[str, Rows] = module.draw_splits(spec, copy, scratch)
        return parts
    return cut(_draw(spec, sum(sizes.values()), spec["seed"]), sizes)


def draw_fresh(spec: Mapping[str, Any]) -> Rows:
    """The rows of the entry's `fresh` block: the same law, a seed of their own, nothing shared with the splits.

    Raises InputError where the source is a finite set, the block is missing or its seed is that of the splits.
    """
    if not loader(spec).SAMPLER:
        raise InputError(f"data loader '{spec['loader']}' has no fresh rows: its source is a finite set, no sampler")
    fresh = spec.get("fresh")
    if fresh is None:
        raise InputError(f"this entry of data loader '{spec['loader']}' has no `fresh` block of seed and samples")
    if fresh["seed"] == spec["seed"]:
        raise InputError(f"fresh seed {fresh['seed']} is the seed of the splits; fresh rows need another one")
    return _draw(spec, fresh["samples"], fresh["seed"])
