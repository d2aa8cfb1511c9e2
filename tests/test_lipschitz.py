"""Every certificate rests on these constants: one that a net of the class exceeds makes all of them false, and one that
no net comes near makes them needlessly weak. Adversaries search from below; where a constant is attained, a net that
does so is written down."""

import math
from collections.abc import Mapping

import numpy as np
import pytest
import torch

from jumpboard.expansion.insertion import Inserted, insert
from jumpboard.nets.base import forward
from jumpboard.nets.norms import layer_norm, rms_norm
from jumpboard.nets.resmlp import ResMLP
from jumpboard.theory.lipschitz import (
    Shape,
    block_constants,
    inserted_output,
    inserted_own,
    lambdas,
    norm_constant,
)
from jumpboard.training.caps import clipped
from jumpboard.training.parameters import Layout, initial_members
from oracles.certificates import plain_lambdas

WIDTH, INPUTS, CLASSES, EPS = 2, 3, 3, 0.01
Leaves = dict[str, torch.Tensor]


def expanded(depth: int, site: int, members: int) -> tuple[Inserted, Leaves]:
    """Members with a bare block at `site`, float64."""
    net = ResMLP(depth, WIDTH, (INPUTS,), CLASSES, eps=EPS)
    seeds = list(range(members))
    one, leaves = insert(net, Layout.of(net).leaves(initial_members(net, seeds)), [site], seeds)
    assert one.insert_form == "bare"
    return one, {name: leaf.double() for name, leaf in leaves.items()}


def with_norm(matrices: torch.Tensor, spectral: float) -> torch.Tensor:
    return matrices * spectral / torch.linalg.matrix_norm(matrices, ord=2, keepdim=True)


def drawn(one: Inserted, leaves: Leaves, spectral: float, generator: torch.Generator) -> Leaves:
    """Weights of the class, half of them with all singular values at its cap, half with small products."""
    found = {}
    for name, leaf in leaves.items():
        if name.endswith(".site"):
            found[name] = leaf
            continue
        draw = torch.randn(leaf.shape, generator=generator, dtype=torch.float64)
        scale = 10 ** torch.empty(len(leaf), 1, 1, dtype=torch.float64).uniform_(-3, 0.5, generator=generator)
        found[name] = clipped(with_norm(draw, spectral) * scale.clamp(max=1) * 3, spectral)
    return found


def ratios(one: Inserted, leaves: Leaves, other: Leaves, layer: tuple[str, ...], x: torch.Tensor) -> torch.Tensor:
    """|change of logits| / |change of the layer| [G], where `other` differs in that layer alone."""
    moved = (forward(one, other, x) - forward(one, leaves, x)).norm(dim=-1).amax(1)
    squares = sum((other[name] - leaves[name]).square().sum((1, 2)) for name in layer)
    return moved / torch.as_tensor(squares).sqrt()


def within(radius: float, members: int, generator: torch.Generator) -> torch.Tensor:
    """Inputs [G, 8, INPUTS] of norm at most `radius`, some on its edge."""
    x = torch.randn(members, 8, INPUTS, generator=generator, dtype=torch.float64)
    return radius * x / x.norm(dim=-1, keepdim=True).clamp(min=1)


@pytest.mark.parametrize(("depth", "site"), [(1, 0), (1, 1), (2, 1), (2, 2)])
@pytest.mark.parametrize("spectral", [0.7, 2.0])
def test_no_net_of_the_class_exceeds_lambda(depth: int, site: int, spectral: float) -> None:
    generator, radius, members = torch.Generator().manual_seed(depth + 10 * site), 3.0, 400
    one, leaves = expanded(depth, site, members)
    found = lambdas(Shape(depth, WIDTH, site, "bare", EPS, radius), spectral)
    layers = one.layers() or {}
    assert list(found) == list(layers)
    for layer, names in layers.items():
        for size in (1e-4, 1.0):
            base = drawn(one, leaves, spectral, generator)
            steps = {
                name: size * torch.randn(base[name].shape, generator=generator, dtype=torch.float64) for name in names
            }
            other = base | {name: clipped(base[name] + step, spectral) for name, step in steps.items()}
            seen = ratios(one, base, other, names, within(radius, members, generator))
            assert float(seen[seen.isfinite()].max()) <= found[layer] * (1 + 1e-6)


