"""Final metrics of one net, cell by cell: mean over seeds with its interval, diverged runs, and the choice of D*.

D* is, for each seed, the depth with the lowest mean validation loss of the other seeds at a width and sample size;
`chosen` counts the seeds that chose a depth. Diverged runs are counted and take no part in means or choices.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from jumpboard.artefacts.tables import Column
from jumpboard.claims.rebound import depth_best_for_others
from jumpboard.claims.statistics import Interval, mean_interval
from jumpboard.errors import InputError

Row = Mapping[str, Any]

COUNTS = (
    Column("n", "int64", "1", "trained seeds that the mean is taken over"),
    Column("diverged", "int64", "1", "seeds that diverged"),
)
CHOSEN = Column("chosen", "int64", "1", "seeds whose D* this is: the lowest mean validation loss of the other seeds")


def limits_of(name: str, unit: str, meaning: str) -> tuple[Column, Column, Column]:
    """Columns of a mean over seeds and its 90 % interval."""
    return (
        Column(name, "float64", unit, f"{meaning}, mean over seeds; null where none trained", nullable=True),
        Column("low", "float64", unit, "lower limit of the 90 % t interval; null below two seeds", nullable=True),
        Column("high", "float64", unit, "upper limit of the 90 % t interval; null below two seeds", nullable=True),
    )


def final_rows(rows: Iterable[Row], dataset: str, arch: str) -> list[Row]:
    """Rows of `metrics` at the end of training. Raises InputError where there is none."""
    own = [row for row in rows if (row["dataset"], row["arch"], row["checkpoint"]) == (dataset, arch, "final")]
    if not own:
        raise InputError(f"table metrics has no final rows of {dataset}/{arch}")
    return sorted(own, key=lambda row: (row["samples"], row["width"], row["depth"], row["seed"]))


def seed_means(rows: Sequence[Row], column: str) -> list[dict[str, Any]]:
    """One row per cell: its keys, mean and limits of `column`, `n` and `diverged`."""
    cells: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        cells[tuple(row[key] for key in ("dataset", "arch", "depth", "width", "samples"))].append(row)
    summaries = []
    for (dataset, arch, depth, width, samples), runs in cells.items():
        key = {"dataset": dataset, "arch": arch, "depth": depth, "width": width, "samples": samples}
        values = [run[column] for run in runs if trained(run, column)]
        summaries.append(key | mean_columns(column, values) | {"diverged": len(runs) - len(values)})
    return summaries


def mean_columns(
    column: str, values: Sequence[float], interval_of: Callable[[Sequence[float]], Interval] = mean_interval
) -> dict[str, Any]:
    """The columns of `limits_of` and `n`."""
    if not values:
        return {column: None, "low": None, "high": None, "n": 0}
    interval = interval_of(values)
    return {column: interval.estimate, "low": interval.low, "high": interval.high, "n": interval.n}


def trained(run: Row, column: str) -> bool:
    """The run has not diverged and its `column` is a number."""
    return bool(run["status"] == "trained" and np.isfinite(run[column]))


def choices(rows: Sequence[Row]) -> dict[tuple[int, int, int], int]:
    """(samples, width, depth) -> number of seeds whose D* at this width and sample size is this depth."""
    curves: dict[tuple[int, int], dict[int, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if trained(row, "validation_loss"):
            curves[row["samples"], row["width"]][row["seed"]].append(row)
    counts: dict[tuple[int, int, int], int] = defaultdict(int)
    for (samples, width), seeds in curves.items():
        depths = sorted({run["depth"] for runs in seeds.values() for run in runs})
        whole = [runs for runs in seeds.values() if len(runs) == len(depths)]
        losses = np.array([[run["validation_loss"] for run in runs] for runs in whole]).reshape(len(whole), len(depths))
        for best in depth_best_for_others(losses) if whole else ():
            counts[samples, width, depths[best]] += 1
    return counts
