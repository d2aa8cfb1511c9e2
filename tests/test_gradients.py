"""Activation gradients are the raw material of every signal, covariance and alignment: here they are held against one
sample run alone, against the loss itself, and against what theory says of them."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from jumpboard.errors import InputError
from jumpboard.measure import gradients
from jumpboard.measure.gradients import site_gradients
from jumpboard.nets.base import Leaves, Net, run_from, run_to
from jumpboard.nets.resmlp import ResMLP
from oracles.gradients import loop_gradients
from problems import CLASSES, PROBLEMS, inputs, labels, trained_leaves

NETS = [pytest.param(problem.net(), id=problem.name) for problem in PROBLEMS]
every_net = pytest.mark.parametrize("net", NETS)
with_running_statistics = pytest.mark.parametrize("net", [one for one in NETS if one.values[0].buffer_shapes()])

Data = tuple[dict[str, Tensor], Tensor, Tensor]


def small(net: Net, members: int = 1, batch: int = 4) -> Data:
    """Leaves that have left their initial values, inputs and labels, float64."""
    return trained_leaves(net, members), inputs(net, members, batch), labels(net, members, batch)


def total_loss(net: Net, leaves: Leaves, z: Tensor, y: Tensor, site: int) -> float:
    """The summed loss of one member from a site on."""
    return float(functional.cross_entropy(run_from(net, leaves, z, site)[0], y[0], reduction="sum"))


@every_net
def test_gradients_are_those_of_each_sample_alone(net: Net) -> None:
    """Samples of a batch, members of a job or sites of a net that mix would give moments of something that no sample
    has; running statistics are not those of the batch, so that BatchNorm in evaluation mode mixes nothing either."""
    leaves, x, y = small(net, members=2)
    found = site_gradients(net, leaves, x, y)
    for member in range(2):
        alone = {name: leaf[member : member + 1] for name, leaf in leaves.items()}
        wanted = loop_gradients(net, alone, x[member], y[member])
        for both, (z, zeta) in zip(found, wanted, strict=True):
            torch.testing.assert_close(both[0][member], z, rtol=1e-11, atol=1e-13)
            torch.testing.assert_close(both[1][member], zeta, rtol=1e-9, atol=1e-13)


@every_net
def test_sites_come_in_order_with_their_shapes(net: Net) -> None:
    """A site too many or too few moves every relative depth; a first site before the stem is none of the stream's."""
    leaves, x, y = small(net)
    found = site_gradients(net, leaves, x, y)
    assert len(found) == net.depth + 1
    for site, (z, zeta) in zip(net.sites(), found, strict=True):
        assert z.shape == zeta.shape == (1, 4, site.positions, site.units)
        expected = net.positions(run_to(net, leaves, x, site.index), 1)
        torch.testing.assert_close(z, expected, rtol=0, atol=0)
        assert not z.requires_grad
        assert not zeta.requires_grad


@every_net
def test_a_step_changes_the_loss_by_its_inner_product_with_the_gradient(net: Net) -> None:
    """loss(z + eta v) - loss(z) = eta <v, zeta> + O(eta^2) for one v for all samples, the same at all positions: the
    change that `signal_bias` predicts for a trained shift, and the reason why positions are summed."""
    leaves, x, y = small(net)
    eta, generator = 1e-6, torch.Generator().manual_seed(5)
    for site, (_, zeta) in zip(net.sites(), site_gradients(net, leaves, x, y), strict=True):
        v = torch.randn(site.units, generator=generator, dtype=torch.float64)
        z = run_to(net, leaves, x, site.index)
        step = eta * (v.view(-1, 1, 1) if z.dim() == 4 else v)
        ahead, behind = (total_loss(net, leaves, z + sign * step, y, site.index) for sign in (1, -1))
        slope = float(zeta[0].sum((0, 1)) @ v)
        assert (ahead - behind) / (2 * eta) == pytest.approx(slope, rel=1e-5, abs=1e-7)


@every_net
def test_the_order_of_samples_is_the_order_of_gradients(net: Net) -> None:
    """Pools of different sites, and of different nets on the same samples, are compared row by row."""
    leaves, x, y = small(net, batch=6)
    order = torch.tensor([4, 0, 5, 2, 1, 3])
    pairs = zip(site_gradients(net, leaves, x, y), site_gradients(net, leaves, x[:, order], y[:, order]), strict=True)
    for (_, before), (_, after) in pairs:
        torch.testing.assert_close(after, before[:, order], rtol=1e-10, atol=1e-14)


