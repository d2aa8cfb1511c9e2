"""If a formula here were biased, every signal, every covariance claim and every alignment dimension of the replication
would be off by an amount that grows with width and shrinks with the sample, which is what the papers' claims look like:
formulas are enumerated over small laws, and limits are held against planted truths."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.special import stdtrit

from jumpboard.errors import InputError
from jumpboard.measure.intervals import NAMES, Replicates, block_variance, jackknife, moment_intervals
from jumpboard.measure.jackknife import delete_block_sums
from jumpboard.measure.moments import Moments, centred_sums, moments, plug_in, raw_moments, unbiased
from jumpboard.measure.rows import read_rows
from oracles.moments import FIELDS, Law, exact_moments, expected

SKEWED = Law(np.array([[3.0], [-1.0], [0.0]]), np.array([0.2, 0.5, 0.3]))
CORRELATED = Law(np.array([[1.0, 2.0], [-2.0, -1.0], [3.0, 0.0]]), np.array([0.4, 0.25, 0.35]))
WITHOUT_MEAN = Law(np.array([[1.0, 1.0, 0.0], [-3.0, 1.0, 2.0], [1.0, -3.0, -2.0]]), np.array([0.5, 0.25, 0.25]))
LAWS = {"skewed": SKEWED, "correlated": CORRELATED, "without mean": WITHOUT_MEAN}
ROWS = arrays.arrays(
    np.float64, st.tuples(st.integers(4, 6), st.integers(1, 4)), elements=st.integers(-20, 20).map(float)
)


def values(found: Moments) -> dict[str, float]:
    return {name: float(getattr(found, name)) for name in FIELDS}


def intervals_of(rows: np.ndarray) -> dict[str, Any]:
    """The limits of one row set as the command computes them."""
    read = read_rows(rows)
    sums, without = delete_block_sums(read)
    return dict(moment_intervals(unbiased(sums), [Replicates(unbiased(without), read.sizes)]))


@pytest.mark.parametrize("form", [moments, raw_moments])
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("n", [4, 6])
def test_every_formula_is_unbiased_for_any_law(form: Any, law: Law, n: int) -> None:
    """A bias here is a signal, or a correlation, that no net has. All 3^n samples are enumerated."""
    found = expected(lambda rows: values(form(rows)), law, n)
    assert found == pytest.approx(law.moments(), rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("n", [4, 5])
def test_the_variance_of_s_is_exact(n: int) -> None:
    """Var S^ = 4V/n + 2T/(n(n-1)): a wrong one calls noise a signal at mu = 0, where the jackknife cannot be used."""
    for law in LAWS.values():
        truth = law.moments()
        square = expected(lambda rows: {"S": float(moments(rows).S) ** 2}, law, n)["S"]
        planted = Moments(n=n, N=law.atoms.shape[1], **truth)
        assert square - truth["S"] ** 2 == pytest.approx(planted.s_variance, rel=1e-11)


@given(ROWS)
@settings(max_examples=25, deadline=None)
def test_both_forms_are_the_loop_over_distinct_rows(rows: np.ndarray) -> None:
    """Fast sums that differ from the definition on some rows would be found by nobody: exact rational arithmetic."""
    truth = exact_moments(rows)
    scale = max(1.0, *(abs(value) for value in truth.values()))
    assert values(moments(rows)) == pytest.approx(truth, rel=1e-10, abs=1e-11 * scale)
    assert values(raw_moments(rows)) == pytest.approx(truth, rel=1e-10, abs=1e-11 * scale)


@given(ROWS)
@settings(max_examples=25, deadline=None)
def test_plug_ins_are_the_moments_of_the_empirical_law(rows: np.ndarray) -> None:
    """They stand beside the unbiased values as what a script without correction prints, so they must be that."""
    truth = Law(rows, np.full(len(rows), 1 / len(rows))).moments()
    assert values(plug_in(centred_sums(rows))) == pytest.approx(truth, rel=1e-10, abs=1e-8)


def test_no_signal_is_zero_on_average_and_negative_half_the_time() -> None:
    """A clipped or biased S would show a bias signal at every site of every net, also where mu is exactly 0."""
    generator = np.random.default_rng(0)
    found = np.array([moments(generator.standard_normal((40, 6))).S for _ in range(2000)])
    assert abs(found.mean()) < 4 * found.std() / len(found) ** 0.5
    assert 0.4 < np.mean(found < 0) < 0.7
    assert plug_in(centred_sums(generator.standard_normal((40, 6)))).S > 0


def test_a_mean_far_above_the_noise_costs_the_stable_form_nothing() -> None:
    """Late in training a few directions carry nearly all of a gradient: with a mean of 10^4 times the noise the raw
    Gram form has lost T, R2 and diag altogether; the stable one must still be right to 1e-6."""
    rows = 1e4 * np.array([1.0, -0.7, 0.4]) + np.random.default_rng(1).standard_normal((9, 3))
    truth, stable, raw = exact_moments(rows), values(moments(rows)), values(raw_moments(rows))
    assert stable == pytest.approx(truth, rel=1e-6)
    for name in ("T", "R2", "diag"):
        assert abs(raw[name] - truth[name]) > 1e-3 * abs(truth[name]), name


@given(ROWS, st.floats(0.01, 100))
@settings(max_examples=30, deadline=None)
def test_scaling_the_loss_scales_moments_by_their_degree(rows: np.ndarray, scale: float) -> None:
    """Rows c x have mean c mu and covariance c^2 Sigma, so S and R scale by c^2, everything else by c^4, and rho_off
    and every d not at all: else a net would look better aligned because its loss has another unit."""
    before, after = moments(rows), moments(scale * rows)
    degrees = {name: 2 if name in ("S", "R") else 4 for name in FIELDS}
    largest = float(np.abs(rows).max()) ** 2 * rows.size
    for name, degree in degrees.items():
        expected_value = scale**degree * getattr(before, name)
        tolerance = 1e-9 * (scale**2 * largest) ** (degree / 2) + 1e-300
        assert getattr(after, name) == pytest.approx(expected_value, rel=1e-9, abs=tolerance), name


def test_a_rotation_moves_the_diagonal_and_nothing_else() -> None:
    """With O orthogonal, mean O mu and covariance O Sigma O': |O mu|, mu' Sigma mu and traces stay, the diagonal does
    not. A near-diagonal covariance is a statement about a net's own axes; a statistic blind to them proves nothing."""
    generator = np.random.default_rng(2)
    rows = generator.standard_normal((300, 5)) * np.array([3.0, 1.0, 1.0, 0.3, 0.1]) + 0.5
    rotation, _ = np.linalg.qr(generator.standard_normal((5, 5)))
    before, after = moments(rows), moments(rows @ rotation)
    for name in ("S", "S_squared", "V", "T", "R", "R2"):
        assert getattr(after, name) == pytest.approx(getattr(before, name), rel=1e-10), name
    assert abs(after.diag - before.diag) > 0.1 * before.diag
    assert before.rho_off < 0.05 < 0.2 < after.rho_off


