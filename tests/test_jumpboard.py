"""The jumpboard: its direction is that of the rows written out, its slope that of the loss, its step the training set's
choice, and its gain is judged by statistics that find nothing where there is nothing."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor
from torch.nn import functional

from conftest import planted_rows
from jumpboard.expansion import gains, jumpboard
from jumpboard.expansion.gains import Gain, paired_gain, sample_losses
from jumpboard.expansion.insertion import Inserted, insert, site_groups, with_step
from jumpboard.expansion.jumpboard import Direction, directions, geometric_steps, random_directions
from jumpboard.measure.moments import moments
from jumpboard.nets.base import Leaves, Net, forward
from jumpboard.nets.resmlp import ResMLP
from oracles.gradients import feature_rows, loop_gradients
from problems import PROBLEMS, initial_leaves, inputs, labels, trained_leaves

NETS = [pytest.param(problem.net(), id=problem.name) for problem in PROBLEMS]
every_net = pytest.mark.parametrize("net", NETS)
SEEDS = (7, 2)


def side_by_side(parts: Sequence[Direction]) -> Direction:
    """Directions of one shape, behind one another: in the order of sites that `insert` was given."""
    return Direction(
        *(torch.cat([getattr(part, name) for part in parts]) for name in ("unit", "slope", "slope_sq", "scale"))
    )


def first_layers(net: Inserted, leaves: Leaves, members: int) -> dict[int, Tensor]:
    """W1 [G, 4N, N] by site, from the leaves that `insert` made of G = `members`."""
    sites = leaves[f"{net.name}.site"][::members].flatten().tolist()
    layers = torch.split(leaves[f"{net.name}.w1"], members)
    return {int(site): layer for site, layer in zip(sites, layers, strict=True)}


def all_layers(net: Net, leaves: Leaves) -> dict[int, Tensor]:
    """W1 of all sites, whatever their shapes."""
    layers: dict[int, Tensor] = {}
    for group in site_groups(net):
        layers |= first_layers(*insert(net, leaves, group, SEEDS), 2)
    return layers


def plus(net: Net, z: Tensor, zeta: Tensor) -> Tensor:
    """J_Norm(z)' zeta, position by position, from the Jacobian of the norm."""
    if not isinstance(net, ResMLP) or net.gain or net.eps > 1e-6:
        return zeta
    norm = {"rms": functional.rms_norm, "layer": functional.layer_norm}[net.norm]
    out = torch.empty_like(zeta)
    for i, p in np.ndindex(zeta.shape[:2]):
        jacobian = torch.autograd.functional.jacobian(lambda one: norm(one, (net.width,), eps=1e-6), z[i, p])
        out[i, p] = zeta[i, p] @ jacobian
    return out


@every_net
def test_directions_are_those_of_the_rows_written_out(net: Net, monkeypatch: pytest.MonkeyPatch) -> None:
    """All sites and members in one pass and in batches, against a loop over samples, positions and Jacobians. A member
    with the labels of another, or zeta in place of zeta_+, would jump in a direction that gains less."""
    leaves, x, y = trained_leaves(net, 2), inputs(net, 1, 7)[0], labels(net, 2, 7)
    layers = all_layers(net, leaves)
    assert sorted(layers) == list(range(net.depth + 1))
    monkeypatch.setattr(jumpboard, "batch_size", lambda _: 6)
    found = directions(net, leaves, layers, x, y)
    for member in range(2):
        alone = {name: leaf[member : member + 1] for name, leaf in leaves.items()}
        for site, (z, zeta) in enumerate(loop_gradients(net, alone, x, y[member])):
            rows = feature_rows(layers[site][member], z, plus(net, z, zeta))
            mean, direction = rows.mean(axis=0), found[site]
            assert float(direction.slope[member]) == pytest.approx(np.linalg.norm(mean), rel=1e-8)
            unit = direction.unit[member].flatten().numpy()
            assert unit == pytest.approx(mean / np.linalg.norm(mean), rel=1e-6, abs=1e-9)
            assert float(direction.slope_sq[member]) == pytest.approx(moments(rows).S, rel=1e-7, abs=1e-8 * mean @ mean)
            phi = feature_rows(layers[site][member], z, torch.ones_like(zeta[..., :1]))
            if z.shape[1] == 1:
                wanted = math.sqrt(float(z.square().sum()) / (phi**2).sum())
                assert float(direction.scale[member]) == pytest.approx(wanted, rel=1e-9)


