"""Widening: the same function before and after, and new units that can learn. A widened net that starts elsewhere would
credit width with a change that is none of its own."""

import math
from collections.abc import Mapping

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from jumpboard.errors import InputError
from jumpboard.expansion.insertion import insert
from jumpboard.expansion.widening import widen, widening
from jumpboard.nets.base import Net, forward
from jumpboard.nets.resmlp import ResMLP
from jumpboard.nets.resnet import ResNet
from jumpboard.training.parameters import Layout
from problems import PROBLEMS, inputs, labels, trained_leaves

BY_NAME = {problem.name: problem.net() for problem in PROBLEMS}
WIDENED = ("resmlp_rms", "resmlp_one_block", "resmlp_picture", "resnet_rms_post")
NETS = [pytest.param(BY_NAME[name], id=name) for name in WIDENED]
NETS += [pytest.param(ResNet(6, 3, (2, 9, 6), 3, norm="rms", post_norm=True), id="resnet_rms_post_deeper")]
every_net = pytest.mark.parametrize("net", NETS)
MLP = ResMLP(3, 6, (5,), 3)


def draws(members: int = 2) -> list[np.random.Generator]:
    return [np.random.default_rng([5, member]) for member in range(members)]


def widened(net: Net, leaves: Mapping[str, Tensor], width: int) -> tuple[Net, dict[str, Tensor]]:
    return widen(net, leaves, width, draws(len(leaves["head.weight"])))


def flat_of(net: Net, leaves: Mapping[str, Tensor]) -> Tensor:
    return torch.cat([leaves[name].flatten(1) for name in net.parameter_shapes()], dim=1)


