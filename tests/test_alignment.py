"""A bound on misalignment that does not dominate the flips, or an alignment dimension that grows with width by itself,
would confirm the width paper's main claim on nets that do not have it."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumpboard.measure.alignment import (
    PROBABILITIES,
    RATIOS,
    alignment,
    alignment_ratios,
    cantelli,
    certificate,
    chebyshev,
    effective_samples,
    normal,
    plug_in_alignment,
)
from jumpboard.measure.cross import CrossMoments, cross_sums, plug_in_cross, unbiased_cross
from jumpboard.measure.intervals import Estimate
from jumpboard.measure.moments import Moments, centred_sums, moments, plug_in
from jumpboard.measure.rows import read_rows
from jumpboard.measure.summary import Summary, summarise
from oracles.moments import Law, expected_of_two

NARROW = Law(np.array([[3.0], [-1.0], [0.0]]), np.array([0.3, 0.3, 0.4]))
ONE = Law(np.array([[1.0, 2.0], [-2.0, 0.0], [3.0, 0.0]]), np.array([0.4, 0.25, 0.35]))
OTHER = Law(np.array([[2.0, 0.0], [0.0, 2.0], [-1.0, -1.0]]), np.array([0.5, 0.3, 0.2]))
PAIRS = {"narrow": (NARROW, NARROW), "one law": (ONE, ONE), "two laws": (ONE, OTHER), "exchanged": (OTHER, ONE)}
SIZES = [(2, 2), (3, 2), (2, 4)]
POSITIVE = st.floats(1e-3, 1e3)


def true_moments(train: Law, test: Law, n: int, m: int) -> Moments | CrossMoments:
    """The true moments as the library holds them: of one law where both are the same."""
    N = train.atoms.shape[1]
    if train is test:
        return Moments(n=n, N=N, **train.moments())
    return CrossMoments(n=n, m=m, N=N, **train.cross_moments(test))


def mean_products(train: Law, n: int, test: Law, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Z of every pair of samples and its probability."""
    pairs = [(p * q, x.mean(axis=0) @ y.mean(axis=0)) for p, x in train.samples(n) for q, y in test.samples(m)]
    probabilities, products = np.array(pairs).T
    return products, probabilities


def summary(train: np.ndarray, test: np.ndarray | None = None) -> Summary:
    return summarise(read_rows(train), None if test is None else read_rows(test))


