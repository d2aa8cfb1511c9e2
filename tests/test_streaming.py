"""Moments of a million gradients must be those of the same rows held at once, whatever the batch size, and must not
need them at once: else a figure would depend on the memory of the machine that made it."""

import tracemalloc
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumpboard.measure.cross import cross_sums, unbiased_cross
from jumpboard.measure.cross_jackknife import delete_block_cross_sums
from jumpboard.measure.jackknife import delete_block_sums, delete_state_sums
from jumpboard.measure.moments import Moments, moments, unbiased
from jumpboard.measure.rows import BLOCKS, CentredRows, in_common_span, read_rows
from jumpboard.measure.streaming import MomentState
from oracles.moments import FIELDS

CROSS_FIELDS = ("S", "S_squared", "V_train", "V_test", "T", "R2", "diag")


def skewed_rows(n: int, N: int, mean: float, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return generator.exponential(size=(n, N)) @ generator.standard_normal((N, N)) + mean


def streamed(rows: np.ndarray, cuts: list[int]) -> MomentState:
    edges = [0, *sorted(cuts), len(rows)]
    batches = [rows[low:high] for low, high in pairwise(edges) if high > low]
    state = MomentState.start(batches[0])
    for batch in batches[1:]:
        state.update(batch)
    return state


def assert_same(found: Moments, wanted: Moments, at: object = ...) -> None:
    for name in FIELDS:
        value = np.asarray(getattr(found, name))[at]
        assert value == pytest.approx(getattr(wanted, name), rel=1e-10), name


def remaining(rows: CentredRows, block: int) -> np.ndarray:
    """The rows without one block."""
    return np.delete(rows.rows, np.s_[rows.edges[block] : rows.edges[block + 1]], axis=0)


@pytest.mark.parametrize("mean", [0.0, 1e4])
@given(cuts=st.lists(st.integers(1, 59), max_size=8))
@settings(max_examples=25, deadline=None)
def test_any_batches_give_the_moments_of_all_rows(mean: float, cuts: list[int]) -> None:
    """A batch size that changes S is a measurement of the batch size; with a mean of 10^4 times the noise, one that
    loses digits makes T of a trained net a rounding error."""
    rows = skewed_rows(60, 5, mean)
    assert_same(unbiased(streamed(rows, cuts).sums()), moments(rows))


@pytest.mark.parametrize("mean", [0.0, 1e4])
def test_states_add_and_subtract(mean: float) -> None:
    """Blocks measured apart are put together for the estimate and taken out for its limits; their pilots differ."""
    rows = skewed_rows(90, 5, mean)
    first, second = streamed(rows[:31], [7]), streamed(rows[31:], [1])
    assert_same(unbiased(first.merged(second).sums()), moments(rows))
    assert_same(unbiased(second.merged(first).sums()), moments(rows))
    assert_same(unbiased(first.merged(second).without(second).sums()), moments(rows[:31]))


def test_the_state_does_not_grow() -> None:
    """Fresh samples without end are streamed; memory that grows with them ends the job after hours."""
    rows = skewed_rows(50, 4, 0.0)
    state = MomentState.start(rows)
    sizes = [array.nbytes for array in vars(state).values() if isinstance(array, np.ndarray)]
    for _ in range(20):
        state.update(rows)
    assert state.n == 21 * 50
    assert [array.nbytes for array in vars(state).values() if isinstance(array, np.ndarray)] == sizes


@pytest.mark.parametrize(
    ("n", "N"), [(30, 4), (5, 3), (437, 5), (25, 300), (5, 3000)], ids=["tall", "five", "blocks", "wide", "very wide"]
)
@pytest.mark.parametrize("mean", [0.0, 1e4])
def test_a_block_is_left_out_exactly(n: int, N: int, mean: float) -> None:
    """The jackknife's numbers are computed from totals, never from the remaining rows; a wrong term there would give
    limits that are wrong while every estimate is right."""
    rows = read_rows(skewed_rows(n, N, mean))
    assert len(rows.sizes) == min(n, BLOCKS)
    sums, without = delete_block_sums(rows)
    assert_same(unbiased(sums), moments(rows.rows))
    if n < 5:
        return
    for block in range(0, len(rows.sizes), 1 + len(rows.sizes) // 10):
        wanted = moments(remaining(rows, block))
        names = FIELDS if len(remaining(rows, block)) > 4 else ("S", "R")
        for name in names:
            value = np.asarray(getattr(unbiased(without), name))[block]
            assert value == pytest.approx(getattr(wanted, name), rel=1e-9), name


def test_blocks_of_streamed_states_are_left_out_exactly() -> None:
    """Gradients are made once and cannot be read again: their limits come from one state per block."""
    rows = read_rows(skewed_rows(437, 5, 1e4))
    states = [MomentState.start(rows.rows[low:high]) for low, high in pairwise(rows.edges)]
    for wanted, found in zip(delete_block_sums(rows), delete_state_sums(states), strict=True):
        for name in FIELDS:
            assert getattr(unbiased(found), name) == pytest.approx(getattr(unbiased(wanted), name), rel=1e-9), name


@pytest.mark.parametrize(("n", "m", "N"), [(30, 11, 4), (310, 40, 5), (12, 9, 200)], ids=["tall", "blocks", "wide"])
@pytest.mark.parametrize("mean", [0.0, 1e4])
def test_a_block_of_either_row_set_is_left_out_exactly(n: int, m: int, N: int, mean: float) -> None:
    """Train and test rows both vary: limits of the alignment need each left out in turn."""
    train, test = read_rows(skewed_rows(n, N, mean)), read_rows(skewed_rows(m, N, mean, seed=1))
    found = [unbiased_cross(sums) for sums in delete_block_cross_sums(train, test)]
    for name in CROSS_FIELDS:
        wanted = getattr(unbiased_cross(cross_sums(train.rows, test.rows)), name)
        assert getattr(found[0], name) == pytest.approx(wanted, rel=1e-9), name
        for block in range(0, len(train.sizes), 1 + len(train.sizes) // 7):
            wanted = getattr(unbiased_cross(cross_sums(remaining(train, block), test.rows)), name)
            assert getattr(found[1], name)[block] == pytest.approx(wanted, rel=1e-9), name
        for block in range(0, len(test.sizes), 1 + len(test.sizes) // 7):
            wanted = getattr(unbiased_cross(cross_sums(train.rows, remaining(test, block))), name)
            assert getattr(found[2], name)[block] == pytest.approx(wanted, rel=1e-9), name


def test_few_rows_of_many_units_keep_their_inner_products() -> None:
    """Rows of a wide net are turned into a small space; a basis that misses a part of them loses energy silently."""
    train, test = read_rows(skewed_rows(9, 2500, 3.0)), read_rows(skewed_rows(6, 2500, -1.0, seed=1))
    turned = in_common_span([train, test])
    assert [rows.N for rows in turned] == [17, 17]
    vectors, small = (
        np.vstack([*(r.part(0, r.n) for r in rows), *(r.mean for r in rows)]) for rows in ((train, test), turned)
    )
    assert small @ small.T == pytest.approx(vectors @ vectors.T, rel=1e-9, abs=1e-9 * float((vectors**2).sum()) / 17)


def test_a_mapped_file_is_measured_in_bounded_memory(tmp_path: Path) -> None:
    """20,000 rows of 4,096 units are 330 MB as float32 and twice that as float64; a command that loads them whole, or
    makes an N x N matrix per block, ends on a laptop. Here 100,000 x 32: a tenth of the file must do."""
    path = tmp_path / "rows.npy"
    np.save(path, np.random.default_rng(0).standard_normal((100_000, 32), dtype=np.float32))
    rows = np.load(path, mmap_mode="r")
    tracemalloc.start()
    sums, without = delete_block_sums(read_rows(rows))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(np.atleast_1d(unbiased(without).S)) == BLOCKS
    assert abs(unbiased(sums).R - 32) < 0.3
    assert peak < 0.25 * rows.nbytes, peak
