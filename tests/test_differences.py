"""Comparing two tables: what is called different, where, and how often equal laws are called so."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jumpboard.audit.differences import close_difference, seeds_difference

KEYS = ("seed", "site")


def written(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize(
    ("other", "part"),
    [
        ([1.0, 2.0, 4e-9], ""),  # beside 2, the last value is rounding
        ([1.0, 2.0 * (1 + 1e-5), 0.0], ""),
        ([1.0, 2.02, 0.0], "column 'x', row seed 1: 2.0 against 2.02, relative 9.9e-03"),
        ([1.1, 2.2, 0.0], "(the largest of 2 differences)"),
        ([1.0, 2.0, float("nan")], "row seed 2: 0.0 against nan, relative inf"),
        ([1.0, 2.0, None], "row seed 2: 0.0 against None, relative inf"),
        ([1.0, 2.0, float("inf")], "row seed 2: 0.0 against inf, relative inf"),
    ],
)
def test_values_are_close_or_the_furthest_is_named(tmp_path: Path, other: list[Any], part: str) -> None:
    """Where and by how much, or nothing."""
    a = written(tmp_path / "a.parquet", seed=[0, 1, 2], x=[1.0, 2.0, 0.0])
    b = written(tmp_path / "b.parquet", seed=[0, 1, 2], x=pa.array(other, pa.float64()))
    found = close_difference(a, b, ("seed",), 1e-4)
    assert part in found
    assert bool(found) == bool(part)
    assert close_difference(b, b, ("seed",), 0.0) == "", "a value that is no number is equal to itself"


def test_other_rows_columns_names_and_integers_are_named(tmp_path: Path) -> None:
    """What is no float must be equal, and rows must be the same ones."""
    a = written(tmp_path / "a.parquet", seed=[0, 1], name=["p", "q"], n=[1, 10**6])
    rows = written(tmp_path / "rows.parquet", seed=[0, 2], name=["p", "q"], n=[1, 10**6])
    names = written(tmp_path / "names.parquet", seed=[0, 1], name=["p", "r"], n=[1, 10**6])
    counts = written(tmp_path / "counts.parquet", seed=[0, 1], name=["p", "q"], n=[1, 10**6 + 1])
    columns = written(tmp_path / "columns.parquet", seed=[0, 1], name=["p", "q"])
    assert close_difference(a, rows, ("seed",), 1e-4) == "row seed 1 is in one of them alone"
    assert "column 'name', row seed 1: q against r" in close_difference(a, names, ("seed",), 1e-4)
    assert "column 'n', row seed 1" in close_difference(a, counts, ("seed",), 1e-4)
    assert close_difference(a, columns, ("seed",), 1e-4) == "the columns"


def test_rows_of_lists_are_compared(tmp_path: Path) -> None:
    """Splits have no keys and hold a list per row."""
    kind = pa.list_(pa.float32(), 2)
    a = written(tmp_path / "a.parquet", x=pa.array([[1, 2], [3, 4]], kind))
    b = written(tmp_path / "b.parquet", x=pa.array([[1, 2], [3, 5]], kind))
    assert "column 'x', row number 1: 4.0 against 5.0" in close_difference(a, b, (), 1e-4)


def panel(path: Path, draws: np.random.Generator, shift: float = 0.0) -> Path:
    """Three seeds at 20 sites, of scatter 1; the mean of site 7 is shifted."""
    seeds, sites = np.repeat([0, 1, 2], 20), np.tile(np.arange(20), 3)
    return written(path, seed=seeds, site=sites, x=draws.standard_normal(60) + shift * (sites == 7))


def test_seed_means_of_one_law_agree_jointly(tmp_path: Path) -> None:
    """All 20 comparisons of a file together are called different in 1 % of files, not each in 1 %."""
    draws = np.random.default_rng(0)
    found = 0
    for _ in range(200):
        a, b = (panel(tmp_path / f"{name}.parquet", draws) for name in "ab")
        found += seeds_difference(a, b, KEYS) != ""
    assert found <= 6  # binomial(200, 0.01) exceeds it in 0.5 % of cases; 36 files at 1 % each


def test_shifted_mean_is_found_and_named(tmp_path: Path) -> None:
    """Three seeds cannot tell a small shift; a large one they must."""
    draws = np.random.default_rng(1)
    a, b = panel(tmp_path / "a.parquet", draws), panel(tmp_path / "b.parquet", draws, shift=200)
    assert seeds_difference(a, b, KEYS).startswith("column 'x', row site 7: mean ")
    assert seeds_difference(a, a, KEYS) == ""


def test_values_without_scatter_must_be_equal(tmp_path: Path) -> None:
    """Constants, and values that are no number in one run alone."""
    a = written(tmp_path / "a.parquet", seed=[0, 1], x=[1.0, 1.0], y=[1.0, float("nan")])
    b = written(tmp_path / "b.parquet", seed=[0, 1], x=[1.1, 1.1], y=[1.0, 2.0])
    c = written(tmp_path / "c.parquet", seed=[0, 1], x=[1.0, 1.0], y=[1.0, 2.0])
    assert "column 'x'" in seeds_difference(b, c, ("seed",))
    assert "column 'y'" in seeds_difference(a, c, ("seed",))
    assert seeds_difference(a, a, ("seed",)) == ""