@every_net
def test_the_loss_falls_with_the_slope(net: Net) -> None:
    """All sites and members as one batch of expanded nets: direction, order of members and sign, by finite
    differences."""
    leaves, x, y = trained_leaves(net, 2), inputs(net, 1, 12)[0], labels(net, 1, 12)[0]
    found = directions(net, leaves, all_layers(net, leaves), x, y)
    for group in site_groups(net):
        expanded, more = insert(net, leaves, group, SEEDS)
        joined = side_by_side([found[site] for site in group])
        ahead, behind = (
            sample_losses(expanded, with_step(expanded, more, joined.unit, torch.tensor(eta).double()), x, y).mean(
                axis=1
            )
            for eta in (1e-8, -1e-8)
        )
        assert (ahead - behind) / 2e-8 == pytest.approx(-joined.slope.numpy(), rel=1e-4, abs=1e-6)


def planted() -> tuple[Net, dict[str, Tensor], dict[str, tuple[Tensor, Tensor]]]:
    """Six untrained nets, and samples whose classes a net can see."""
    rows = {name: planted_rows(400, seed) for seed, name in enumerate(("train", "test"))}
    data = {name: (torch.from_numpy(one.x), torch.from_numpy(one.y)) for name, one in rows.items()}
    net = ResMLP(2, 8, tuple(data["train"][0].shape[1:]), int(data["train"][1].max()) + 1)
    return net, initial_leaves(net, 6, dtype=torch.float32), data


def judged(
    net: Net, leaves: Leaves, unit: Tensor | None, data: dict[str, tuple[Tensor, Tensor]], label_seed: int | None = None
) -> tuple[Gain, np.ndarray]:
    """The held-out gain of all members and sites, and the training losses of the grid. `unit` replaces the steepest
    direction; a `label_seed` shuffles the labels that it is made from."""
    (x, y), held_out = data["train"], data["test"]
    members = len(leaves["head.weight"])
    expanded, more = insert(net, leaves, range(net.depth + 1), range(members))
    order = (
        slice(None)
        if label_seed is None
        else torch.randperm(len(y), generator=torch.Generator().manual_seed(label_seed))
    )
    found = side_by_side(list(directions(net, leaves, first_layers(expanded, more, members), x, y[order]).values()))
    steps = geometric_steps(found.scale, 0.01, 1, 7)
    board = jumpboard.jumpboard(expanded, more, found.unit if unit is None else unit, steps, x, y)
    before = sample_losses(net, leaves, *held_out)
    after = sample_losses(expanded, board.leaves, *held_out)
    assert (board.eta[None] == steps).any(0).all()
    chosen = sample_losses(expanded, board.leaves, x, y).mean(axis=1)
    assert chosen == pytest.approx(board.losses.min(axis=0), rel=1e-6)
    return paired_gain(np.tile(before, (net.depth + 1, 1)), after), board.losses


def test_a_planted_signal_is_found_and_controls_gain_less() -> None:
    """Where every site has a way down, all jumpboards gain on held-out samples; the same search along a direction that
    knows nothing of the labels does not get there."""
    net, leaves, data = planted()
    gain, losses = judged(net, leaves, None, data)
    assert (gain.t > 5).all()
    assert losses.argmin(axis=0).max() < 7
    expanded, more = insert(net, leaves, range(3), range(6))
    found = side_by_side(list(directions(net, leaves, first_layers(expanded, more, 6), *data["train"]).values()))
    for orthogonal in (False, True):
        draws = random_directions(found, [np.random.default_rng([3, g]) for g in range(18)], orthogonal)
        control, _ = judged(net, leaves, draws, data)
        assert control.mean.mean() < 0.3 * gain.mean.mean()
    shuffled, _ = judged(net, leaves, None, data, label_seed=1)
    assert shuffled.mean.mean() < 0.3 * gain.mean.mean()


