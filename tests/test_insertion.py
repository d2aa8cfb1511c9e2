"""Insertion of a block: the same function before and after, a first-order gain of the size that is predicted, and a net
that trains like any other. A block that changes the outputs, cannot learn or sits elsewhere would make every gain of
depth a statement about something else."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from jumpboard.errors import InputError
from jumpboard.expansion.insertion import (
    Inserted,
    block_entries,
    insert,
    insert_at,
    insertions,
    site_groups,
    with_step,
)
from jumpboard.measure.features import draw_features, hidden_units
from jumpboard.nets.base import Leaves, Net, forward, run_to
from jumpboard.nets.resmlp import ResMLP
from jumpboard.nets.resnet import ResNet
from jumpboard.streams import BLOCK, generator
from jumpboard.training.engine import Training, TrainingData
from jumpboard.training.parameters import Layout
from jumpboard.training.recipe import Optimiser, Recipe
from oracles.gradients import loop_gradients
from oracles.plain_resmlp import plain_logits
from oracles.training_loop import train
from problems import PROBLEMS, inputs, labels, trained_leaves

NETS = [pytest.param(problem.net(), id=problem.name) for problem in PROBLEMS]
every_net = pytest.mark.parametrize("net", NETS)
BY_NAME = {problem.name: problem.net() for problem in PROBLEMS}
MLP = BY_NAME["resmlp_rms"]
SEEDS = (7, 2)


def cloned(leaves: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: leaf.clone() for name, leaf in leaves.items()}


def of_members(leaves: Mapping[str, Tensor], members: slice) -> dict[str, Tensor]:
    return {name: leaf[members].clone() for name, leaf in leaves.items()}


def difference(found: Tensor, wanted: Tensor) -> float:
    return float((found - wanted).norm() / wanted.norm())


def learned(net: Inserted, leaves: Mapping[str, Tensor], seed: int = 0) -> dict[str, Tensor]:
    """The leaves with a newest block that does something."""
    place = f"{net.name}.a"
    noise = np.random.default_rng([11, seed]).standard_normal(leaves[place].shape)
    return {**leaves, place: torch.from_numpy(0.2 * noise).to(leaves[place])}


def everywhere(
    net: Net, leaves: Leaves, dtype: torch.dtype = torch.float64
) -> list[tuple[Inserted, dict[str, Tensor]]]:
    """A new block for each member behind every site, one batch per shape."""
    return [insert(net, leaves, group, SEEDS) for group in site_groups(net)]


def gradients(net: Net, leaves: Mapping[str, Tensor], x: Tensor, y: Tensor) -> dict[str, Tensor]:
    """Of the mean loss of each member, in train mode."""
    trained = {name: leaves[name].detach().requires_grad_() for name in net.parameter_shapes()}
    logits = forward(net, cloned(leaves) | trained, x, train=True)
    loss = functional.cross_entropy(logits.flatten(0, 1), y.flatten(), reduction="sum") / y.shape[1]
    return dict(zip(trained, torch.autograd.grad(loss, list(trained.values())), strict=True))


@every_net
@pytest.mark.parametrize("train", [False, True], ids=["eval", "train"])
def test_outputs_stay_the_same_at_every_site(net: Net, train: bool) -> None:
    """The expanded net would start from another function than the trained one, and its gain would hold that change."""
    leaves = trained_leaves(net, 2, dtype=torch.float32)
    x = inputs(net, 2, 16, dtype=torch.float32)
    before = cloned(leaves)
    wanted = forward(net, before, x, train)
    for expanded, more in everywhere(net, leaves):
        copies = len(more["head.weight"]) // 2
        for deeper, most in [
            (expanded, more),
            insert_at(expanded, more, [expanded.place.index] * 2 * copies, SEEDS * copies),
        ]:
            after = cloned(most)
            logits = forward(deeper, after, x.repeat(copies, *[1] * (x.dim() - 1)), train)
            for copy in range(copies):
                part = slice(2 * copy, 2 * copy + 2)
                assert difference(logits[part], wanted) < 1e-6
                for name in net.buffer_shapes():
                    torch.testing.assert_close(after[name][part], before[name])


@every_net
def test_half_precision_passes(net: Net) -> None:
    """`precision: bfloat16` would break on a stream of another type than the block's, or no longer keep the function:
    the bare form adds exactly 0, the normed one rounds once more."""
    leaves, x = trained_leaves(net, 2, dtype=torch.float32), inputs(net, 2, 8, dtype=torch.float32)
    expanded, more = insert(net, leaves, [net.depth], SEEDS)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert difference(forward(expanded, more, x).float(), forward(net, leaves, x).float()) < 2**-8


@every_net
def test_positions_and_back(net: Net) -> None:
    """A block would write its units to other channels or places than it reads."""
    leaves, x = trained_leaves(net, 2), inputs(net, 2, 3)
    for site in range(net.depth + 1):
        z = run_to(net, leaves, x, site)
        assert torch.equal(net.from_positions(net.positions(z, 2).clone(), z), z)


@every_net
def test_evaluation_leaves_running_statistics_alone(net: Net) -> None:
    """Evaluating an expanded net, also one whose block does something, must not change it."""
    leaves, x = trained_leaves(net, 2), inputs(net, 4, 4)
    expanded, more = insert(net, leaves, [0, 0], SEEDS)
    more = learned(expanded, more)
    before = cloned(more)
    assert not torch.equal(forward(expanded, more, x)[:2], forward(net, leaves, x[:2]))
    for name, leaf in before.items():
        assert torch.equal(more[name], leaf)


@every_net
def test_the_form_is_normed_only_where_that_changes_nothing(net: Net) -> None:
    """Norm(z + h) caps the stream as the blocks do, but after a gain or with a large eps the norm is not idempotent
    (changes of per cents), and on a map a position may be as small as eps."""
    normed = isinstance(net, ResMLP) and not net.gain and net.eps < 1e-3
    expanded, leaves = insert(net, trained_leaves(net, 2), [net.depth], SEEDS)
    assert expanded.insert_form == ("normed" if normed else "bare")
    z = run_to(expanded, learned(expanded, leaves), inputs(net, 2, 8), net.depth)
    sizes = expanded.positions(z, 2).square().mean(-1)
    assert bool((sizes - 1).abs().max() < 1e-3) == normed


def test_a_norm_after_a_gain_would_change_the_outputs() -> None:
    """Why the form is bare there."""
    net = BY_NAME["resmlp_gain"]
    leaves, x = trained_leaves(net, 2), inputs(net, 2, 16)
    z = run_to(net, leaves, x, net.depth)
    assert difference(functional.rms_norm(z, (net.width,), eps=1e-6), z) > 0.01


@every_net
def test_only_the_last_layer_learns_first_and_then_both(net: Net) -> None:
    """gromo's PR #196: an expansion that is all zero cannot learn. Here A has a gradient at once, W1 none while A = 0,
    and one after a step of A."""
    leaves = trained_leaves(net, 2)
    for expanded, more in everywhere(net, leaves):
        members = len(more["head.weight"])
        x, y = inputs(net, members, 8), labels(net, members, 8)
        w1, a = expanded.block_shapes()
        first = gradients(expanded, more, x, y)
        assert (first[a].flatten(1).norm(dim=1) > 1e-6).all()
        assert not first[w1].any()
        second = gradients(expanded, {**more, a: more[a] - 0.1 * first[a]}, x, y)
        assert (second[w1].flatten(1).norm(dim=1) > 1e-8).all()


def test_an_all_zero_block_cannot_learn_but_for_its_constant() -> None:
    """Why W1 is drawn: without it no input reaches A, nor does A pass anything to W1, now or after any step."""
    expanded, leaves = insert(MLP, trained_leaves(MLP, 2), [1], SEEDS)
    x, y = inputs(MLP, 2, 8), labels(MLP, 2, 8)
    w1, a = expanded.block_shapes()
    dead = {**leaves, w1: torch.zeros_like(leaves[w1])}
    for _ in range(3):
        step = gradients(expanded, dead, x, y)
        assert not step[w1].any()
        assert not step[a][:, :, :-1].any()
        dead = {name: leaf - 0.1 * step[name] if name in step else leaf for name, leaf in dead.items()}


def test_behind_a_relu() -> None:
    """In a pre-normalised ResNet the stream at a site is the ReLU's output: the block sees no negative number, and what
    it adds is not cut at 0."""
    net = BY_NAME["resnet_batch"]
    expanded, leaves = insert(net, trained_leaves(net, 2), [1], SEEDS)
    place, x = f"{expanded.name}.a", inputs(net, 2, 4)
    below = leaves[place].clone()
    below[:, :, -1] = -5.0
    before, after = (run_to(expanded, {**leaves, place: a}, x, 1) for a in (leaves[place], below))
    assert before.min() == 0
    torch.testing.assert_close(after, before - 5)


@every_net
def test_members_at_several_sites_are_each_as_alone(net: Net) -> None:
    """All sites are expanded as one batch, in chunks that memory allows: neither may change a number."""
    leaves = trained_leaves(net, 2)
    for group, (expanded, more) in zip(site_groups(net), everywhere(net, leaves), strict=True):
        more, members = learned(expanded, more), 2 * len(group)
        x, y = inputs(net, members, 4), labels(net, members, 4)
        order = torch.from_numpy(np.random.default_rng(0).permutation(members))
        logits, slopes = forward(expanded, more, x), gradients(expanded, more, x, y)
        mixed = forward(expanded, {name: leaf[order] for name, leaf in more.items()}, x[order])
        torch.testing.assert_close(mixed, logits[order], rtol=1e-9, atol=1e-12)
        for member in range(members):
            part = slice(member, member + 1)
            single, own = insert_at(
                net, of_members(leaves, slice(member % 2, member % 2 + 1)), [group[member // 2]], [SEEDS[member % 2]]
            )
            own[f"{single.name}.a"] = more[f"{expanded.name}.a"][part]
            torch.testing.assert_close(forward(single, own, x[part]), logits[part], rtol=1e-9, atol=1e-12)
            for name, slope in gradients(single, own, x[part], y[part]).items():
                torch.testing.assert_close(slope, slopes[name][part], rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("name", ["resmlp_rms", "resmlp_layer_gain_bias", "resmlp_layer"])
def test_nested_insertions_are_the_plain_net(name: str) -> None:
    """A chain of expansions: blocks at the same or at other sites, in the order in which they came."""
    net = BY_NAME[name]
    leaves, x = trained_leaves(net, 2), inputs(net, 2, 5)
    deep: Net = net
    for count, sites in enumerate([[1, 3], [1, 0], [0, 0]]):
        expanded, leaves = insert_at(deep, leaves, sites, SEEDS)
        assert insertions(expanded) == count + 1
        deep, leaves = expanded, learned(expanded, leaves, count)
    logits = forward(deep, leaves, x)
    for member in range(2):
        wanted = plain_logits(deep, {name: leaf[member] for name, leaf in leaves.items()}, x[member])
        torch.testing.assert_close(logits[member], wanted, rtol=1e-11, atol=1e-12)
    assert not torch.equal(leaves["insert.1.w1"][1], leaves["insert.2.w1"][1])


@every_net
def test_leaves_and_costs(net: Net) -> None:
    """The flat vector, checkpoints and the columns of parameters and FLOPs would describe another net."""
    for expanded, leaves in everywhere(net, trained_leaves(net, 2)):
        units = expanded.place.units
        assert list(leaves) == [*expanded.parameter_shapes(), *expanded.buffer_shapes()]
        for name, shape in (expanded.parameter_shapes() | expanded.buffer_shapes()).items():
            assert leaves[name].shape[1:] == shape
            assert leaves[name].dtype == torch.float64
        assert expanded.parameter_count() == net.parameter_count() + 4 * units**2 + units * (4 * units + 1)
        members = len(leaves["head.weight"])
        with FlopCounterMode(display=False) as counter:
            forward(expanded, leaves, inputs(net, members, 3))
        assert expanded.forward_flops() * 3 * members == counter.get_total_flops()
        again = expanded.initial_leaves(np.random.default_rng(3))
        assert list(again) == list(leaves)
        assert all(leaf.dtype == np.float32 and leaf.shape == leaves[name].shape[1:] for name, leaf in again.items())
        assert again[f"{expanded.name}.site"] == expanded.place.index


def test_order_of_members_and_draws() -> None:
    """Losses would be credited to another site or seed. W1 is that of stream 3 with the site in its key."""
    leaves = trained_leaves(MLP, 2)
    expanded, more = insert(MLP, leaves, [2, 0], SEEDS)
    assert more["insert.0.site"].flatten().tolist() == [2, 2, 0, 0]
    for member, (site, seed) in enumerate([(2, 7), (2, 2), (0, 7), (0, 2)]):
        assert torch.equal(more["stem.weight"][member], leaves["stem.weight"][member % 2])
        wanted = draw_features(6, generator(seed, BLOCK, site))
        assert torch.equal(more["insert.0.w1"][member], wanted.double())
    assert not more["insert.0.a"].any()
    assert leaves.keys() == trained_leaves(MLP, 2).keys()
    assert [site.shifted for site in insert(MLP, leaves, [1], SEEDS)[0].sites()] == [False, True, True, True]
    assert expanded.place.index == 0


@pytest.mark.parametrize(
    ("sites", "message"),
    [([4], "site 4 does not exist; accepted: 0 to 3"), ([-1], "site -1"), ([1, 2], r"4 x 54 and 8 x 15")],
)
def test_impossible_sites_are_refused(sites: Sequence[int], message: str) -> None:
    """In one line that says what could be chosen."""
    net = BY_NAME["resnet_batch"]
    with pytest.raises(InputError, match=message) as refusal:
        insert(net, trained_leaves(net, 2), sites, SEEDS)
    assert "\n" not in str(refusal.value)
    assert site_groups(net) == [[0, 1], [2], [3]]


def test_block_entries_are_those_of_the_newest_block() -> None:
    """`block only` would train the old net too, or an earlier block."""
    once, leaves = insert(MLP, trained_leaves(MLP, 2), [1], SEEDS)
    twice, leaves = insert_at(once, leaves, [2, 2], SEEDS)
    mask = block_entries(twice)
    assert mask.shape == (twice.parameter_count(),)
    flat = torch.cat([mask, torch.zeros(Layout.of(twice).size - len(mask))])[None]
    for name, leaf in Layout.of(twice).leaves(flat).items():
        assert (leaf == float(name in ("insert.1.w1", "insert.1.a"))).all()


def plus(net: Net, z: Tensor, zeta: Tensor) -> Tensor:
    """zeta_+ = J_Norm(z)' zeta, written out: RMSNorm takes out the part along z, LayerNorm also the mean."""
    assert isinstance(net, ResMLP)
    centred = zeta - zeta.mean(-1, keepdim=True) if net.norm == "layer" else zeta
    return centred - (centred * z).sum(-1, keepdim=True) * z / net.width