@pytest.mark.parametrize(("train", "test"), PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize(("n", "m"), SIZES)
def test_mean_and_variance_of_z_are_exact(train: Law, test: Law, n: int, m: int) -> None:
    """E Z = S and Var Z = V(1/n + 1/m) + T/(nm), or nu'Sigma nu/n + mu'Gamma mu/m + tr(Sigma Gamma)/(nm): every bound
    is made of them. All samples of both laws are enumerated."""
    truth = true_moments(train, test, n, m)
    Z, probability = mean_products(train, n, test, m)
    mean = probability @ Z
    assert mean == pytest.approx(truth.S, abs=1e-12)
    assert probability @ (Z - mean) ** 2 == pytest.approx(truth.z_variance(n, m), rel=1e-12)


@pytest.mark.parametrize("pair", ["narrow", "two laws"])
@pytest.mark.parametrize(("n", "m"), SIZES)
def test_moments_of_two_laws_are_unbiased(pair: str, n: int, m: int) -> None:
    """The cross forms are derived here, not taken from a paper: enumeration is the proof."""
    train, test = PAIRS[pair]
    names = ("S", "S_squared", "V_train", "V_test", "T", "R", "R2", "diag")

    def statistic(rows: np.ndarray, others: np.ndarray) -> dict[str, Any]:
        found = unbiased_cross(cross_sums(rows, others))
        return {name: getattr(found, name) for name in names}

    found = expected_of_two(statistic, train, n, test, m)
    assert found == pytest.approx(train.cross_moments(test), rel=1e-11, abs=1e-11)


@pytest.mark.parametrize(("train", "test"), PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize(("n", "m"), [(2, 2), (3, 3), (5, 5)])
def test_bounds_dominate_the_flips(train: Law, test: Law, n: int, m: int) -> None:
    """A probability of misalignment above its bound would make every certificate of the report false. Exact: the
    probability of Z <= 0 is summed over all samples, the bounds come from the true moments."""
    Z, probability = mean_products(train, n, test, m)
    flips = probability[Z <= 1e-12].sum()
    truth = plug_in_alignment(true_moments(train, test, n, m), n, m)
    assert flips > 0
    assert flips <= truth["cantelli"] <= truth["certificate"]
    assert flips <= truth["chebyshev"]


def test_bounds_dominate_simulated_flips_and_the_normal_value_is_near_them() -> None:
    """The same for continuous rows of more units, where the normal approximation should hold and a bound should not be
    mistaken for it."""
    generator = np.random.default_rng(0)
    mixing, mean, n, draws = np.diag([2.0, 1.0, 1.0, 0.5]), np.array([0.3, 0.2, 0.0, 0.1]), 20, 4000
    sigma = mixing @ mixing.T
    S, T = float(mean @ mean), float((sigma**2).sum())
    truth = Moments(n, 4, S, S**2, float(mean @ sigma @ mean), T, 0.0, 0.0, 0.0)
    means = generator.standard_normal((2, draws, n, 4)).mean(axis=2) @ mixing + mean
    flips = np.mean((means[0] * means[1]).sum(axis=1) <= 0)
    bounds = plug_in_alignment(truth, n, n)
    assert flips <= bounds["cantelli"] <= bounds["certificate"]
    assert flips <= bounds["chebyshev"]
    assert bounds["normal"] == pytest.approx(flips, abs=0.05)


@given(POSITIVE, POSITIVE, POSITIVE, POSITIVE, st.integers(1, 500), st.integers(1, 500))
@settings(max_examples=200, deadline=None)
def test_the_certificate_is_never_below_cantelli(
    S_squared: float, V_train: float, V_test: float, T: float, n: int, m: int
) -> None:
    """Var Z <= (V (n + m) + T)/(nm) with V the larger of the two, so d_align n_eff <= r. With the smaller V the
    certificate would not follow from Cantelli's inequality, and would be void for two laws."""
    one = plug_in_alignment(CrossMoments(n, m, 1, 1.0, S_squared, V_train, V_test, T, 0.0, 0.0, 0.0), n, m)
    assert one["d_align"] == min(one["d_par"], one["d_2"])
    assert one["d_align"] * one["n_eff"] <= one["r"] * (1 + 1e-12)
    assert 0 < one["cantelli"] <= one["certificate"] * (1 + 1e-12) <= 1 + 1e-12
    assert one["cantelli"] <= one["chebyshev"] <= 1
    assert 0 <= one["normal"] <= 0.5


def test_bounds_at_known_places() -> None:
    """Spot values by hand: an exchanged n_eff or a forgotten root would pass every inequality above."""
    assert effective_samples(4, 8) == pytest.approx(32 / 13)
    assert (cantelli(3.0), chebyshev(4.0), chebyshev(0.5), certificate(2.0, 1.5)) == (0.25, 0.25, 1.0, 0.25)
    assert normal(1.0) == pytest.approx(0.15865525393145707)
    assert normal(4.0) == pytest.approx(0.022750131948179212)


def test_without_a_signal_nothing_is_said() -> None:
    """mu = 0: the plug-in alignment dimension grows in proportion to width by itself (N/B = 1 and 16 at B = 64), which
    is the claim. The unbiased S is not resolved, so neither ratio nor bound may be shown."""
    generator = np.random.default_rng(1)
    for N, grown in ((64, 1.0), (1024, 16.0)):
        rows = generator.standard_normal((20, 64, N))
        biased = [plug_in(centred_sums(one)) for one in rows]
        assert np.mean([one.S_squared / one.V for one in biased]) == pytest.approx(grown, rel=0.15)
        found = summary(rows[0])
        assert not found.estimates["S"].resolved
        assert {found.estimates[name].estimate for name in (*RATIOS, *PROBABILITIES)} == {None}
        assert found.estimates["n_eff"].estimate == pytest.approx(64**2 / 129)
        assert found.plug_in["d_par"] == pytest.approx(biased[0].S_squared / biased[0].V)


def test_opposed_laws_have_no_bound_below_one() -> None:
    """With E Z < 0 a step along the train mean hurts on the test rows; Cantelli's formula, which squares S, would
    certify it. Two laws only: within one law S cannot be negative, and a negative interval is chance."""
    generator = np.random.default_rng(2)
    train, test = generator.standard_normal((80, 4)) + 0.8, generator.standard_normal((60, 4)) - 0.8
    found = summary(train, test)
    assert found.estimates["S"].high < 0
    assert all(found.estimates[name] == Estimate(1.0, 1.0, 1.0) for name in PROBABILITIES)
    assert all(found.estimates[name].estimate is None for name in RATIOS)
    assert all(found.plug_in[name] == 1.0 for name in PROBABILITIES)
    one_law = alignment(moments(train), Estimate(-1.0, -2.0, -0.5), [], 80, 80)
    assert all(one_law[name].estimate is None for name in PROBABILITIES)


def test_rows_without_noise_have_no_ratio() -> None:
    """Equal rows never flip, but S^2/0 is not a dimension: no infinity, no NaN, no division error."""
    found = summary(np.full((6, 3), 0.1, dtype=np.float32))
    assert found.estimates["S"].resolved
    assert all(found.estimates[name].estimate is None for name in (*RATIOS, *PROBABILITIES))
    assert all(found.plug_in[name] is None for name in (*RATIOS, *PROBABILITIES))


def test_a_mean_along_a_quiet_direction_is_limited_by_t_alone() -> None:
    """Where V is 0, its unbiased estimate is negative in half of all samples: d_par is then unknown, but d_align = d_2
    and its certificate are not."""
    generator = np.random.default_rng(3)
    known = []
    for _ in range(40):
        rows = np.hstack([np.full((50, 1), 2.0), generator.standard_normal((50, 3))])
        ratios = alignment_ratios(moments(rows), 50, 50)
        assert ratios["d_align"] == pytest.approx(ratios["d_2"], rel=1e-12)
        assert ratios["d_par"] > ratios["d_2"] or np.isnan(ratios["d_par"])
        known.append(not np.isnan(ratios["d_par"]))
    assert 0 < sum(known) < 40


def test_limits_cover_planted_alignment() -> None:
    """Trends of d_align over width are read against these limits: of 90 % limits 85 to 97 % may cover (ratios of noisy
    moments are covered too often rather than too seldom), for one row set and for two."""
    generator = np.random.default_rng(4)
    mixing = np.eye(5) + 0.3 * generator.standard_normal((5, 5))
    mean, sigma, n, m = np.full(5, 0.7), mixing @ mixing.T, 120, 90
    S, V, T = mean @ mean, mean @ sigma @ mean, (sigma**2).sum()
    for two in (False, True):
        variance = V * (1 / n + 1 / (m if two else n)) + T / (n * (m if two else n))
        truth = {"d_par": S**2 / V, "d_2": S**2 / T, "d_align": S**2 / max(V, T), "r": S**2 / variance}
        truth["cantelli"] = 1 / (1 + truth["r"])
        covered = dict.fromkeys(truth, 0)
        for _ in range(250):
            rows = [generator.standard_normal((size, 5)) @ mixing.T + mean for size in ((n, m) if two else (n,))]
            found = summary(*rows).estimates
            for name, value in truth.items():
                covered[name] += found[name].low <= value <= found[name].high
        assert all(0.85 <= count / 250 <= 0.97 for count in covered.values()), (two, covered)


@given(st.floats(1e-3, 1e3))
@settings(max_examples=15, deadline=None)
def test_the_unit_of_the_loss_changes_no_dimension(scale: float) -> None:
    """S^2, V and T all scale by c^4: a dimension or bound that moved with c could not be compared across nets."""
    generator = np.random.default_rng(5)
    train, test = generator.standard_normal((40, 3)) + 1, generator.standard_normal((30, 3)) + 1
    for sets in ((train,), (train, test)):
        before, after = summary(*sets).estimates, summary(*(scale * rows for rows in sets)).estimates
        for name in (*RATIOS, *PROBABILITIES, "rho_off"):
            for limit in ("estimate", "low", "high"):
                wanted = getattr(before[name], limit)
                assert getattr(after[name], limit) == pytest.approx(wanted, rel=1e-7, abs=1e-9), name


def test_train_and_test_can_be_exchanged() -> None:
    """Z is symmetric: with n and m exchanged too, everything but R, the trace of the train covariance, must agree."""
    generator = np.random.default_rng(6)
    train, test = generator.standard_normal((40, 3)) + 1, generator.exponential(size=(70, 3))
    one, other = summary(train, test), summary(test, train)
    assert (one.n, one.m) == (other.m, other.n) == (40, 70)
    for name, estimate in one.estimates.items():
        if name != "R":
            assert vars(other.estimates[name]) == pytest.approx(vars(estimate), rel=1e-9), name


def test_plug_ins_of_two_sets_are_moments_of_the_empirical_laws() -> None:
    """They stand for what the group's script computes: divisors n and m, no correction."""
    generator = np.random.default_rng(7)
    rows, others = generator.exponential(size=(6, 3)), generator.standard_normal((5, 3))
    truth = Law(rows, np.full(6, 1 / 6)).cross_moments(Law(others, np.full(5, 1 / 5)))
    found = plug_in_cross(cross_sums(rows, others))
    assert {name: getattr(found, name) for name in truth} == pytest.approx(truth, rel=1e-10)
    assert max(found.V_train, found.V_test) == found.V
