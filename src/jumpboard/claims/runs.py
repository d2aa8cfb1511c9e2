"""A run: one trained net at one checkpoint. Which run a row is of, and whether a run has all of its sites.

Tables of expansions have no checkpoint: their nets were expanded at the one that the config's block names. Such a run
is said to be at `REFERENCE`.
"""

from collections.abc import Sequence
from typing import Any

from jumpboard.claims.observations import RUN_KEYS, Identity, Row
from jumpboard.errors import InputError

REFERENCE = "reference"


def run_of(row: Row) -> Identity:
    """The values of `RUN_KEYS` of a row of any table."""
    return tuple(row.get(key, REFERENCE) if key == "checkpoint" else row[key] for key in RUN_KEYS)


def at_reference(run: Identity) -> Identity:
    """The same net where it is expanded."""
    return tuple(REFERENCE if key == "checkpoint" else value for key, value in zip(RUN_KEYS, run, strict=True))


def named(run: Identity) -> str:
    """In words, for messages."""
    return ", ".join(f"{key} {value}" for key, value in zip(RUN_KEYS, run, strict=True))


def by_site(table: str, rows: Sequence[Row], of: str = "") -> list[Row]:
    """The rows of one run in the order of sites; `of` says which part of the run they are.

    Raises InputError unless each of the sites 0..L stands there once.
    """
    depth: Any = rows[0]["depth"]
    ordered = sorted(rows, key=lambda row: int(row["site"]))
    found = [row["site"] for row in ordered]
    if found != list(range(depth + 1)):
        run = named(run_of(rows[0])) + (f" ({of})" if of else "")
        raise InputError(f"table {table}: the run {run} has sites {found}; accepted: 0 to {depth}, each once")
    return ordered
