"""Norm caps: a bound over a class of nets says nothing of a net that has left the class, at any checkpoint, by any
rounding."""

import itertools
import signal
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from conftest import RUN, TRAININGS, Cell, cells_below, planted_rows
from expanded import Expanded, write_fresh
from jumpboard.artefacts.checkpoints import read_checkpoint_header, read_member
from jumpboard.artefacts.job import parse
from jumpboard.errors import InputError
from jumpboard.expansion.capped import cut_steps, held
from jumpboard.expansion.insertion import insert, insert_at, with_step
from jumpboard.nets.base import Net, forward
from jumpboard.nets.registry import build_net
from jumpboard.nets.resmlp import ResMLP
from jumpboard.schemas.chain import CHAIN
from jumpboard.schemas.expansion import EXPANSION
from jumpboard.schemas.jumpboard import JUMPBOARD
from jumpboard.stages import expand_chain, expand_depth, train_baseline
from jumpboard.training.caps import Projection
from jumpboard.training.engine import Training, TrainingData
from jumpboard.training.interruption import Interrupted
from jumpboard.training.parameters import Layout
from jumpboard.training.recipe import Caps, Recipe
from jumpboard.training.resume import ResumeStore
from problems import PROBLEMS, initial_leaves, inputs

CAPS = {"spectral": 1.5, "frobenius": 3.0}
TIGHT = Caps(**CAPS)
NET = ResMLP(2, 8, (1, 6, 6), 3, eps=0.01)
WILD = {"optimiser": {"name": "adamw", "lr": 3.0}, "caps": CAPS}
CPU = torch.device("cpu")


def norms(net: Net, leaves: Mapping[str, Any], member: int | None = None) -> tuple[float, float]:
    """The largest spectral norm of a matrix and the largest Frobenius norm of a layer, float64, matrix by matrix."""
    layers = net.layers()
    assert layers is not None
    spectral, frobenius = 0.0, 0.0
    for names in layers.values():
        own = [np.asarray(leaves[name] if member is None else leaves[name][member], np.float64) for name in names]
        spectral = max(spectral, *(float(np.linalg.svd(one, compute_uv=False)[0]) for one in own))
        frobenius = max(frobenius, float(np.sqrt(sum(np.square(one).sum() for one in own))))
    return spectral, frobenius


def assert_within(net: Net, leaves: Mapping[str, Any], caps: Caps = TIGHT) -> None:
    for member in range(len(next(iter(leaves.values())))):
        spectral, frobenius = norms(net, leaves, member)
        assert spectral <= caps.spectral
        assert frobenius <= caps.frobenius


def scaled(net: Net, members: int, factor: float) -> Tensor:
    """Flat initial members, float32, at so many times their size; the first as it is."""
    flat = Layout.of(net).flat(initial_leaves(net, members, dtype=torch.float32))
    flat[1:, : net.parameter_count()] *= factor
    return flat


NETS: list[Net] = [
    NET,
    ResMLP(1, 3, (4,), 3, eps=0.01),
    insert(NET, initial_leaves(NET, 2), [1], [0, 1])[0],
]


# What is projected


@pytest.mark.parametrize("net", NETS, ids=["resmlp", "tiny", "inserted"])
@pytest.mark.parametrize("factor", [0.01, 1.0, 30.0, 1e12])
def test_projection_is_that_of_each_matrix_alone(net: Net, factor: float) -> None:
    """Stacks of matrices, some of them untouched, must come out as one after the other in numpy."""
    flat = scaled(net, 3, factor)
    before = {name: leaf.clone().double().numpy() for name, leaf in Layout.of(net).leaves(flat).items()}
    Projection.of(net, TIGHT, CPU).apply(flat)
    after = Layout.of(net).leaves(flat)
    for names in (net.layers() or {}).values():
        for member in range(3):
            wanted = []
            for name in names:
                u, s, v = np.linalg.svd(before[name][member], full_matrices=False)
                wanted.append(u @ np.diag(np.minimum(s, TIGHT.spectral)) @ v)
            size = np.sqrt(sum(np.square(one).sum() for one in wanted))
            for name, one in zip(names, wanted, strict=True):
                found = after[name][member].double().numpy()
                np.testing.assert_allclose(found, one * min(1.0, TIGHT.frobenius / size), atol=3e-5)
    assert_within(net, after)