@pytest.mark.parametrize("depth", [1, 2])
def test_an_ascent_in_weights_and_inputs_does_not_exceed_lambda(depth: int) -> None:
    """Gradients find what random draws miss: the slope of logits along one direction of a layer."""
    spectral, radius, generator = 1.5, 2.0, torch.Generator().manual_seed(1)
    one, leaves = expanded(depth, depth, 16)
    found = lambdas(Shape(depth, WIDTH, depth, "bare", EPS, radius), spectral)
    for layer, names in (one.layers() or {}).items():
        weights = {
            name: leaf.clone().requires_grad_() for name, leaf in drawn(one, leaves, spectral, generator).items()
        }
        x = within(radius, 16, generator)[:, :1].clone().requires_grad_()
        best = 0.0
        for _ in range(40):
            direction = torch.randn(16, CLASSES, generator=generator, dtype=torch.float64)
            logit = (forward(one, weights, x)[:, 0] * direction / direction.norm(dim=1, keepdim=True)).sum()
            slopes = torch.autograd.grad(logit, [weights[name] for name in names], create_graph=True)
            size = torch.as_tensor(sum(slope.square().sum((1, 2)) for slope in slopes)).sqrt()
            best = max(best, float(size.detach().max()))
            free = [leaf for name, leaf in weights.items() if not name.endswith(".site")]
            moves = torch.autograd.grad(size.sum(), [*free, x], allow_unused=True)
            with torch.no_grad():
                for leaf, move in zip([*free, x], moves, strict=True):
                    if move is not None:
                        leaf += 0.1 * move / move.flatten(1).norm(dim=1).view(-1, 1, 1).clamp(min=1e-9)
                for leaf in free:
                    leaf.copy_(clipped(leaf, spectral))
                x *= (radius / x.norm(dim=-1, keepdim=True)).clamp(max=1)
        assert 0 < best <= found[layer] * (1 + 1e-6)


def written(one: Inserted, **matrices: np.ndarray) -> Leaves:
    """One member with these matrices, 0 elsewhere; `_` stands for `.` in their names."""
    leaves = {name: torch.zeros(1, *shape, dtype=torch.float64) for name, shape in Layout.of(one).shapes.items()}
    leaves[f"{one.name}.site"] += one.place.index
    for name, matrix in matrices.items():
        leaves[name.replace("__", ".")][0] = torch.from_numpy(matrix)
    return leaves


def attained(one: Inserted, leaves: Leaves, steps: Mapping[str, np.ndarray], x: np.ndarray) -> float:
    steps_of = {name.replace("__", "."): torch.from_numpy(step)[None] for name, step in steps.items()}
    other = leaves | {name: leaves[name] + 1e-7 * step for name, step in steps_of.items()}
    return float(ratios(one, leaves, other, tuple(steps_of), torch.from_numpy(x)[None, None]))


def unit(rows: int, columns: int) -> np.ndarray:
    """The matrix with one 1, in its corner."""
    return np.eye(rows, columns) * (np.arange(rows) == 0)[:, None]


def test_lambda_of_the_input_layer_is_attained() -> None:
    """All norms at 0, where their slope is the largest, and all blocks along one positive coordinate."""
    cap, radius = 2.0, 3.0
    one, _ = expanded(1, 0, 1)
    a = np.zeros((WIDTH, 4 * WIDTH + 1))
    a[0, 0] = cap
    leaves = written(
        one,
        blocks__0__w1=cap * np.eye(WIDTH),
        blocks__0__w2=cap * np.eye(WIDTH),
        insert__0__w1=cap * np.eye(4 * WIDTH, WIDTH),
        insert__0__a=a,
        head__weight=cap * np.eye(CLASSES, WIDTH),
    )
    found = attained(one, leaves, {"stem__weight": unit(WIDTH, INPUTS)}, np.array([radius, 0.0, 0.0]))
    assert found == pytest.approx(lambdas(Shape(1, WIDTH, 0, "bare", EPS, radius), cap)["input"], rel=1e-3)


def test_lambdas_of_a_block_and_of_the_head_are_attained() -> None:
    """A block that takes its input to 0; a stream of the largest norm."""
    cap, radius = 1.0, math.sqrt(WIDTH)
    one, _ = expanded(1, 1, 1)
    found = lambdas(Shape(1, WIDTH, 1, "bare", EPS, radius), cap)
    a = np.zeros((WIDTH, 4 * WIDTH + 1))
    a[0, 0] = cap
    stem, x = cap * np.eye(WIDTH, INPUTS), np.array([radius, 0.0, 0.0])
    moving = {"blocks__0__w1": np.eye(WIDTH), "insert__0__w1": np.eye(4 * WIDTH, WIDTH), "insert__0__a": a}
    leaves = written(
        one, stem__weight=stem, blocks__0__w2=-np.eye(WIDTH), head__weight=np.eye(CLASSES, WIDTH), **moving
    )
    steps = {"blocks__0__w1": -unit(WIDTH, WIDTH), "blocks__0__w2": unit(WIDTH, WIDTH)}
    assert attained(one, leaves, steps, x) == pytest.approx(found["block_0"], rel=0.05)
    phi = np.append(math.sqrt(WIDTH) * unit(4 * WIDTH, 1)[:, 0], 1.0)
    a = np.outer(np.eye(WIDTH)[0], phi / np.linalg.norm(phi))
    still = written(one, stem__weight=stem, insert__0__w1=np.eye(4 * WIDTH, WIDTH), insert__0__a=a)
    assert attained(one, still, {"head__weight": unit(CLASSES, WIDTH)}, x) == pytest.approx(found["head"], rel=0.05)
    assert found["head"] > (1 + cap**2) * math.sqrt(WIDTH)  # a bound without the constant unit's part is exceeded


