"""Two tables of one schema compared: value by value, or seed means by their joint intervals.

    close     |a - b| <= tolerance max(|a|, |b|) + 1e-8 max |column|       the last term: values that cancel to about 0
    seeds     |mean_a - mean_b| <= t(1 - 0.005/K, nu) sqrt(s_a^2/n_a + s_b^2/n_b)

with nu Welch's degrees of freedom and K the number of comparisons of the file, so that all of them hold together with
probability 0.99 where the runs have one law (Bonferroni).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.special import stdtrit

FLOOR, JOINT = 1e-8, 0.01
Keys = Sequence[str]


def close_difference(ours: Path, theirs: Path, keys: Keys, tolerance: float) -> str:
    """The largest difference beyond a relative tolerance, where it is and how many there are; empty for none."""
    one, other = (pq.ParquetFile(path).read() for path in (ours, theirs))
    if one.schema.names != other.schema.names or [*one.schema.types] != [*other.schema.types]:
        return "the columns"
    rows = [_rows(table, keys) for table in (one, other)]
    for where in sorted(set(rows[0]) ^ set(rows[1]), key=str):
        return f"row {_words(keys, where)} is in one of them alone"
    worst: tuple[float, str] = (-1.0, "")
    count = 0
    for name in (name for name in one.column_names if name not in keys):
        a, b = (_column(table, name) for table in (one, other))
        relative = _relative(a, b)
        beyond = np.flatnonzero(relative > tolerance)
        count += len(beyond)
        if len(beyond) and relative[at := beyond[np.argmax(relative[beyond])]] > worst[0]:
            row, values = rows[0][int(at) * len(one) // len(a)], f"{a[int(at)]} against {b[int(at)]}"
            place = f"column '{name}', row {_words(keys, row)}: {values}, relative {relative[at]:.1e}"
            worst = (float(relative[at]), place)
    return worst[1] + (f" (the largest of {count} differences)" if count > 1 else "")


def seeds_difference(ours: Path, theirs: Path, keys: Keys) -> str:
    """The seed means that are furthest beyond their joint interval; empty where all agree. Rows of one run alone, such
    as checkpoints at a loss that another run did not reach, and means of one seed are left out."""
    groups = [name for name in keys if name != "seed"]
    one, other = (pq.ParquetFile(path).read() for path in (ours, theirs))
    columns = [field.name for field in one.schema if pa.types.is_floating(field.type)]
    a, b = (_by_group(table, groups, columns) for table in (one, other))
    shared = [(where, name) for where, name in a if (where, name) in b]
    parts = [(where, name, a[where, name], b[where, name]) for where, name in shared]
    parts = [part for part in parts if min(len(part[2]), len(part[3])) > 1]
    worst: tuple[float, str] = (1.0, "")
    for where, name, x, y in parts:
        excess = _excess(x, y, len(parts))
        if excess > worst[0]:
            place = _words(groups, where)
            gap = f"mean {x.mean():.6g} against {y.mean():.6g}, {excess:.1f} times the joint 99 % interval"
            worst = (excess, f"column '{name}', row {place}: {gap}")
    return worst[1]


def _excess(x: np.ndarray, y: np.ndarray, comparisons: int) -> float:
    """The difference of two means in units of half their joint interval."""
    gap = abs(float(x.mean() - y.mean()))
    if np.isnan(gap):
        return 0.0 if np.isnan(x.mean()) and np.isnan(y.mean()) else np.inf
    errors = np.array([x.var(ddof=1) / len(x), y.var(ddof=1) / len(y)])
    rounding = FLOOR * max(abs(float(x.mean())), abs(float(y.mean())))
    if errors.sum() == 0:
        return gap / rounding if gap else 0.0
    freedom = errors.sum() ** 2 / (errors**2 / (np.array([len(x), len(y)]) - 1)).sum()
    half = float(stdtrit(freedom, 1 - JOINT / 2 / comparisons)) * float(np.sqrt(errors.sum()))
    return gap / (half + rounding)


def _rows(table: pa.Table, keys: Keys) -> list[tuple[Any, ...]]:
    """The key of each row, or its number in a table without keys."""
    if not keys:
        return [(number,) for number in range(len(table))]
    return list(zip(*(table.column(name).to_pylist() for name in keys), strict=True))


def _column(table: pa.Table, name: str) -> pa.Array:
    """A column's values, those of lists one after the other."""
    column = table.column(name).combine_chunks()
    return column.flatten() if pa.types.is_fixed_size_list(column.type) else column


def _relative(a: pa.Array, b: pa.Array) -> np.ndarray:
    """Relative differences, element by element; infinite between a value and none, and between unequal names or
    integers."""
    x, y = (np.asarray(part.to_numpy(zero_copy_only=False)) for part in (a, b))
    if not pa.types.is_floating(a.type):
        return np.where(x != y, np.inf, 0.0)
    with np.errstate(invalid="ignore"):
        gap, scale = np.abs(x - y), np.maximum(np.abs(x), np.abs(y))
        floor = FLOOR * np.max(scale, where=np.isfinite(scale), initial=0.0)
        relative = np.nan_to_num(np.where(gap <= floor, 0.0, gap / np.where(scale > 0, scale, 1.0)), nan=np.inf)
    relative[(x == y) | (np.isnan(x) & np.isnan(y))] = 0.0
    relative[np.asarray(a.is_null()) != np.asarray(b.is_null())] = np.inf
    return np.asarray(relative)


def _by_group(table: pa.Table, groups: Keys, columns: Sequence[str]) -> dict[tuple[Any, str], np.ndarray]:
    """Values over seeds, by the other keys and column; nulls left out."""
    found: dict[tuple[Any, str], list[float]] = {}
    for row in table.select([*groups, *columns]).to_pylist():
        where = tuple(row[name] for name in groups)
        for name in columns:
            if row[name] is not None:
                found.setdefault((where, name), []).append(row[name])
    return {place: np.array(values) for place, values in found.items()}


def _words(keys: Keys, where: Sequence[Any]) -> str:
    names = keys if keys or not where else ("number",)
    return ", ".join(f"{name} {value}" for name, value in zip(names, where, strict=True)) or "of all seeds"