def test_the_order_of_samples_and_the_shape_of_the_array_change_nothing() -> None:
    """Sums over rows know no order, and columns of zeros add nothing to any moment, but turn the smaller side from N to
    n: a result that depended on either would be an accident of storage."""
    generator = np.random.default_rng(3)
    rows = generator.exponential(size=(20, 6))
    wide = np.hstack([rows, np.zeros((20, 40))])
    for same in (generator.permutation(rows), wide):
        assert values(moments(same)) == pytest.approx(values(moments(rows)), rel=1e-10)


def test_constant_rows_have_no_covariance_at_all() -> None:
    """Rounding noise of a constant coordinate would pass for a tiny, fully correlated covariance."""
    found = moments(np.full((7, 3), 0.1, dtype=np.float32))
    assert (found.V, found.T, found.R, found.R2, found.diag, found.rho_off) == (0, 0, 0, 0, 0, 0)
    assert abs(found.S - 3 * float(np.float32(0.1)) ** 2) < 1e-15


def test_limits_cover_planted_moments() -> None:
    """Limits that are too narrow turn noise into verdicts; 90 % must mean 85 to 94 % for the moments of skewed rows
    with a planted covariance, with single rows and with blocks left out."""
    generator = np.random.default_rng(4)
    mixing = np.eye(6) + 0.4 * generator.standard_normal((6, 6))
    mean, sigma = np.full(6, 0.6), mixing @ mixing.T
    law = {"S": mean @ mean, "V": mean @ sigma @ mean, "T": (sigma**2).sum(), "R": np.trace(sigma)}
    law |= {"R2": law["R"] ** 2, "diag": (np.diagonal(sigma) ** 2).sum()}
    law["rho_off"] = 1 - law["diag"] / law["T"]
    for n, draws in ((150, 400), (420, 150)):
        covered = dict.fromkeys(NAMES, 0)
        for _ in range(draws):
            rows = (generator.gamma(4.0, 0.5, (n, 6)) - 2.0) @ mixing.T + mean
            for name, interval in intervals_of(rows).items():
                covered[name] += interval.low <= law[name] <= interval.high
        for name, count in covered.items():
            assert 0.85 <= count / draws <= 0.94, (name, n, count / draws)


