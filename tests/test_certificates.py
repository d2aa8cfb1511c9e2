"""Bounds and limits of nets: a certificate that is wrong by a factor looks like any other number."""

import math
from typing import Any

import numpy as np
import pytest
import torch

from jumpboard.errors import InputError
from jumpboard.expansion.gains import paired_gain
from jumpboard.theory.limits import MOST, bernstein_slack, hoeffding_slack, samples_needed
from jumpboard.theory.losses import LOSSES, loss_values
from jumpboard.theory.routes import HOLDS, VIOLATED, VOID, Route, route_a, route_b
from jumpboard.theory.uniform import DRAFT, Complexity
from jumpboard.theory.weight_class import Norms, cap_number, capped, largest_norms, power_above, smallest_powers
from oracles.certificates import plain_bernstein, plain_brier, plain_cross_entropy, plain_eps

NET = {"parameters": 54, "layers": 4, "radius": 9.0, "lipschitz": 4.9e6, "loss_lipschitz": math.sqrt(2), "bound": 2.0}
DELTA = 0.05


@pytest.mark.parametrize(
    "changed", [{}, {"parameters": 7000}, {"layers": 9, "lipschitz": 3.0}, {"bound": 3.1, "radius": 0.2}]
)
@pytest.mark.parametrize("n", [10, 4_000_000])
def test_uniform_deviation_equals_a_plain_transcription(changed: dict[str, Any], n: int) -> None:
    given = NET | changed
    own = [given[name] for name in ("bound", "parameters", "layers", "radius", "loss_lipschitz", "lipschitz")]
    for tails in (4, DRAFT):
        assert Complexity(**given).deviation(n, DELTA, tails) == pytest.approx(
            plain_eps(*own, n, DELTA, tails), rel=1e-12
        )


def test_numbers_that_were_worked_out_by_hand() -> None:
    """eps_M of 54 parameters and 4 million samples, at delta 0.05: 0.115."""
    whole = Complexity(**NET)
    assert whole.rademacher(4_000_000) == pytest.approx(0.0551, rel=0.01)
    assert whole.deviation(4_000_000, DELTA) == pytest.approx(0.115, rel=0.01)
    assert whole.deviation(4_000_000, DELTA, DRAFT) < whole.deviation(4_000_000, DELTA)


def test_the_bound_covers_a_class_whose_deviation_is_known() -> None:
    """One parameter, loss in [0, 1] that is 1-Lipschitz in it: deviations of all 201 nets at once stay below eps."""
    generator, n = np.random.default_rng(5), 400
    grid = np.linspace(-1, 1, 201)
    whole = Complexity(1, 1, 1.0, 1.0, 1.0, 1.0)
    for _ in range(50):
        x = generator.uniform(-1, 1, n)
        loss = np.abs(grid[:, None] - x).clip(max=1)
        true = np.array([np.abs(theta - np.linspace(-1, 1, 4001)).clip(max=1).mean() for theta in grid])
        assert np.abs(loss.mean(axis=1) - true).max() <= whole.deviation(n, DELTA)


def test_terms_of_the_routes() -> None:
    a = route_a(0.02, 0.5, 0.1, 4_000_000, 2.0, DELTA)
    assert (a.gain, a.slack) == (pytest.approx(0.51), pytest.approx(0.2))
    assert a.failure == pytest.approx(0.1 + 6 * math.exp(-4e6 * 0.02**2 / 32))
    assert a.right_hand_side(0.7) == pytest.approx(0.7 - 0.02 / 2 - 0.5 + 2 * 0.1)
    b = route_b(0.02, 0.5, 0.1, 0.3, DELTA)
    assert b.right_hand_side(0.7) == pytest.approx(0.7 - 0.02 - 0.5 + 2 * (0.1 + 0.3))
    assert b.failure == pytest.approx(2 * DELTA)


@pytest.mark.parametrize("limit", [-0.3, 0.0, 0.001])
def test_route_a_promises_nothing_without_a_gain_that_is_resolved(limit: float) -> None:
    """A negative limit squared would otherwise count as evidence."""
    a = route_a(limit, 0.5, 0.1, 1_000_000, 2.0, DELTA)
    assert a.failure == 1.0
    assert a.outcome(0.7, 5.0, DELTA) == VOID


def test_a_loss_above_its_bound_is_a_violation() -> None:
    route = Route(0.5, 0.2, 2 * DELTA)
    assert route.outcome(0.7, 0.399999, DELTA) == HOLDS
    assert route.outcome(0.7, 0.400001, DELTA) == VIOLATED
    assert route.outcome(0.7, math.nan, DELTA) == VIOLATED


# The class


def test_shares_of_all_powers_of_two_sum_to_1() -> None:
    exponents = range(-2000, 2001)
    assert sorted(cap_number(k) for k in exponents) == list(range(1, 4002))
    one = sum(6 / (math.pi * cap_number(k)) ** 2 for k in exponents)
    assert 0.9997 < one < 1