@every_net
def test_a_step_gains_what_the_signal_says(net: Net) -> None:
    """gromo #217: first-order gains computed wrongly. d loss / d eta along A = -eta E[zeta phi']/|.| is
    -signal_feature for the bare block, and with zeta_+ for the normed one."""
    leaves, x, y = trained_leaves(net, 1), inputs(net, 1, 12), labels(net, 1, 12)
    pairs = loop_gradients(net, leaves, x[0], y[0])
    for site, (z, zeta) in zip(net.sites(), pairs, strict=True):
        expanded, more = insert(net, leaves, [site.index], SEEDS[:1])
        hidden = hidden_units(more[f"{expanded.name}.w1"][0], z)
        phi = torch.cat([hidden, torch.ones_like(hidden[..., :1])], dim=-1)
        raw = torch.einsum("ipn,ipf->nf", zeta, phi) / 12
        direction = (
            torch.einsum("ipn,ipf->nf", plus(net, z, zeta), phi) / 12 if expanded.insert_form == "normed" else raw
        )
        signal = direction.norm()

        def loss(
            eta: float, expanded: Inserted = expanded, more: Leaves = more, unit: Tensor = direction / signal
        ) -> float:
            logits = forward(expanded, with_step(expanded, more, unit[None], torch.tensor(eta, dtype=torch.float64)), x)
            return float(functional.cross_entropy(logits[0], y[0]))

        slope = (loss(1e-8) - loss(-1e-8)) / 2e-8
        assert slope == pytest.approx(-float(signal), rel=1e-5, abs=1e-7), site
        if site.index == net.depth and expanded.insert_form == "normed":
            assert abs(float(raw.norm() / signal) - 1) > 1e-3, "at the last site zeta and zeta_+ differ"


