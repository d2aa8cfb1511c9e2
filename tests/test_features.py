"""`signal_feature` is the slope that a new zero-output block would have: a biased or wrong one predicts gains that no
block delivers. Small laws are enumerated, rows are written out, and blocks are really inserted."""

import math
from collections.abc import Mapping

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from jumpboard.measure.features import EXPANSION, FeatureSums, draw_features, hidden_units
from jumpboard.measure.moments import centred_sums, moments, plug_in
from jumpboard.nets.base import Net, run_from, run_to
from oracles.gradients import feature_rows, loop_gradients
from oracles.moments import Law, expected
from problems import PROBLEMS, inputs, labels, trained_leaves

every_net = pytest.mark.parametrize("net", [pytest.param(problem.net(), id=problem.name) for problem in PROBLEMS])
UNITS, HIDDEN = 2, 2


def gaussian(*shape: int, seed: int = 0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def planted_law(positions: int) -> Law:
    """Three samples, each zeta [P, 2] followed by hidden units [P, 2], that depend on each other."""
    atoms = np.random.default_rng(positions).integers(-2, 4, (3, positions * (UNITS + HIDDEN)))
    return Law(atoms.astype(np.float64), np.array([0.5, 0.2, 0.3]))


def split(atoms: np.ndarray, positions: int) -> tuple[np.ndarray, np.ndarray]:
    """zeta [n, P, 2] and hidden units [n, P, 2]."""
    zeta, hidden = np.split(atoms, [positions * UNITS], axis=1)
    return zeta.reshape(-1, positions, UNITS), hidden.reshape(-1, positions, HIDDEN)


def phi_of(hidden: np.ndarray) -> np.ndarray:
    return np.concatenate([hidden, np.ones_like(hidden[..., :1])], axis=-1)


def written_out(atoms: np.ndarray, positions: int) -> np.ndarray:
    """The rows sum_p zeta_p phi_p' of these samples, flattened."""
    zeta, hidden = split(atoms, positions)
    return np.einsum("ipu,ipf->iuf", zeta, phi_of(hidden)).reshape(len(atoms), -1)


@pytest.mark.parametrize("positions", [1, 2])
@pytest.mark.parametrize("n", [2, 5])
def test_the_estimate_is_unbiased_and_the_plug_in_is_high_by_r_over_n(positions: int, n: int) -> None:
    """Without the correction a random-feature block would promise a gain of sqrt(R/n) at every site of every net, most
    at wide ones. All 3^n samples are enumerated; R is the trace of the covariance of the rows."""
    law = planted_law(positions)
    rows = Law(written_out(law.atoms, positions), law.probabilities)
    truth = rows.moments()

    def statistic(atoms: np.ndarray) -> Mapping[str, float]:
        sums = FeatureSums.of(*map(torch.from_numpy, split(atoms, positions)))
        return {"unbiased": sums.unbiased, "plug_in": sums.plug_in, "phi": sums.phi_mean_square}

    phi_squares = (phi_of(split(law.atoms, positions)[1]) ** 2).sum(axis=(1, 2))
    wanted = {"unbiased": truth["S"], "plug_in": truth["S"] + truth["R"] / n, "phi": law.probabilities @ phi_squares}
    assert expected(statistic, law, n) == pytest.approx(wanted, rel=1e-11)


@every_net
def test_sums_are_those_of_the_rows_written_out(net: Net) -> None:
    """Rows of N (4N + 1) entries are never made; what is kept of them must be what they would give."""
    leaves, x, y = trained_leaves(net, 1), inputs(net, 1, 6), labels(net, 1, 6)
    for site, (z, zeta) in zip(net.sites(), loop_gradients(net, leaves, x[0], y[0]), strict=True):
        weights = draw_features(site.units, np.random.default_rng(site.index)).double()
        rows = feature_rows(weights, z, zeta)
        assert rows.shape == (6, site.units * (4 * site.units + 1))
        sums = FeatureSums.of(zeta, hidden_units(weights, z))
        assert sums.n == 6
        assert sums.total.flatten().numpy() == pytest.approx(rows.sum(axis=0), rel=1e-10, abs=1e-12)
        assert float(sums.squares) == pytest.approx((rows**2).sum(), rel=1e-10)
        assert sums.unbiased == pytest.approx(moments(rows).S, rel=1e-9, abs=1e-9 * sums.plug_in)
        assert sums.plug_in == pytest.approx(plug_in(centred_sums(rows)).S, rel=1e-10)


@given(cut=st.integers(1, 8), positions=st.integers(1, 3))
@settings(max_examples=20, deadline=None)
def test_sums_add_and_subtract(cut: int, positions: int) -> None:
    """Batches are put together and jackknife blocks taken out: neither may depend on where the cut was."""
    zeta, hidden = gaussian(9, positions, 3), gaussian(9, positions, 5, seed=1)
    whole, first, second = (FeatureSums.of(zeta[part], hidden[part]) for part in (np.s_[:], np.s_[:cut], np.s_[cut:]))
    for found, wanted in ((first + second, whole), (whole - second, first), (whole - first, second)):
        assert found.n == wanted.n
        assert found.total.numpy() == pytest.approx(wanted.total.numpy(), rel=1e-9, abs=1e-12)
        assert float(found.squares) == pytest.approx(float(wanted.squares), rel=1e-9)
        assert found.phi_mean_square == pytest.approx(wanted.phi_mean_square, rel=1e-9)


def mean_loss(net: Net, leaves: Mapping[str, Tensor], z: Tensor, y: Tensor, site: int) -> float:
    return float(functional.cross_entropy(run_from(net, leaves, z, site)[0], y[0]))


@every_net
def test_an_inserted_block_gains_what_the_signal_says(net: Net) -> None:
    """The block h = A phi with A = -t E[zeta phi']/|E[zeta phi']| is inserted at a site; at t = 0 its mean loss falls
    with slope `signal_feature` (plug-in, on the very samples). From t = 1e-1 of RMS |z| down to 1e-4 and 1e-8 the ratio
    tends to 1, with steps where a relu of the net above changes sides; another sign, constant unit or sum over
    positions would have another limit."""
    leaves, x, y = trained_leaves(net, 1), inputs(net, 1, 12), labels(net, 1, 12)
    for site, (z, zeta) in zip(net.sites(), loop_gradients(net, leaves, x[0], y[0]), strict=True):
        hidden = hidden_units(draw_features(site.units, np.random.default_rng(site.index)).double(), z)
        sums = FeatureSums.of(zeta, hidden)
        signal = math.sqrt(sums.plug_in)
        direction = sums.total / (sums.n * signal)
        change = torch.from_numpy(phi_of(hidden.numpy())) @ direction.mT
        stream = run_to(net, leaves, x, site.index)
        step = change.mT.reshape(stream.shape) if stream.dim() == 4 else change.mT.reshape(1, 12, -1)
        scale = float(z.square().sum((1, 2)).mean().sqrt())
        before = mean_loss(net, leaves, stream, y, site.index)
        errors = []
        for t in (1e-8, 1e-4, 1e-1):
            after = mean_loss(net, leaves, stream - t * scale * step, y, site.index)
            errors.append(abs((before - after) / (t * scale * signal) - 1))
        assert errors[0] < 1e-5, site
        assert errors[1] < 0.06, site
        assert errors[1] < 0.3 * errors[2], site


def test_hidden_units_are_the_blocks() -> None:
    """relu(W1 z) at each position: without relu a block would be linear."""
    weights, z = draw_features(3, np.random.default_rng(0)).double(), gaussian(5, 2, 3)
    hidden = hidden_units(weights, z)
    assert hidden.shape == (5, 2, 12)
    for i, p in np.ndindex(5, 2):
        assert hidden[i, p].tolist() == pytest.approx([max(float(row @ z[i, p]), 0.0) for row in weights], rel=1e-12)


def test_random_features_have_the_law_that_is_stated() -> None:
    """W1 ~ N(0, 2/N) keeps |relu(W1 z)|^2 = 4 |z|^2 on average at every width: signals of two widths compare only
    so."""
    for units in (16, 64):
        weights = draw_features(units, np.random.default_rng(units))
        assert weights.shape == (EXPANSION * units, units) == (4 * units, units)
        assert weights.dtype == torch.float32
        count = weights.numel()
        assert abs(float(weights.mean())) < 5 * (2 / units / count) ** 0.5
        assert float(weights.square().mean()) == pytest.approx(2 / units, rel=5 * (2 / count) ** 0.5)
        assert torch.equal(weights, draw_features(units, np.random.default_rng(units)))
        assert not torch.equal(weights, draw_features(units, np.random.default_rng(1)))
        z = gaussian(2000, 1, units, seed=3)
        size = hidden_units(weights.double(), z).square().sum((1, 2)).mean()
        assert float(size) == pytest.approx(4 * units, rel=0.1)


def test_one_row_has_no_unbiased_square() -> None:
    """One row cannot tell a mean from noise: a number there would be the plug-in."""
    assert math.isnan(FeatureSums.of(gaussian(1, 1, 2), gaussian(1, 1, 3)).unbiased)


def test_single_precision_keeps_the_sums() -> None:
    """Nets are measured in float32; squares of tiny gradients must not vanish, nor sums lose what S needs."""
    zeta, hidden = 1e-12 * gaussian(200, 1, 8), gaussian(200, 1, 32, seed=1)
    exact, narrow = FeatureSums.of(zeta, hidden), FeatureSums.of(zeta.float(), hidden.float())
    assert narrow.total.dtype == torch.float64
    assert float(narrow.squares) == pytest.approx(float(exact.squares), rel=1e-5)
    assert narrow.unbiased == pytest.approx(exact.unbiased, abs=1e-5 * exact.plug_in)
