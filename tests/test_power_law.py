"""Two roads to one exponent: each must find a planted beta, also where a plain slope does not, and neither may be
called identified, or the two in agreement, where the chain does not say."""

import numpy as np
import pytest

from jumpboard.theory.forms import FloatArray
from jumpboard.theory.power_law import (
    AGREE,
    CURVE,
    DISAGREE,
    OPEN,
    SLOPE,
    agreement,
    excess_risk,
    exponent_in_parameters,
    permuted_agreements,
    two_betas,
)

K = np.arange(9.0)
R_STAR = 0.3


def chain(
    beta: float, seed: int = 0, k0: float = 2.0, noise: float = 0.003, signal_beta: float | None = None
) -> tuple[FloatArray, FloatArray]:
    """Risks and squared signals [4, 9] of four seeds that begin at different risks."""
    generator = np.random.default_rng(seed)
    excess = 0.5 * np.exp(0.05 * generator.standard_normal((4, 1))) * excess_risk(K, 1.0, k0, beta)
    risk = R_STAR + excess * np.exp(noise * generator.standard_normal((4, 9)))
    power = 1 + (beta if signal_beta is None else signal_beta)
    return risk, 0.02 * excess**power * (1 + 0.1 * generator.standard_normal((4, 9)))


@pytest.mark.parametrize("known", [True, False], ids=["R* known", "R* fitted"])
@pytest.mark.parametrize("beta", [0.5, 1.0])
def test_both_roads_find_a_planted_beta(beta: float, known: bool) -> None:
    told = [two_betas(K, *chain(beta, seed), R_STAR if known else None) for seed in range(6)]
    for name in (SLOPE, CURVE):
        identified = [one.beta[name].estimate for one in told if one.beta[name].estimate is not None]
        assert len(identified) >= 5
        assert np.median(identified) == pytest.approx(beta, rel=0.1)
    assert [agreement(one.beta) for one in told].count(AGREE) >= 4


def test_a_plain_slope_would_be_far_off() -> None:
    """A chain that begins at Delta_0 is no power of k: a true 0.5 comes out as 1.65, unless k0 is free."""
    risk, signal = chain(0.5, k0=10, noise=0)
    plain = -1 / np.polyfit(np.log(K[1:]), np.log(risk.mean(axis=0)[1:] - R_STAR), 1)[0]
    assert plain > 1.4
    assert two_betas(K, risk, signal, R_STAR).beta[CURVE].estimate == pytest.approx(0.5, rel=0.01)


def test_different_exponents_disagree() -> None:
    assert agreement(two_betas(K, *chain(0.5, signal_beta=1.5), R_STAR).beta) == DISAGREE


def test_uncertainty_of_the_least_risk_reaches_both() -> None:
    known, fitted = (two_betas(K, *chain(1.0, 3), r_star) for r_star in (R_STAR, None))
    for name in (SLOPE, CURVE):
        widths = [np.log(one.beta[name].high / one.beta[name].low) for one in (known, fitted)]  # type: ignore[operator]
        assert widths[1] > 1.2 * widths[0]
    assert fitted.r_star.low is not None
    assert fitted.r_star.low < R_STAR < fitted.r_star.high  # type: ignore[operator]
    assert (known.r_star.estimate, known.r_star.low) == (R_STAR, R_STAR)


@pytest.mark.parametrize(
    ("change", "slope", "curve"),
    [
        (lambda risk, signal: (risk, 0 * signal + 0.01), "beta is not positive", ""),
        (lambda risk, signal: (risk, signal - 2 * signal.mean()), "is not positive", ""),
        (lambda risk, signal: (risk[:1], signal[:1]), "one seed", "one seed"),
        (lambda risk, signal: (0 * risk + 0.9, signal), "", "bound"),
    ],
    ids=["signal does not fall", "unresolved signal", "one seed", "risk does not fall"],
)
def test_where_a_chain_does_not_say_there_is_no_beta(change, slope: str, curve: str) -> None:  # type: ignore[no-untyped-def]
    told = two_betas(K, *change(*chain(0.5)), R_STAR)
    for name, reason in ((SLOPE, slope), (CURVE, curve)):
        assert told.beta[name].identified == (not reason) or not slope
        assert reason in told.beta[name].reason
    assert agreement(told.beta) == OPEN


def test_a_short_chain_has_no_beta() -> None:
    risk, signal = chain(0.5)
    assert two_betas(K[:4], risk[:, :4], signal[:, :4], R_STAR).beta[CURVE].reason == "fewer than 5 different k"


def test_permuted_signals_do_not_agree() -> None:
    told = permuted_agreements(K, *chain(0.5), R_STAR, 40)
    assert told.count(AGREE) <= 2


def test_exponents_in_parameters() -> None:
    """Appendix M: depth as width gives 1/(3 beta); P = a L N^2 with L = N^(1 - nu) has N = P^(1/(3 - nu))."""
    assert exponent_in_parameters(0.5) == pytest.approx(2 / 3)
    N = 2.0 ** np.arange(4, 12)
    for nu in (0.0, 0.5, 0.9):
        L = N ** (1 - nu)
        slope = np.polyfit(np.log(L * N**2), np.log(L ** (-1 / 0.7)), 1)[0]
        assert exponent_in_parameters(0.7, nu) == pytest.approx(-slope)