def test_steps_are_set_per_member() -> None:
    """Every member has a step of its own; the old leaves stay."""
    expanded, leaves = insert(MLP, trained_leaves(MLP, 2), [1], SEEDS)
    direction = torch.randn(2, 6, 25, dtype=torch.float64)
    moved = with_step(expanded, leaves, direction, torch.tensor([0.5, 2.0]))
    torch.testing.assert_close(moved["insert.0.a"], -torch.tensor([0.5, 2.0]).double().view(2, 1, 1) * direction)
    assert not leaves["insert.0.a"].any()


def test_the_engine_trains_it_like_a_plain_loop() -> None:
    """Expanded nets go through the same engine: batched members at different sites, in one chunk or in several, end
    where a loop of torch's own optimiser over one net ends."""
    net = ResMLP(2, 6, (5,), 3, bias=True)
    recipe = Recipe(
        Optimiser("adamw", 0.02, weight_decay=0.1),
        "cosine",
        3,
        batch=16,
        steps=10,
        evaluate_every=5,
        state_every=100,
        clip=0.8,
    )
    generator = np.random.default_rng(4)
    x, y = torch.from_numpy(generator.standard_normal((50, 5))), torch.from_numpy(generator.integers(0, 3, 50))
    expanded, leaves = insert(net, trained_leaves(net, 2), [0, 2], SEEDS)
    seeds = [*SEEDS, *SEEDS]
    finals = []
    for chunk in (4, 3, 1):
        training = Training(expanded, TrainingData(x, y, x, y), recipe, seeds, start=leaves)
        training.chunk = chunk
        finals.append(training.run().flat)
        torch.testing.assert_close(finals[-1], finals[0], rtol=0, atol=1e-9)
    for member, seed in enumerate(seeds):
        course = train(expanded, {name: leaf[member] for name, leaf in leaves.items()}, recipe, seed, x, y)
        for name, leaf in training.layout.leaves(finals[0]).items():
            torch.testing.assert_close(leaf[member], course.leaves[-1][name], rtol=1e-8, atol=1e-8)
    assert (training.layout.leaves(finals[0])["insert.0.a"].flatten(1).norm(dim=1) > 0.01).all()