def test_a_signal_that_is_not_there_is_rarely_resolved() -> None:
    """At mu = 0 a site without signal may be called resolved in at most 5 % of nets, and its interval must hold 0."""
    generator = np.random.default_rng(5)
    found = [intervals_of(generator.standard_normal((60, 8)))["S"] for _ in range(400)]
    assert np.mean([interval.resolved for interval in found]) <= 0.05
    assert np.mean([interval.low <= 0 <= interval.high for interval in found]) >= 0.85


def test_the_exact_variance_is_used_within_five_sd_of_zero_and_only_there() -> None:
    """The jackknife doubles the noise part of Var S^: used near 0 it hides signals; the exact form used far from 0
    would ignore what the rows say of their own spread."""
    generator = np.random.default_rng(6)
    quantile = stdtrit(59, 0.95)
    for shift, near in ((0.0, True), (2.0, False)):
        rows = read_rows(generator.standard_normal((60, 8)) + shift)
        sums, without = delete_block_sums(rows)
        found, left = unbiased(sums), unbiased(without)
        assert (found.S <= 5 * (2 * found.T / (60 * 59)) ** 0.5) == near
        exact = 4 * max(found.V, 0) / 60 + 2 * found.T / (60 * 59)
        variance = exact if near else 59 / 60 * np.sum((left.S - np.mean(left.S)) ** 2)
        interval = moment_intervals(found, [Replicates(left, rows.sizes)])["S"]
        assert interval.high - interval.low == pytest.approx(2 * quantile * variance**0.5, rel=1e-10)


def test_the_jackknife_of_a_mean_is_its_squared_standard_error() -> None:
    """For the mean the delete-one jackknife is s^2/n exactly; with blocks of unequal size it must stay unbiased, or a
    ragged last block would change every interval."""
    generator = np.random.default_rng(7)
    x = generator.exponential(size=50)
    single = (x.sum() - x) / 49
    assert block_variance(float(x.mean()), single, np.ones(50)) == pytest.approx(x.var(ddof=1) / 50, rel=1e-12)
    sizes = np.tile([1.0, 2.0, 3.0], 10)
    edges = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
    found = []
    for _ in range(2000):
        y = generator.standard_normal(60)
        sums = np.add.reduceat(y, edges[:-1])
        found.append(block_variance(float(y.mean()), (y.sum() - sums) / (60 - sizes), sizes))
    assert np.mean(found) == pytest.approx(1 / 60, rel=0.05)


def test_variances_of_independent_row_sets_add() -> None:
    """A statistic of two samples varies with both; forgetting one halves its interval."""
    x, y = np.random.default_rng(8).standard_normal((2, 30))
    left = [(x.sum() - x) / 29 - y.mean(), x.mean() - (y.sum() - y) / 29]
    interval = jackknife(float(x.mean() - y.mean()), left, [np.ones(30), np.ones(30)])
    half = stdtrit(29, 0.95) * ((x.var(ddof=1) + y.var(ddof=1)) / 30) ** 0.5
    assert interval.high - interval.estimate == pytest.approx(half, rel=1e-12)


def test_four_rows_have_estimates_but_no_limits() -> None:
    """Three rows cannot give T: limits made up from them would be numbers without meaning."""
    found = intervals_of(np.random.default_rng(9).standard_normal((4, 3)))
    for name in ("V", "T", "R2", "diag", "rho_off"):
        assert np.isfinite(found[name].estimate)
        assert found[name].low is None
        assert found[name].high is None


def test_the_ratio_off_the_diagonal_has_limits_only_where_t_is_resolved() -> None:
    """A ratio to something that may be 0 can be anything: limits there would settle a claim by accident."""
    read = read_rows(np.random.default_rng(10).standard_normal((30, 3)))
    sums, without = delete_block_sums(read)
    found, left = unbiased(sums), unbiased(without)
    lost = replace(found, T=0.01 * found.T)
    assert moment_intervals(found, [Replicates(left, read.sizes)])["rho_off"].low is not None
    assert moment_intervals(lost, [Replicates(left, read.sizes)])["rho_off"].low is None


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (np.zeros(5), "two dimensions"),
        (np.zeros((3, 2)), "at least 4"),
        (np.zeros((5, 0)), "at least one column"),
        (np.zeros((5, 2), dtype=bool), "holds bool"),
        (np.zeros((5, 2), dtype=complex), "holds complex"),
        (np.zeros((5, 2), dtype=object), "holds object"),
        (np.array([[1.0], [2.0], [np.nan], [4.0]]), "row 2"),
        (np.array([[1.0], [2.0], [3.0], [-np.inf]]), "row 3"),
    ],
)
def test_rows_that_have_no_moments_are_refused(rows: np.ndarray, words: str) -> None:
    """One NaN sample makes every moment NaN, and a claim about nothing; the message must say which row."""
    with pytest.raises(InputError, match=words):
        read_rows(rows, "the rows")