@pytest.mark.parametrize("net", NETS, ids=["resmlp", "tiny", "inserted"])
def test_what_is_within_keeps_its_bytes(net: Net) -> None:
    """So that a net taken up from a checkpoint is the net that was saved, and an untouched member trains as ever."""
    flat, projection = scaled(net, 3, 0.1), Projection.of(net, TIGHT, CPU)
    projection.apply(flat)
    once = flat.clone()
    projection.apply(flat)
    assert torch.equal(flat, once)
    small = 0.05 * scaled(net, 2, 1.0)
    kept = small.clone()
    projection.apply(small)
    assert torch.equal(small, kept)


def test_a_member_that_is_no_number_harms_no_one() -> None:
    flat = scaled(NET, 3, 50.0)
    alone = flat[2:].clone()
    flat[0, 5], flat[1, 7] = float("nan"), float("inf")
    Projection.of(NET, TIGHT, CPU).apply(flat)
    Projection.of(NET, TIGHT, CPU).apply(alone)
    assert torch.equal(flat[2:], alone)


@pytest.mark.parametrize("cap", [0.3, 1.5, 6.5])
def test_rounding_never_leaves_the_class(cap: float) -> None:
    """Values at a cap, rounded to float32, exceed it about every second time if nothing is done about it."""
    caps, net = Caps(cap, 0.9 * cap), ResMLP(2, 4, (3,), 3)
    flat = torch.randn(500, net.parameter_count(), generator=torch.Generator().manual_seed(1)) * 9
    for both in (caps, Caps(cap, 2.5 * cap)):
        own = flat.clone()
        Projection.of(net, both, CPU).apply(own)
        leaves = {name: leaf.double() for name, leaf in Layout.of(net).leaves(own).items()}
        for names in (net.layers() or {}).values():
            assert all(bool((torch.linalg.matrix_norm(leaves[name], ord=2) <= both.spectral).all()) for name in names)
            sizes = torch.stack([leaves[name].square().sum((1, 2)) for name in names]).sum(0).sqrt()
            assert bool((sizes <= both.frobenius).all())
            assert bool((sizes > 0.5 * min(both.spectral, both.frobenius)).all())


# Layers


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda one: one.name)
def test_layers_hold_all_trained_leaves_or_there_are_none(problem: Any) -> None:
    """A leaf outside all layers would not be capped, and the bound would not count it."""
    net = problem.net()
    covered = isinstance(net, ResMLP) and not net.gain and not net.bias
    layers = net.layers()
    assert (layers is not None) == covered
    expanded = insert(net, initial_leaves(net, 1), [0], [0])[0].layers()
    assert (expanded is not None) == covered
    if layers is not None and expanded is not None:
        assert sorted(name for names in layers.values() for name in names) == sorted(net.parameter_shapes())
        assert list(layers) == ["input", *(f"block_{index}" for index in range(net.depth)), "head"]
        assert list(expanded) == ["input", "insert_0", *list(layers)[1:]]
        assert expanded["insert_0"] == ("insert.0.w1", "insert.0.a")


def test_layers_stand_in_the_order_of_the_stream() -> None:
    net, leaves = insert_at(NET, initial_leaves(NET, 2), [1, 1], [0, 1])
    net, leaves = insert_at(net, leaves, [1, 1], [0, 1])
    net, leaves = insert_at(net, leaves, [2, 2], [0, 1])
    order = ["input", "block_0", "insert_0", "insert_1", "block_1", "insert_2", "head"]
    assert list(net.layers() or ()) == order


def test_caps_refuse_nets_that_they_do_not_cover() -> None:
    for problem in PROBLEMS:
        net = problem.net()
        if net.layers() is None:
            with pytest.raises(InputError, match=r"caps do not cover this net, '(resmlp|resnet)'"):
                Projection.of(net, TIGHT, CPU)


# New blocks


