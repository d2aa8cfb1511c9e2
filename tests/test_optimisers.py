"""The flat optimisers against torch's own, and the schedules against their definitions."""

import math
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from jumpboard.errors import InputError
from jumpboard.nets.registry import build_net
from jumpboard.training.optimisers import FlatOptimiser
from jumpboard.training.parameters import Layout
from jumpboard.training.recipe import Optimiser
from jumpboard.training.schedules import SCHEDULES, factor

STEPS, MEMBERS = 20, 3
LAYOUT = Layout({"weight": (3, 4), "bias": (5,), "kernel": (2, 1, 3, 3), "statistic": (6,)}, trained=35)
SETTINGS = [
    Optimiser("adamw", 0.01, weight_decay=0.3),
    Optimiser("adamw", 0.3, weight_decay=0.0, betas=(0.7, 0.9), eps=1e-3),
    Optimiser("sgd", 0.1),
    Optimiser("sgd", 0.1, weight_decay=0.2),
    Optimiser("sgd", 0.1, weight_decay=0.2, momentum=0.9),
    Optimiser("sgd", 0.1, weight_decay=0.2, momentum=0.9, nesterov=True),
]


def torch_optimiser(settings: Optimiser, leaves: dict[str, Tensor]) -> torch.optim.Optimizer:
    """Weight decay on the leaves named `weight` and `kernel` only."""
    groups: list[dict[str, Any]] = [
        {"params": [leaves["weight"], leaves["kernel"]], "weight_decay": settings.weight_decay},
        {"params": [leaves["bias"]], "weight_decay": 0.0},
    ]
    if settings.name == "adamw":
        return torch.optim.AdamW(groups, lr=settings.lr, betas=settings.betas, eps=settings.eps)
    return torch.optim.SGD(groups, lr=settings.lr, momentum=settings.momentum, nesterov=settings.nesterov)


def rates_at(settings: Optimiser, step: int) -> Tensor:
    """Another rate for each member and step; member 1 stands still throughout, member 2 from step 12 on."""
    return settings.lr * torch.tensor([1 / (1 + step), 0.0, 0.5 * (step < 12)], dtype=torch.float64).unsqueeze(1)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_updates_are_those_of_torch(settings: Optimiser) -> None:
    """A 'ResNet trained with AdamW' would be trained with something else, members would leak into each other's rates,
    gains and shifts would be decayed towards 0, or a member that has stopped would move on."""
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(MEMBERS, LAYOUT.trained, generator=generator, dtype=torch.float64)
    gradients = torch.randn(STEPS, MEMBERS, LAYOUT.trained, generator=generator, dtype=torch.float64)
    flat = torch.cat([start, torch.full((MEMBERS, 6), 7.0, dtype=torch.float64)], dim=1)

    optimiser = FlatOptimiser.of(settings, LAYOUT.decayed().double())
    parameters = flat[:, : LAYOUT.trained]
    state = optimiser.initial_state(parameters)
    for step in range(STEPS):
        optimiser.update(parameters, gradients[step].clone(), state, rates_at(settings, step), step)

    for member in range(MEMBERS):
        rows = torch.cat([start[member], torch.zeros(6, dtype=torch.float64)]).unsqueeze(0)
        leaves = {name: leaf[0].clone().requires_grad_() for name, leaf in LAYOUT.leaves(rows).items()}
        plain = torch_optimiser(settings, leaves)
        for step in range(STEPS):
            for group in plain.param_groups:
                group["lr"] = float(rates_at(settings, step)[member])
            for name, leaf in LAYOUT.leaves(torch.cat([gradients[step], torch.zeros(MEMBERS, 6)], dim=1)).items():
                leaves[name].grad = leaf[member].clone()
            plain.step()
        for name, leaf in LAYOUT.leaves(flat).items():
            if name != "statistic":
                torch.testing.assert_close(leaf[member], leaves[name].detach(), rtol=0, atol=1e-12)
    assert torch.equal(flat[1, : LAYOUT.trained], start[1])
    assert (flat[:, LAYOUT.trained :] == 7.0).all()


def test_weight_decay_reaches_matrices_and_kernels_only() -> None:
    """Norm gains, shifts and biases decayed to 0 is a known way to lose accuracy without a sign of it."""
    net = build_net({"family": "resnet"}, 3, 2, (1, 6, 6), 3)
    layout = Layout.of(net)
    decayed = layout.decayed()
    assert decayed.shape == (net.parameter_count(),)
    padded = torch.cat([decayed, torch.zeros(layout.size - layout.trained)]).unsqueeze(0)
    reached = {name for name, leaf in layout.leaves(padded).items() if leaf.all()}
    spared = {name for name, leaf in layout.leaves(padded).items() if not leaf.any()}
    matrices = {name for name in layout.shapes if "conv" in name or name in ("stem.weight", "head.weight")}
    assert (reached, spared) == (matrices, set(layout.shapes) - matrices)


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedule_ends(name: str) -> None:
    """A run whose rate starts or ends elsewhere reaches another loss: every curve and fit would be off."""
    assert factor(name, 0, 100, 0) == 1.0
    assert factor(name, 10, 100, 10) == 1.0
    last = 1.0 if name == "constant" else 0.0
    assert factor(name, 100, 100, 0) == pytest.approx(last, abs=1e-15)
    assert factor(name, 100, 100, 10) == pytest.approx(last, abs=1e-15)


def test_schedule_shapes() -> None:
    """Cosine and linear cross at one half, warm-up climbs in equal steps and its first step already moves."""
    assert [factor("cosine", step, 8, 0) for step in (2, 4, 6)] == pytest.approx(
        [0.5 + math.sqrt(0.125), 0.5, 0.5 - math.sqrt(0.125)]
    )
    assert [factor("linear", step, 8, 0) for step in (2, 4, 6)] == [0.75, 0.5, 0.25]
    assert [factor("cosine", step, 100, 4) for step in range(5)] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert [factor("constant", step, 3, 6) for step in range(3)] == [1 / 6, 2 / 6, 3 / 6]


@given(name=st.sampled_from(sorted(SCHEDULES)), steps=st.integers(1, 300), warmup=st.integers(0, 300))
def test_schedule_is_a_factor(name: str, steps: int, warmup: int) -> None:
    """Whatever the lengths, the factor stays in (0, 1], rises during warm-up and never rises after it."""
    factors = [factor(name, step, steps, warmup) for step in range(steps)]
    assert all(0 < value <= 1 for value in factors)
    pairs = list(pairwise(factors))
    assert all(before < after for before, after in pairs[: max(0, warmup - 1)])
    assert all(before >= after for before, after in pairs[max(0, warmup - 1) + 1 :])


def test_unknown_schedule() -> None:
    """A typing error must not end in a traceback, nor in a constant rate."""
    with pytest.raises(InputError, match="schedule 'cosin' is not known; accepted: constant, linear, cosine"):
        factor("cosin", 0, 10, 0)