def test_a_net_with_running_statistics_trains_expanded() -> None:
    """BatchNorm's statistics pass through the engine as before, the site stays what it is."""
    net = ResNet(3, 2, (2, 6, 5), 3)
    recipe = Recipe(Optimiser("sgd", 0.1), "constant", 0, batch=8, steps=4, evaluate_every=4, state_every=100)
    leaves = trained_leaves(net, 2)
    expanded, more = insert(net, leaves, [0, 1], SEEDS)
    x, y = inputs(net, 1, 20)[0], labels(net, 1, 20)[0]
    training = Training(expanded, TrainingData(x, y, x, y), recipe, [*SEEDS, *SEEDS], start=more)
    final = training.layout.leaves(training.run().flat)
    assert final["insert.0.site"].flatten().tolist() == [0, 0, 1, 1]
    assert not torch.equal(final["stem.norm.mean"], more["stem.norm.mean"])
    assert not torch.equal(final["insert.0.w1"], more["insert.0.w1"])


def test_a_second_block_reads_the_stream_behind_the_first() -> None:
    """In a chain of expansions at one site."""
    once, leaves = insert(MLP, trained_leaves(MLP, 2), [1], SEEDS)
    leaves = learned(once, leaves)
    x = inputs(MLP, 2, 4)
    twice, more = insert_at(once, leaves, [1, 1], SEEDS)
    shifted = with_step(twice, more, torch.ones(2, 6, 25, dtype=torch.float64) / math.sqrt(150), torch.tensor(0.3))
    z = run_to(once, leaves, x, 1)
    hidden = torch.relu(torch.einsum("gbn,ghn->gbh", z, more["insert.1.w1"]))
    h = -0.3 / math.sqrt(150) * (hidden.sum(-1, keepdim=True) + 1)
    torch.testing.assert_close(run_to(twice, shifted, x, 1), functional.rms_norm(z + h, (6,), eps=1e-6))
