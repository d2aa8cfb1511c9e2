"""The papers claim that gradient covariances are nearly diagonal. A finite sample never shows that by itself: planted
diagonal and planted correlated covariances must be told apart, and the null must say what chance alone looks like."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from jumpboard.measure.covariance import COLUMNS, DRAFT_LIMIT, covariance
from jumpboard.measure.intervals import Estimate, Replicates, moment_intervals
from jumpboard.measure.jackknife import delete_block_sums
from jumpboard.measure.moments import unbiased
from jumpboard.measure.rows import read_rows


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def rho_off_interval(rows: np.ndarray) -> Estimate:
    read = read_rows(rows)
    sums, without = delete_block_sums(read)
    return moment_intervals(unbiased(sums), [Replicates(unbiased(without), read.sizes)])["rho_off"]


def equicorrelated(rho: float, N: int) -> tuple[np.ndarray, float]:
    """A covariance with unit variances and one correlation, and its exact rho_off = (N-1) rho^2/(1 + (N-1) rho^2)."""
    sigma = np.full((N, N), rho) + (1 - rho) * np.eye(N)
    energy = (N - 1) * rho**2
    return sigma, energy / (1 + energy)


def test_a_diagonal_covariance_is_seen_as_one() -> None:
    """At N = n the plug-in of a truly diagonal covariance has as much energy off the diagonal as on it; read without
    correction or null, it refutes the papers' claim for every net, or confirms it by the choice of n."""
    n = N = 256
    found = covariance(generator().standard_normal((n, N)), generator(1))
    assert found.observed.rho_off_plug_in == pytest.approx(0.5, abs=0.02)  # ratio of norms sqrt((N-1)/n) = 1
    assert found.null.rho_off_plug_in == pytest.approx(found.observed.rho_off_plug_in, abs=0.02)
    assert abs(found.observed.rho_off) < 0.03
    assert abs(found.null.rho_off) < 0.03
    assert found.observed.mean_correlation == pytest.approx(found.null.mean_correlation, rel=0.05)
    assert found.observed.max_correlation == pytest.approx(found.null.max_correlation, rel=0.3)
    assert found.observed.lambda_max_ratio == pytest.approx(found.null.lambda_max_ratio, rel=0.1)
    assert found.participation == pytest.approx(N, rel=0.05)


@pytest.mark.parametrize("rho", [0.2, 0.6])
def test_a_planted_correlation_is_found_and_destroyed_by_the_null(rho: float) -> None:
    """If dependence were lost, or survived the permutation, a net with correlated units would pass as near-diagonal."""
    sigma, truth = equicorrelated(rho, 12)
    rows = generator(2).multivariate_normal(np.ones(12), sigma, 2000)
    found, interval = covariance(rows, generator(3)), rho_off_interval(rows)
    assert interval.low < truth < interval.high
    assert found.observed.rho_off == pytest.approx(interval.estimate, rel=1e-9)
    assert found.observed.mean_correlation == pytest.approx(rho, abs=0.05)
    assert found.observed.lambda_max_ratio == pytest.approx(1 + 11 * rho, rel=0.1)
    assert found.participation == pytest.approx(12 / (1 + 11 * rho**2), rel=0.1)
    assert abs(found.null.rho_off) < 0.01
    assert found.null.mean_correlation < 0.03
    assert found.null.lambda_max_ratio < 1.3


def test_limits_of_the_ratio_cover_planted_ones() -> None:
    """The claim's verdict is read off these limits: 90 % must mean 85 to 94 % where coordinates are correlated, and at
    least that where they are not: there the ratio is degenerate, as S is at 0, and the limits err on the safe side."""
    source = generator(4)
    for rho, most in ((0.0, 1.0), (0.4, 0.94)):
        sigma, truth = equicorrelated(rho, 8)
        factor, covered = np.linalg.cholesky(sigma), 0
        for _ in range(300):
            interval = rho_off_interval(source.standard_normal((120, 8)) @ factor.T)
            covered += interval.low <= truth <= interval.high
        assert 0.85 <= covered / 300 <= most, (rho, covered / 300)