def own_labels(net: Net, leaves: Leaves, x: Tensor, seed: int) -> Tensor:
    """Labels [n] drawn from what one net says of x: for it every direction is a way up."""
    share = forward(net, leaves, x[None])[0].softmax(-1)
    return torch.multinomial(share, 1, generator=torch.Generator().manual_seed(seed))[:, 0]


def test_nothing_is_found_where_nothing_is() -> None:
    """A net that already is the truth: E[zeta phi'] = 0, and what is found on training samples is noise. Neither the
    jumpboard nor a random direction may gain on held-out samples, though the first gains where it was fitted; the
    unbiased slope has mean 0, the plug-in has not."""
    net, found, trained = ResMLP(2, 6, (5,), 4), [], []
    jumps: dict[str, list[float]] = {"steepest": [], "random": []}
    for seed in range(30):
        leaves, generator = trained_leaves(net, 1, seed), torch.Generator().manual_seed(seed)
        x = torch.randn(400, 5, generator=generator, dtype=torch.float64)
        y = own_labels(net, leaves, x, seed)
        data = {"train": (x[:200], y[:200]), "test": (x[200:], y[200:])}
        expanded, more = insert(net, leaves, [1], [seed])
        direction = directions(net, leaves, first_layers(expanded, more, 1), *data["train"])[1]
        steps = geometric_steps(direction.scale, 0.01, 1, 5)
        units = {
            "steepest": direction.unit,
            "random": random_directions(direction, [np.random.default_rng([1, seed])], False),
        }
        for name, unit in units.items():
            board = jumpboard.jumpboard(expanded, more, unit, steps, *data["train"])
            before, after = (sample_losses(*one, *data["test"]) for one in ((net, leaves), (expanded, board.leaves)))
            jumps[name].append(float(paired_gain(before, after).t[0]))
            if name == "steepest":
                trained.append(sample_losses(net, leaves, *data["train"]).mean() - board.losses.min())
        found.append((float(direction.slope_sq), float(direction.slope) ** 2))
    for t in map(np.array, jumps.values()):
        assert (t > 2.33).sum() <= 2
        assert t.mean() < 0
    assert min(trained) > 0
    unbiased, plug_in = np.array(found).T
    assert abs(unbiased.mean()) < 3 * unbiased.std() / math.sqrt(30)
    assert plug_in.mean() > 5 * plug_in.std() / math.sqrt(30)


def test_random_directions() -> None:
    """A control with a part along the signal would gain by it; one of another length would search other steps."""
    raw = torch.from_numpy(np.random.default_rng(0).standard_normal((3, 4, 17)))
    ones = torch.ones(3, dtype=torch.float64)
    direction = Direction(raw / raw.flatten(1).norm(dim=1).view(-1, 1, 1), ones, ones, ones)
    for orthogonal in (False, True):
        draws = random_directions(direction, [np.random.default_rng([1, g]) for g in range(3)], orthogonal)
        along = (draws * direction.unit).sum((1, 2)).abs()
        torch.testing.assert_close(draws.flatten(1).norm(dim=1), ones)
        assert (along < 1e-12).all() if orthogonal else (along > 1e-6).all()


def test_steps_are_geometric() -> None:
    """In units of each member's scale, the ends included."""
    steps = geometric_steps(torch.tensor([1.0, 3.0], dtype=torch.float64), 1e-3, 10, 5)
    assert steps.T.flatten().tolist() == pytest.approx([1e-3, 1e-2, 0.1, 1, 10, 3e-3, 3e-2, 0.3, 3, 30])


