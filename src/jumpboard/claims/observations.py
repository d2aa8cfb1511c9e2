"""Rows of `metrics` as arrays over seed x depth x width x samples, and the runs that are not there.

Which runs must be there is said by the grid, never read off the rows: a run that left no row is otherwise invisible.
Rules compare depths, widths and sample sizes with one another, so the full product of those in the grid is expected.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from jumpboard.claims.statistics import FloatArray
from jumpboard.errors import InputError

Row = Mapping[str, Any]
Identity = tuple[str, str, str, int, int, int, int]


@dataclass(frozen=True)
class Observations:
    """Sorted labels, and one array [seed, depth, width, samples] per column, NaN where a run is named in `missing`."""

    depths: tuple[int, ...]
    widths: tuple[int, ...]
    samples: tuple[int, ...]
    seeds: tuple[int, ...]
    columns: Mapping[str, FloatArray]
    missing: tuple[str, ...]


def index_metrics(rows: Iterable[Row]) -> dict[Identity, Row]:
    """Rows by dataset, arch, checkpoint, depth, width, samples, seed. Raises InputError where two are the same run."""
    indexed: dict[Identity, Row] = {}
    keys = ("dataset", "arch", "checkpoint", "depth", "width", "samples", "seed")
    for row in rows:
        identity = tuple(row[key] for key in keys)
        if identity in indexed:
            named = ", ".join(f"{key} {value}" for key, value in zip(keys, identity, strict=True))
            raise InputError(f"table metrics: the run {named} stands twice")
        indexed[identity] = row
    return indexed


def observe(
    indexed: Mapping[Identity, Row], cells: Sequence[Row], checkpoint: str, columns: Sequence[str]
) -> Observations:
    """The runs of `cells` (of one data set and arch) at `checkpoint`."""
    dataset, arch = cells[0]["dataset"], cells[0]["arch"]
    depths, widths, samples = (_labels(cell[key] for cell in cells) for key in ("depth", "width", "samples"))
    seeds = _labels(seed for cell in cells for seed in cell["seeds"])
    shape = (len(seeds), len(depths), len(widths), len(samples))
    arrays = {column: np.full(shape, np.nan) for column in columns}
    missing: list[str] = []
    for (d, depth), (w, width), (m, size) in product(enumerate(depths), enumerate(widths), enumerate(samples)):
        faults = {}
        for s, seed in enumerate(seeds):
            row = indexed.get((dataset, arch, checkpoint, depth, width, size, seed))
            faults[seed] = _fault(row, columns)
            if row is not None and not faults[seed]:
                for column in columns:
                    arrays[column][s, d, w, m] = row[column]
        missing.extend(_named(f"depth {depth}, width {width}, samples {size}", faults))
    return Observations(depths, widths, samples, seeds, arrays, tuple(missing))


def _labels(values: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(set(values)))


def _fault(row: Row | None, columns: Sequence[str]) -> str:
    if row is None:
        return "missing"
    sound = row["status"] == "trained" and all(np.isfinite(row[column]) for column in columns)
    return "" if sound else "diverged"


def _named(cell: str, faults: Mapping[int, str]) -> list[str]:
    """`missing` is the plain case and goes without saying; a cell that lacks all its seeds is named once."""
    notes = {"missing": "", "diverged": " (diverged)"}
    kinds = set(faults.values())
    if len(kinds) == 1 and "" not in kinds:
        return [cell + notes[kinds.pop()]]
    return [f"{cell}, seed {seed}{notes[fault]}" for seed, fault in faults.items() if fault]