@pytest.mark.parametrize("caps", [TIGHT, Caps(1.0, 0.5), Caps(50.0, 2.0)])
def test_a_new_block_and_its_longest_step_are_within(caps: Caps) -> None:
    """A jumpboard outside the class would be changed by the training that begins there, and its gain with it."""
    net, leaves = insert(NET, initial_leaves(NET, 3, dtype=torch.float32), [0, 2], [0, 1, 2], caps)
    w1 = leaves["insert.0.w1"]
    unit = torch.randn(6, 8, 33, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    unit[3:, :, 1:] = 0.0  # of one singular value
    unit = unit / torch.linalg.matrix_norm(unit, keepdim=True)
    steps = torch.tensor([[1e-6], [1e9]], dtype=torch.float64).expand(2, 6)
    cut = cut_steps(steps, unit, w1, caps)
    assert torch.equal(cut[0], steps[0])
    board = with_step(net, leaves, unit, cut[1])
    for member in range(6):
        block = [board[name][member].double().numpy() for name in net.block_shapes()]
        spectral = max(float(np.linalg.norm(one, 2)) for one in block)
        frobenius = float(np.sqrt(sum(np.square(one).sum() for one in block)))
        assert spectral <= caps.spectral
        assert frobenius <= caps.frobenius
        assert spectral > 0.999 * caps.spectral or frobenius > 0.999 * caps.frobenius
    assert torch.equal(cut_steps(steps, unit, w1, None), steps)


def test_features_that_are_within_stay_as_they_are_drawn() -> None:
    w1 = 0.01 * torch.randn(2, 12, 3)
    assert torch.equal(held(w1, TIGHT), w1)
    assert torch.equal(held(100 * w1, None), 100 * w1)


def test_insertion_is_bare_at_a_large_eps_and_preserves_outputs() -> None:
    """With eps 0.01 the norm takes half a per cent off what it has normalised."""
    leaves = initial_leaves(NET, 2, dtype=torch.float32)
    net, more = insert(NET, leaves, [0, 1, 2], [0, 1], TIGHT)
    x = inputs(NET, 1, 50, dtype=torch.float32)
    old, new = forward(NET, leaves, x.expand(2, -1, -1, -1, -1)), forward(net, more, x.expand(6, -1, -1, -1, -1))
    assert net.insert_form == "bare"
    torch.testing.assert_close(new, old.repeat(3, 1, 1), rtol=1e-6, atol=1e-7)


# Training


def capped_recipe(**changes: Any) -> Recipe:
    return Recipe.parse(TRAININGS["resmlp"] | RUN | WILD | changes)


def data() -> TrainingData:
    train, validation = planted_rows(200, 1), planted_rows(50, 2)
    return TrainingData(*(torch.from_numpy(one) for part in (train, validation) for one in (part.x, part.y)))


def test_caps_hold_at_every_step_whatever_the_rate() -> None:
    training = Training(NET, data(), capped_recipe(), [3, 1], start=Layout.of(NET).leaves(scaled(NET, 2, 1e4)))
    free = Training(NET, data(), replace(capped_recipe(), caps=None), [3, 1])
    assert_within(NET, training.layout.leaves(training.state.flat))
    for _ in range(10):
        training.step()
        free.step()
        assert_within(NET, training.layout.leaves(training.state.flat))
    assert norms(NET, free.layout.leaves(free.state.flat), 0)[0] > 10  # what the caps have kept from happening


def test_frozen_leaves_stay_as_they_are_under_caps() -> None:
    """Where only the new block is trained, the old net must not move by a bit."""
    start = scaled(NET, 2, 1e4)
    Projection.of(NET, TIGHT, CPU).apply(start)
    net, leaves = insert(NET, Layout.of(NET).leaves(start), [1], [0, 1], TIGHT)
    free = torch.cat(
        [torch.full((int(np.prod(s)),), float(n.startswith("insert"))) for n, s in net.parameter_shapes().items()]
    )
    training = Training(net, data(), capped_recipe(), [0, 1], start=leaves, free=free)
    for _ in range(5):
        training.step()
    ended = training.layout.leaves(training.state.flat)
    assert all(torch.equal(ended[name], leaves[name]) for name in NET.parameter_shapes())
    assert not torch.equal(ended["insert.0.w1"], leaves["insert.0.w1"])
    assert_within(net, ended)


def test_a_stopped_training_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    """Also where it is stopped between two saved states, with weights at their caps."""
    whole = Training(NET, data(), capped_recipe(), [3, 1]).run()
    with ResumeStore(tmp_path, "d") as store:
        for stop in (2, 7):
            training = Training(NET, data(), capped_recipe(), [3, 1])
            step = training.step

            def stopping(stop: int = stop, training: Training = training, step: Callable[[], None] = step) -> None:
                step()
                if training.state.step == stop:
                    signal.raise_signal(signal.SIGTERM)

            training.step = stopping  # type: ignore[method-assign]
            with pytest.raises(Interrupted):
                training.run(store)
        ended = Training(NET, data(), capped_recipe(), [3, 1]).run(store)
    assert torch.equal(ended.flat, whole.flat)
    assert torch.equal(ended.best, whole.best)
    assert ended.snapshots.keys() == whole.snapshots.keys()


# Stages


@pytest.fixture(scope="module")
def capped_cell(tmp_path_factory: pytest.TempPathFactory, splits_file: Path) -> Cell:
    """A cell trained under caps at a rate that throws its weights about."""
    make = cells_below(tmp_path_factory.mktemp("capped"), splits_file)
    cell = make("resmlp", training=WILD, net={"family": "resmlp", "eps": 0.01}, width=4)
    train_baseline.body(parse("train_baseline", cell.arguments()))
    return cell


def net_of(cell: Cell) -> Net:
    return build_net(cell.params["net"], cell.params["depth"], cell.params["width"], (1, 6, 6), 3)


def test_every_checkpoint_is_within(capped_cell: Cell) -> None:
    path, net = capped_cell.outputs["checkpoints"], net_of(capped_cell)
    names = [name.split("/") for name in read_checkpoint_header(path)["checkpoints"]]
    assert {"init", "step_6", "best_validation", "final"} <= {checkpoint for _, checkpoint in names}
    for seed, checkpoint in names:
        spectral, frobenius = norms(net, read_member(path, int(seed.split("_")[1]), checkpoint))
        assert spectral <= TIGHT.spectral
        assert frobenius <= TIGHT.frobenius


def test_expanded_nets_are_within_at_begin_and_end(capped_cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    """All arms of a real job, expanded at its very beginning, with steps of up to a hundred times the stream's size."""
    spec = {
        "reference": "init", "splits": {"train": 200, "test": 60, "fresh": 100},
        "steps": {"lowest": 0.01, "highest": 100, "count": 4}, "scratch": [0.5], "keep_nets": True,
    }  # fmt: skip
    recipe = TRAININGS["resmlp"] | RUN | WILD
    one = Expanded(capped_cell, "expand_depth", ("jumpboard", "step_gains", "expansion"), spec, recipe, True)
    write_fresh(one, 100)
    seen: list[tuple[Net, dict[str, Tensor]]] = []

    class Watched(Training):
        def __init__(self, net: Net, *arguments: Any, start: Any = None, **options: Any) -> None:
            super().__init__(net, *arguments, start=start, **options)
            if start is not None and not torch.equal(self.layout.flat(start), self.state.flat):
                assert "insert.0.a" not in start or not start["insert.0.a"].any()  # scratch alone begins uncapped
            seen.append((net, {name: leaf.clone() for name, leaf in self.layout.leaves(self.state.flat).items()}))

        def run(self, *arguments: Any, **options: Any) -> Any:
            state = super().run(*arguments, **options)
            seen.append((self.net, self.layout.leaves(state.flat)))
            return state

    monkeypatch.setattr("jumpboard.expansion.arms.Training", Watched)
    one.run(expand_depth.body)
    assert len(seen) == 2 * (1 + 4 + 1)
    for net, leaves in seen:
        assert_within(net, leaves)
    rows = one.rows(EXPANSION)
    assert {row["insert_form"] for row in rows} == {"bare", "none"}
    assert all(row["status"] == "trained" for row in rows)
    assert max(row["eta"] for row in one.rows(JUMPBOARD)) <= TIGHT.frobenius


def test_every_link_of_a_chain_is_within(capped_cell: Cell) -> None:
    spec = {
        "reference": "best_validation", "splits": {"train": 200, "test": 60},
        "steps": {"lowest": 0.01, "highest": 100, "count": 3}, "site": 1, "length": 2,
    }  # fmt: skip
    one = Expanded(capped_cell, "expand_chain", ("chain",), spec, TRAININGS["resmlp"] | RUN | WILD, True)
    one.run(expand_chain.body)
    path, net, nets = one.outputs["checkpoints"], net_of(capped_cell), []
    leaves = initial_leaves(net, 1)
    for _ in range(3):
        nets.append(net)
        net, leaves = insert_at(net, leaves, [2], [0])
    records = read_checkpoint_header(path)["checkpoints"]
    assert len(records) == 9
    for seed in capped_cell.params["seeds"]:
        for k, link in enumerate(nets):
            spectral, frobenius = norms(link, read_member(path, seed, f"k_{k}"))
            assert spectral <= TIGHT.spectral
            assert frobenius <= TIGHT.frobenius
    losses = [[row["net_train_loss"] for row in one.rows(CHAIN) if row["seed"] == seed] for seed in (3, 1, 4)]
    assert all(later <= earlier + 1e-9 for chain in losses for earlier, later in itertools.pairwise(chain))