@pytest.mark.parametrize("bound", [math.inf, 1.0])
def test_losses_are_those_of_each_sample(bound: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paired differences of 1e-4 nats are lost where losses are rounded, out of order, or not clipped at the bound that
    the limit's range rests on."""
    monkeypatch.setattr(gains, "BATCH", 3)
    net = ResMLP(2, 6, (5,), 3)
    leaves, x, y = trained_leaves(net, 2), inputs(net, 1, 8)[0], labels(net, 1, 8)[0]
    leaves["head.weight"] = 3 * leaves["head.weight"]
    found = sample_losses(net, leaves, x, y, bound)
    for member, logits in enumerate(forward(net, leaves, x.expand(2, -1, -1))):
        wanted = functional.cross_entropy(logits, y, reduction="none").clamp(max=bound)
        assert found[member] == pytest.approx(wanted.numpy(), rel=1e-12)
    assert found.dtype == np.float64
    assert found.max() > 1 if bound > 1 else found.max() == 1


def test_gains_are_paired() -> None:
    """An unpaired test would drown gains of 1e-3 in the spread of losses."""
    generator = np.random.default_rng(0)
    before = generator.exponential(1, (2, 300))
    after = before - np.array([[0.01], [0.0]]) + 0.02 * generator.standard_normal((2, 300))
    gain = paired_gain(before, after)
    wanted = stats.ttest_rel(before, after, axis=1)
    assert gain.t == pytest.approx(wanted.statistic, rel=1e-10)
    assert gain.t[0] > 5
    assert paired_gain(before, before).t.tolist() == [0, 0]


def test_the_limit_by_hand() -> None:
    """n = 101, mean 0.1, variance 0.04, range 2, ln(2/0.05) = 3.68888."""
    gain = Gain(101, np.array([0.1]), np.array([0.04]))
    wanted = 0.1 - math.sqrt(2 * 0.04 * 3.688879 / 101) - 7 * 2 * 3.688879 / 300
    assert gain.lower_limit(2.0) == pytest.approx([wanted], rel=1e-6)
    assert gain.lower_limit(2.0, steps=10) < gain.lower_limit(2.0) < gain.lower_limit(1.0)


@pytest.mark.parametrize("n", [30, 1000])
def test_the_limit_covers_where_t_does_not(n: int) -> None:
    """Losses that a new net rarely but badly worsens: d = 0.05, and -0.95 in one sample of 25, of mean 0.01. Most small
    samples have none of these, and their t is without bound; the limit is above the truth in at most 5 % of samples."""
    generator = np.random.default_rng(n)
    d = np.where(generator.random((2000, n)) < 0.04, -0.95, 0.05)
    gain = paired_gain(d + 1e-9 * generator.standard_normal(d.shape), np.zeros_like(d))
    assert (gain.lower_limit(2.0) > 0.01).mean() <= 0.05
    if n == 30:
        normal = gain.mean - 1.645 * np.sqrt(gain.variance / n)
        assert (normal > 0.01).mean() > 0.2


def test_the_best_of_many_steps_is_paid_for() -> None:
    """20 steps without any gain, the best of them picked on the same samples: its t is above 1.645 in most samples. The
    limit that knows the number of steps is above 0 in at most 5 %."""
    generator = np.random.default_rng(2)
    d = generator.uniform(-1, 1, (300, 20, 200))
    best = paired_gain(d.reshape(-1, 200), np.zeros((6000, 200)))
    assert (best.t.reshape(300, 20).max(axis=1) > 1.645).mean() > 0.5
    assert (best.lower_limit(2.0, steps=20).reshape(300, 20).max(axis=1) > 0).mean() <= 0.05


def test_the_limit_finds_a_gain_that_is_there() -> None:
    """A bound that never speaks would be of no use: 0.02 nats of gain with spread 0.1 on 30,000 samples of range 2."""
    d = np.random.default_rng(1).normal(0.02, 0.1, (1, 30_000)).clip(-1, 1)
    limit = paired_gain(d, np.zeros_like(d)).lower_limit(2.0)
    assert 0.01 < limit[0] < 0.02