def gradient(net: Net, flat: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Of the mean loss of each member, [G, P]."""
    trained = flat.detach().requires_grad_()
    logits = forward(net, Layout.of(net).leaves(trained), x, train=True)
    loss = functional.cross_entropy(logits.flatten(0, 1), y.flatten(), reduction="sum") / y.shape[1]
    return torch.autograd.grad(loss, trained)[0]


def difference(found: Tensor, wanted: Tensor) -> float:
    return float((found - wanted).norm() / wanted.norm())


@every_net
@pytest.mark.parametrize("train", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize("factor", [1.5, 2, 8])
def test_outputs_stay_the_same(net: Net, train: bool, factor: float) -> None:
    """To rounding, at every width, also where one unit is added."""
    leaves, x = trained_leaves(net, 2, dtype=torch.float32), inputs(net, 2, 32, dtype=torch.float32)
    wanted = forward(net, leaves, x, train)
    for width in (net.width + 1, int(net.width * factor)):
        wider, more = widened(net, leaves, width)
        assert wider.width == width
        assert more.keys() == wider.parameter_shapes().keys()
        assert difference(forward(wider, more, x, train), wanted) < 5e-7


@every_net
def test_it_is_exact_but_for_rounding(net: Net) -> None:
    """In float64 nothing is left of the difference but eps, which a sample's own scale hides."""
    leaves, x = trained_leaves(net, 2), inputs(net, 2, 32)
    wider, more = widened(net, leaves, 4 * net.width)
    assert difference(forward(wider, more, x), forward(net, leaves, x)) < 1e-11


@every_net
def test_the_head_must_be_divided(net: Net) -> None:
    """RMSNorm averages over more coordinates: with the head as it was all logits are sqrt(N'/N) times as large, and
    every loss is another one."""
    leaves, x = trained_leaves(net, 2), inputs(net, 2, 32)
    wider, more = widened(net, leaves, 2 * net.width)
    naive = {**more, "head.weight": math.sqrt(2) * more["head.weight"]}
    assert difference(forward(wider, naive, x), forward(net, leaves, x)) > 0.05


def test_the_stem_of_a_map_must_be_multiplied() -> None:
    """On a nearly flat picture a position's mean square comes near eps, which would weigh N'/N times as much there."""
    net = ResNet(3, 4, (2, 9, 6), 3, norm="rms", post_norm=True)
    leaves, x = trained_leaves(net, 2), inputs(net, 2, 32)
    x[..., 3:] *= 0.01
    wider, more = widened(net, leaves, 4 * net.width)
    wanted = forward(net, leaves, x)
    assert difference(forward(wider, more, x), wanted) < 1e-11
    assert difference(forward(wider, {**more, "stem.weight": more["stem.weight"] / 2}, x), wanted) > 1e-4


@every_net
def test_everything_new_can_learn(net: Net) -> None:
    """New units that get no gradient would only cost. Zero weights learn at once, drawn ones after a step of these."""
    wide = widening(net, net.width + 2)
    leaves, x, y = trained_leaves(net, 2), inputs(net, 2, 64), labels(net, 2, 64)
    flat = flat_of(wide.net, widened(net, leaves, net.width + 2)[1])
    new = torch.ones(flat.shape[1], dtype=torch.bool)
    new[wide.index] = False
    assert not flat[:, new & ~wide.drawn].any()
    assert flat[:, new & wide.drawn].all()
    first = gradient(wide.net, flat, x, y)
    assert not first[:, new & wide.drawn].any()
    second = gradient(wide.net, flat - 0.1 * first, x, y)
    layout = Layout.of(wide.net)
    for step, kind in ((first, ~wide.drawn), (second, wide.drawn)):
        for name, leaf in layout.leaves(step).items():
            chosen = layout.leaves((new & kind)[None])[name][0]
            assert not chosen.any() or (leaf[:, chosen] != 0).double().mean() > 0.8, name


def test_new_weights_have_the_wider_nets_law() -> None:
    """Drawn at another scale, new units would be heard too loudly or not at all."""
    net = ResMLP(2, 20, (10,), 10)
    wider, leaves = widened(net, trained_leaves(net, 1), 200)
    fresh = wider.initial_leaves(draws(1)[0])
    for name in ("blocks.0.w1", "blocks.1.w1", "head.weight"):
        assert torch.equal(leaves[name][0, :, 20:], torch.from_numpy(fresh[name][:, 20:]).double())
    assert float(leaves["blocks.0.w1"][0, :, 20:].var()) == pytest.approx(2 / 200, rel=0.05)
    other = widen(net, trained_leaves(net, 1), 200, [np.random.default_rng(9)])[1]
    assert not torch.equal(other["blocks.0.w1"], leaves["blocks.0.w1"])


def test_members_are_widened_alone() -> None:
    """One seed's result would depend on its fellows."""
    leaves = trained_leaves(MLP, 3)
    _, together = widened(MLP, leaves, 9)
    for member in range(3):
        _, alone = widen(MLP, {name: leaf[member : member + 1] for name, leaf in leaves.items()}, 9, [draws(3)[member]])
        for name, leaf in alone.items():
            assert torch.equal(leaf[0], together[name][member])
    assert leaves["head.weight"].shape == (3, 3, 6)


@pytest.mark.parametrize(
    ("net", "reason"),
    [
        (BY_NAME["resmlp_layer"], "LayerNorm takes the mean"),
        (BY_NAME["resmlp_gain"], "gain per coordinate"),
        (BY_NAME["resmlp_bias"], "bias does not scale"),
        (BY_NAME["resnet_batch"], "BatchNorm"),
        (BY_NAME["resnet_batch_post"], "BatchNorm"),
        (BY_NAME["resnet_group_post"], "GroupNorm"),
        (BY_NAME["resnet_rms"], "inside a block"),
        (insert(MLP, trained_leaves(MLP, 1), [1], [0])[0], "Inserted has no rule"),
    ],
)
def test_other_nets_are_refused_with_the_reason(net: Net, reason: str) -> None:
    """A net that is widened all the same would start from another function."""
    with pytest.raises(InputError, match=reason) as refusal:
        widening(net, 2 * net.width)
    assert "\n" not in str(refusal.value)
    assert "accepted: resmlp with norm rms" in str(refusal.value)


@pytest.mark.parametrize("width", [6, 3, 0])
def test_a_width_that_is_not_larger_is_refused(width: int) -> None:
    with pytest.raises(InputError, match=f"width {width} does not widen a net of width 6; accepted: more than 6"):
        widening(MLP, width)