@every_net
def test_gradients_scale_with_the_loss(net: Net, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 4 times the loss zeta is 4 times as large, to the last bit, and z is the same: scale-free signals rest on
    this."""
    leaves, x, y = small(net)
    before, plain = site_gradients(net, leaves, x, y), gradients.cross_entropy
    monkeypatch.setattr(gradients, "cross_entropy", lambda *arguments: 4 * plain(*arguments))
    for (z, zeta), (same, larger) in zip(before, site_gradients(net, leaves, x, y), strict=True):
        torch.testing.assert_close(same, z, rtol=0, atol=0)
        torch.testing.assert_close(larger, 4 * zeta, rtol=0, atol=0)


@with_running_statistics
def test_batchnorm_in_train_mode_is_refused_with_the_reason(net: Net) -> None:
    """backpack #160 and #239, functorch #986: with batch statistics each loss depends on all samples, and what is
    returned for a sample is not its gradient. That it would be so here too: its logits change with its neighbours."""
    leaves, x, y = small(net)
    with pytest.raises(InputError, match="BatchNorm mixes the samples of a batch") as refusal:
        site_gradients(net, leaves, x, y, train=True)
    assert "\n" not in str(refusal.value)
    assert "accepted: evaluation mode" in str(refusal.value)
    neighbours = torch.cat([x[:, :1], x[:, 1:].flip(1) + 1], dim=1)
    first, other = (run_from(net, leaves, run_to(net, leaves, one, 0, True), 0, True)[0, 0] for one in (x, neighbours))
    assert not torch.allclose(first, other, rtol=1e-3)


@pytest.mark.parametrize("net", [one for one in NETS if not one.values[0].buffer_shapes()])
def test_other_norms_are_the_same_in_both_modes(net: Net) -> None:
    """Only what mixes samples is refused."""
    leaves, x, y = small(net)
    for (_, one), (_, other) in zip(
        site_gradients(net, leaves, x, y), site_gradients(net, leaves, x, y, train=True), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_weights_and_running_statistics_stay_as_they_are() -> None:
    """A measurement that changes the net measures another net at the next split."""
    for problem in PROBLEMS:
        net = problem.net()
        leaves, x, y = small(net)
        before = {name: leaf.clone() for name, leaf in leaves.items()}
        with torch.no_grad():  # the caller's mode does not matter
            site_gradients(net, leaves, x, y)
        for name, leaf in leaves.items():
            torch.testing.assert_close(leaf, before[name], rtol=0, atol=0)
            assert leaf.grad is None


@pytest.mark.parametrize("bias", [False, True])
def test_gradients_are_orthogonal_to_the_stream_without_bias(bias: bool) -> None:
    """In a bias-free homogeneous net scaling z changes nothing behind the next norm, so <zeta, z> = 0 but for the
    norm's eps at every site but the last, which only the head follows. A bias breaks it: there z's length matters."""
    net = ResMLP(4, 16, (5,), CLASSES, bias=bias)
    leaves, x, y = small(net, batch=32)
    for site, (z, zeta) in enumerate(site_gradients(net, leaves, x, y)):
        cosine = functional.cosine_similarity(z.flatten(0, 2), zeta.flatten(0, 2)).abs()
        if bias or site == net.depth:
            assert cosine.median() > 1e-3
        else:
            assert cosine.max() < 1e-5


def test_single_precision_is_enough_for_gradients() -> None:
    """Nets are trained and measured in float32: rounding must stay far below what 10^4 samples can resolve."""
    for problem in PROBLEMS:
        net = problem.net()
        leaves, x, y = small(net, batch=16)
        narrow = {name: leaf.float() for name, leaf in leaves.items()}
        for (_, zeta), (_, rounded) in zip(
            site_gradients(net, leaves, x, y), site_gradients(net, narrow, x.float(), y), strict=True
        ):
            error = (zeta - rounded).norm() / zeta.norm()
            assert error < 1e-4, (problem.name, float(error))