def test_constants_of_a_block_are_attained() -> None:
    cap = 1.7
    s, p = block_constants(cap)
    w, x = cap * np.eye(3), np.array([1.0, 0.0, 0.0])
    assert np.linalg.norm(w @ np.maximum(w @ (2 * x), 0) - w @ np.maximum(w @ x, 0)) == pytest.approx(s)
    step = 1e-7 * unit(3, 3)
    moved = (w + step) @ np.maximum((w + step) @ x, 0) - w @ np.maximum(w @ x, 0)
    assert np.linalg.norm(moved) / (math.sqrt(2) * 1e-7) == pytest.approx(p, rel=1e-6)


@pytest.mark.parametrize("radius", [0.5, 2.0])
def test_constants_of_the_inserted_block_are_attained_and_not_exceeded(radius: float) -> None:
    cap, generator = 1.3, np.random.default_rng(4)
    z, w1 = radius * np.eye(2)[0], cap * np.eye(8, 2)
    phi = np.append(np.maximum(w1 @ z, 0), 1.0)
    a = cap * np.outer(np.eye(2)[0], phi) / np.linalg.norm(phi)
    assert np.linalg.norm(z + a @ phi) == pytest.approx(inserted_output(cap, radius))
    a = cap * np.outer(np.eye(2)[0], np.eye(9)[0])
    da, dw = np.outer(np.eye(2)[0], phi), cap * radius * unit(8, 2)
    size = 1e-7 / math.sqrt((da**2).sum() + (dw**2).sum())
    other = np.append(np.maximum((w1 + size * dw) @ z, 0), 1.0)
    own = np.linalg.norm((a + size * da) @ other - a @ phi) / 1e-7
    assert own == pytest.approx(inserted_own(cap, radius), rel=1e-5)
    for _ in range(300):
        w, b = (cap * m / np.linalg.norm(m, 2) for m in (generator.normal(size=(8, 2)), generator.normal(size=(2, 9))))
        y = generator.normal(size=2)
        y *= radius / np.linalg.norm(y)
        assert np.linalg.norm(y + b @ np.append(np.maximum(w @ y, 0), 1.0)) <= inserted_output(cap, radius)


@pytest.mark.parametrize("norm", [rms_norm, layer_norm])
def test_the_constant_of_a_norm_is_attained_at_0_and_nowhere_exceeded(norm: object) -> None:
    assert callable(norm)
    generator = torch.Generator().manual_seed(3)
    z = torch.randn(4000, 3, generator=generator, dtype=torch.float64)
    z *= 10 ** torch.empty(4000, 1, dtype=torch.float64).uniform_(-4, 1, generator=generator)
    step = 1e-3 * z.norm(dim=1, keepdim=True) * torch.randn(4000, 3, generator=generator, dtype=torch.float64)
    slopes = (norm(z + step, eps=EPS) - norm(z, eps=EPS)).norm(dim=1) / step.norm(dim=1)
    assert float(slopes.max()) <= norm_constant(EPS) * (1 + 1e-9)
    assert float(slopes.max()) > 0.99 * norm_constant(EPS)
    assert float(norm(1e6 * z, eps=EPS).norm(dim=1).max()) <= math.sqrt(3) * (1 + 1e-12)


@pytest.mark.parametrize(("depth", "site"), [(1, 0), (1, 1), (3, 0), (3, 2), (3, 3)])
@pytest.mark.parametrize(("radius", "cap"), [(0.5, 0.8), (4.0, 6.5)])
def test_lambdas_equal_a_plain_transcription(depth: int, site: int, radius: float, cap: float) -> None:
    found = lambdas(Shape(depth, 4, site, "bare", EPS, radius), cap)
    assert list(found.values()) == pytest.approx(plain_lambdas(depth, 4, site, EPS, radius, cap), rel=1e-12)


def test_a_normed_block_pays_a_norm_and_keeps_the_stream_within_it() -> None:
    """Where the stream's norm is idempotent the new block has one of its own."""
    bare, normed = (lambdas(Shape(2, 4, 1, form, EPS, 1.0), 2.0) for form in ("bare", "normed"))
    assert normed["block_0"] == pytest.approx(bare["block_0"] * norm_constant(EPS))
    assert normed["block_1"] < bare["block_1"]
    assert normed["head"] == 2.0