@pytest.mark.parametrize(
    ("value", "k"), [(1.0, 0), (1.01, 1), (2.0, 1), (0.5, -1), (0.26, -1), (0.25, -2), (6.3, 3), (1e-9, -29)]
)
def test_the_smallest_power_of_two_above(value: float, k: int) -> None:
    assert power_above(value) == k
    assert 2.0 ** (k - 1) < value <= 2.0**k


def test_a_class_of_powers_costs_the_share_of_both_caps() -> None:
    own = smallest_powers(Norms(6.3, 0.4))
    assert (own.spectral, own.frobenius) == (8.0, 0.5)
    assert own.share == pytest.approx((6 / math.pi**2) ** 2 / (6 * 3) ** 2)  # k = 3 is number 6, k = -1 number 3


def test_norms_are_those_of_matrices_and_of_whole_layers() -> None:
    generator = np.random.default_rng(6)
    a, b, c = generator.normal(size=(4, 2)), generator.normal(size=(2, 9)), generator.normal(size=(3, 2))
    found = largest_norms([(a, b), (c,)])
    assert found.spectral == pytest.approx(max(np.linalg.svd(one)[1][0] for one in (a, b, c)))
    assert found.frobenius == pytest.approx(math.sqrt((a**2).sum() + (b**2).sum()))


@pytest.mark.parametrize(
    ("norms", "words"), [(Norms(2.01, 1.0), "a matrix has spectral"), (Norms(1, 3.5), "a layer has frobenius")]
)
def test_a_net_above_its_caps_is_refused_in_one_line(norms: Norms, words: str) -> None:
    with pytest.raises(InputError, match=f"^here: {words} norm .*; accepted: at most its cap") as refused:
        capped({"spectral": 2.0, "frobenius": 3.0}, norms, "here")
    assert "\n" not in str(refused.value)
    assert capped({"spectral": 2.0, "frobenius": 3.0}, Norms(2.0, 3.0), "here").share == 1
    with pytest.raises(InputError):
        capped({"spectral": 2.0, "frobenius": 3.0}, Norms(math.nan, 1.0), "here")


# Losses


def test_bounded_losses_equal_plain_ones_and_keep_to_their_range_and_slope() -> None:
    generator = torch.Generator().manual_seed(8)
    logits = 6 * torch.randn(400, 3, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, 3, (400,), generator=generator)
    for name, plain in (("brier", plain_brier), ("cross_entropy", plain_cross_entropy)):
        loss = LOSSES[name]
        found = loss_values(logits, labels, [name])[name]
        expected = [plain(one.numpy(), int(label)) for one, label in zip(logits, labels, strict=True)]
        assert found.numpy() == pytest.approx(expected, abs=1e-12)
        assert 0 <= float(found.min()) <= float(found.max()) <= loss.bound(3)
        assert float(found.max()) > 0.9 * loss.bound(3)
        point = logits.clone().requires_grad_()
        slope = torch.autograd.grad(loss_values(point, labels, [name])[name].sum(), point)[0].norm(dim=1)
        assert float(slope.max()) <= loss.lipschitz
    assert float(slope.max()) > 0.9 * loss.lipschitz  # of the cross-entropy


# Limits of a fixed pair


@pytest.mark.parametrize("steps", [1, 8])
def test_bernstein_equals_a_plain_transcription(steps: int) -> None:
    d = np.random.default_rng(9).normal(0.1, 0.3, 200)
    gain = paired_gain(d[None], np.zeros((1, 200)))
    slack = bernstein_slack(float(gain.variance[0]), 4.0, 200, DELTA, steps)
    assert float(gain.mean[0]) - slack == pytest.approx(plain_bernstein(d.tolist(), 4.0, DELTA, steps), rel=1e-12)


@pytest.mark.parametrize("chance", [0.5, 0.02, 0.001])
def test_limits_lie_below_the_truth_at_least_as_often_as_they_say(chance: float) -> None:
    """Differences of 1 or -1; where one of them is rare, few samples show the true variance."""
    generator, n, tries = np.random.default_rng(10), 300, 4000
    ups = generator.binomial(n, chance, tries)
    mean = 2 * ups / n - 1
    variance = (1 - mean**2) * n / (n - 1)
    true = 2 * chance - 1
    for slack in (bernstein_slack(variance, 2.0, n, DELTA), np.full(tries, hoeffding_slack(2.0, n, DELTA))):
        assert (mean - slack > true).mean() <= DELTA


def test_samples_needed_are_the_smallest_that_do() -> None:
    for slack in (
        lambda n: bernstein_slack(0.04, 4.0, n, DELTA),
        lambda n: hoeffding_slack(4.0, n, DELTA),
        lambda n: 2 * Complexity(**NET).deviation(n, DELTA),
    ):
        n = samples_needed(slack, 0.05)
        assert n is not None
        assert slack(n) < 0.05 <= slack(n - 1)
    assert samples_needed(lambda n: hoeffding_slack(1.0, n, DELTA), 0.0) is None
    assert samples_needed(lambda n: hoeffding_slack(1.0, n, DELTA), -1.0) is None
    assert samples_needed(lambda n: hoeffding_slack(1.0, n, DELTA), 0.1 / math.sqrt(MOST)) is None
