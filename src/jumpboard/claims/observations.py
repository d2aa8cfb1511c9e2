"""Run-level values as arrays over seed x depth x width x samples, and the runs that are not there.

Which runs must be there is said by the config, never read off the rows: a run that left no row is otherwise invisible.
Rules compare depths, widths and sample sizes with one another, so the full product of those expected is expected.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from jumpboard.claims.statistics import FloatArray, Interval, mean_interval

Row = Mapping[str, Any]
RUN_KEYS = ("dataset", "arch", "checkpoint", "depth", "width", "samples", "seed")
Identity = tuple[Any, ...]
"""The values of `RUN_KEYS`."""
Value = float | tuple[float, ...] | None
Values = dict[str, Value]
"""What is read off one run, by name: a number, or one per site; None where it is not defined."""


@dataclass(frozen=True)
class Observations:
    """Sorted labels, and one array [seed, depth, width, samples] per column, NaN where a run is named in `missing`.

    Columns with a number per site have one more axis, NaN beyond a run's own. `fitted` holds the rows of tables that
    are fitted to these runs, for rules that read such a table.
    """

    depths: tuple[int, ...]
    widths: tuple[int, ...]
    samples: tuple[int, ...]
    seeds: tuple[int, ...]
    columns: Mapping[str, FloatArray]
    missing: tuple[str, ...]
    fitted: tuple[Row, ...] = ()


def observe(
    runs: Mapping[Identity, Row], cells: Sequence[Row], checkpoint: str, columns: Sequence[str]
) -> Observations:
    """The runs of `cells` (of one data set and arch) at `checkpoint`."""
    dataset, arch = cells[0]["dataset"], cells[0]["arch"]
    depths, widths, samples = (_labels(cell[key] for cell in cells) for key in ("depth", "width", "samples"))
    seeds = _labels(seed for cell in cells for seed in cell["seeds"])
    found: dict[tuple[int, ...], Row] = {}
    missing: list[str] = []
    for (d, depth), (w, width), (m, size) in product(enumerate(depths), enumerate(widths), enumerate(samples)):
        faults = {}
        for s, seed in enumerate(seeds):
            row = runs.get((dataset, arch, checkpoint, depth, width, size, seed))
            faults[seed] = _fault(row, columns)
            if row is not None and not faults[seed]:
                found[s, d, w, m] = row
        missing.extend(_named(f"depth {depth}, width {width}, samples {size}", faults))
    shape = (len(seeds), len(depths), len(widths), len(samples))
    arrays = {column: _array(shape, {place: row[column] for place, row in found.items()}) for column in columns}
    return Observations(depths, widths, samples, seeds, arrays, tuple(missing))


def _array(shape: tuple[int, ...], found: Mapping[tuple[int, ...], Any]) -> FloatArray:
    values = {place: np.asarray(value, dtype=np.float64) for place, value in found.items()}
    sites = max((value.shape for value in values.values()), default=())
    array = np.full((*shape, *sites), np.nan)
    for place, value in values.items():
        inside: tuple[int | slice, ...] = (*place, *(slice(size) for size in value.shape))
        array[inside] = value
    return array


def mean_over_nets(
    seen: Observations, column: str, interval: Callable[[FloatArray], Interval] = mean_interval
) -> dict[str, Interval]:
    """The mean of a column over all nets of a seed, and over those of each width."""
    values = seen.columns[column]
    widths = {f"at width {width}": values[:, :, w] for w, width in enumerate(seen.widths)}
    parts = {"all nets": values, **widths}
    return {name: interval(part.reshape(len(seen.seeds), -1).mean(axis=1)) for name, part in parts.items()}


def at_level(runs: Mapping[Identity, Row], cells: Sequence[Row], checkpoint: str) -> list[Row]:
    """The cells at widths where every run reached the loss level of `checkpoint`.

    A run did not reach it if it stands in `runs` at the end of its training and not there. A run without either is not
    one that fell short: it is missing.
    """

    def short(cell: Row, seed: int) -> bool:
        final, there = (
            (cell["dataset"], cell["arch"], moment, cell["depth"], cell["width"], cell["samples"], seed)
            for moment in ("final", checkpoint)
        )
        return final in runs and there not in runs

    left_out = {cell["width"] for cell in cells for seed in cell["seeds"] if short(cell, seed)}
    return [cell for cell in cells if cell["width"] not in left_out]


def _labels(values: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(set(values)))


def _fault(row: Row | None, columns: Sequence[str]) -> str:
    if row is None:
        return "missing"
    if row["status"] != "trained":
        return "diverged"
    values = [row[column] for column in columns]
    if None in values:
        return "undefined"
    return "" if np.isfinite(np.hstack(values)).all() else "diverged"


def _named(cell: str, faults: Mapping[int, str]) -> list[str]:
    """`missing` is the plain case and goes without saying; a cell that lacks all its seeds is named once."""
    notes = {"missing": "", "diverged": " (diverged)", "undefined": " (undefined)"}
    kinds = set(faults.values())
    if len(kinds) == 1 and "" not in kinds:
        return [cell + notes[kinds.pop()]]
    return [f"{cell}, seed {seed}{notes[fault]}" for seed, fault in faults.items() if fault]