def test_all_pairs_are_seen_in_every_block_of_columns() -> None:
    """Correlations are computed column block by column block; a pair lost at a block's edge could be the largest."""
    N = COLUMNS + 40
    rows = generator(5).standard_normal((50, N))
    rows[:, COLUMNS + 1] = rows[:, COLUMNS - 1] + 0.1 * rows[:, COLUMNS + 1]
    found = covariance(rows, generator(6), permutations=1).observed
    pairs = ~np.eye(N, dtype=bool)
    correlations, covariances = np.abs(np.corrcoef(rows.T)), np.abs(np.cov(rows.T))
    assert found.max_correlation == pytest.approx(correlations[pairs].max(), rel=1e-12)
    assert found.mean_correlation == pytest.approx(correlations[pairs].mean(), rel=1e-12)
    assert found.max_covariance == pytest.approx(covariances[pairs].max(), rel=1e-12)
    eigenvalues = np.linalg.eigvalsh(np.cov(rows.T))
    assert found.lambda_max_ratio == pytest.approx(eigenvalues[-1] / eigenvalues.mean(), rel=1e-10)


def test_constant_coordinates_are_counted_and_give_no_nan() -> None:
    """A dead unit has gradient 0 on every sample: one NaN correlation would swallow the statistics of its site."""
    rows = generator(7).standard_normal((40, 5)).astype(np.float32)
    rows[:, 1] = 0.1
    found, alive = covariance(rows, generator(8)), covariance(np.delete(rows, 1, axis=1), generator(8))
    assert found.constant == 1
    assert found.observed.mean_correlation == pytest.approx(alive.observed.mean_correlation, rel=1e-12)
    assert found.observed.max_correlation == pytest.approx(alive.observed.max_correlation, rel=1e-12)
    assert found.observed.rho_off == pytest.approx(alive.observed.rho_off, rel=1e-10)
    dead = covariance(np.full((6, 3), 0.1, dtype=np.float32), generator(9))
    assert (dead.constant, dead.mean_variance, dead.participation) == (3, 0.0, None)
    assert dead.observed == dead.null
    assert (dead.observed.rho_off, dead.observed.mean_correlation, dead.observed.max_covariance) == (0.0, None, 0.0)
    assert dead.observed.lambda_max_ratio is None


def test_a_single_coordinate_has_no_pairs() -> None:
    """Nothing is said about pairs where there are none, and no division by their number is tried."""
    found = covariance(generator(10).standard_normal((20, 1)), generator(11))
    assert (found.observed.max_correlation, found.observed.max_covariance) == (None, None)
    assert found.diagonal_by_draft


def test_the_drafts_criterion_is_a_statement_about_units() -> None:
    """Cov scales with the square of the loss's unit, correlations do not scale: the criterion is met by every net once
    its loss is divided by 10^4, which is why the mean variance stands beside it."""
    sigma, _ = equicorrelated(0.9, 4)
    rows = generator(12).multivariate_normal(np.zeros(4), sigma, 500)
    large, small = covariance(rows, generator(13)), covariance(1e-4 * rows, generator(13))
    assert not large.diagonal_by_draft
    assert small.diagonal_by_draft
    assert small.observed.max_covariance < DRAFT_LIMIT < large.observed.max_covariance
    assert small.mean_variance == pytest.approx(1e-8 * large.mean_variance, rel=1e-9)
    for name in ("rho_off", "rho_off_plug_in", "mean_correlation", "max_correlation", "lambda_max_ratio"):
        assert getattr(small.observed, name) == pytest.approx(getattr(large.observed, name), rel=1e-9), name


def test_the_null_comes_from_the_generator_and_nowhere_else() -> None:
    """A null that changes from run to run makes tables that differ from run to run."""
    rows = generator(14).standard_normal((30, 4))
    assert covariance(rows, generator(15)) == covariance(rows, generator(15))
    assert covariance(rows, generator(15)).null != covariance(rows, generator(16)).null


@given(
    arrays.arrays(np.float64, st.tuples(st.integers(4, 12), st.integers(1, 5)), elements=st.integers(-3, 3).map(float))
)
@settings(max_examples=40, deadline=None)
def test_every_number_is_a_number_within_its_range(rows: np.ndarray) -> None:
    """Small samples of few values are full of constant and duplicate coordinates: no NaN, and no correlation over 1."""
    found = covariance(rows, generator(17), permutations=2)
    for one in (found.observed, found.null):
        assert np.isfinite([value for value in vars(one).values() if value is not None]).all()
        if one.max_correlation is not None:
            assert 0 <= one.mean_correlation <= one.max_correlation + 1e-12
            assert one.max_correlation <= 1 + 1e-12
        if one.lambda_max_ratio is not None:
            assert 1 - 1e-9 <= one.lambda_max_ratio <= rows.shape[1] + 1e-9
