"""The training engine against a plain loop, members against each other, and what happens when one of them fails."""

import dataclasses
import json
import logging
import subprocess
import sys
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from conftest import Cell
from jumpboard.artefacts.checkpoints import read_checkpoint_header
from jumpboard.artefacts.job import parse
from jumpboard.artefacts.tables import read_header, read_table
from jumpboard.nets.base import Leaves, Net
from jumpboard.nets.resmlp import ResMLP
from jumpboard.nets.resnet import ResNet
from jumpboard.schemas.curves import CURVES
from jumpboard.schemas.metrics import METRICS
from jumpboard.stages import train_baseline
from jumpboard.training.batches import Batches
from jumpboard.training.engine import SMOOTHING, Training, TrainingData
from jumpboard.training.evaluation import EVALUATION_BATCH, evaluate
from jumpboard.training.recipe import Optimiser, Recipe
from oracles.training_loop import Course, train
from problems import initial_leaves

SHAPE, CLASSES, SAMPLES = (2, 6, 5), 3, 50
SEEDS = (5, 0, 2**31)
MLP, CNN = ResMLP(2, 6, SHAPE, CLASSES, gain=True, bias=True), ResNet(3, 2, SHAPE, CLASSES)
ADAMW = Recipe(
    Optimiser("adamw", 0.02, weight_decay=0.1), "cosine", 3, batch=16, steps=10, evaluate_every=5, state_every=100
)
SGD = dataclasses.replace(
    ADAMW,
    optimiser=Optimiser("sgd", 0.2, weight_decay=0.01, momentum=0.9, nesterov=True),
    schedule="linear", warmup=0, clip=0.8, crop=2, flip=True,
)  # fmt: skip
CASES = [
    pytest.param(MLP, ADAMW, id="resmlp"),
    pytest.param(CNN, SGD, id="resnet"),
    pytest.param(MLP, SGD, id="resmlp_augmented"),
    pytest.param(ResNet(3, 2, SHAPE, CLASSES, norm="group"), ADAMW, id="resnet_group"),
]
every_case = pytest.mark.parametrize(("net", "recipe"), CASES)


def planted(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Noisy templates, in float64."""
    templates = np.random.default_rng(7).standard_normal((CLASSES, *SHAPE))
    generator = np.random.default_rng([8, seed])
    y = generator.integers(0, CLASSES, count)
    return torch.from_numpy(templates[y] + generator.standard_normal((count, *SHAPE))), torch.from_numpy(y)


def planted_data(samples: int = SAMPLES) -> TrainingData:
    return TrainingData(*planted(samples, 0), *planted(40, 1))


def trained(
    net: Net, recipe: Recipe, seeds: Sequence[int] = SEEDS, chunk: int | None = None, data: TrainingData | None = None
) -> Training:
    """A finished training, with its state."""
    training = Training(net, data or planted_data(), recipe, seeds)
    training.chunk = chunk or training.chunk
    training.run()
    return training


def member_leaves(training: Training, flat: Tensor) -> dict[str, Tensor]:
    """Leaves of one flat vector, without member dimension."""
    return {name: leaf[0].clone() for name, leaf in training.layout.leaves(flat.unsqueeze(0)).items()}


def plain_courses(net: Net, recipe: Recipe, data: TrainingData) -> list[Course]:
    """The plain loop from the same initial weights, for each seed."""
    start = Training(net, data, recipe, SEEDS)
    members = [member_leaves(start, flat) for flat in start.state.flat]
    return [train(net, leaves, recipe, seed, data.x, data.y) for leaves, seed in zip(members, SEEDS, strict=True)]


@every_case
def test_weights_are_those_of_a_plain_loop(net: Net, recipe: Recipe) -> None:
    """Every trained net of the replication would be another one than its recipe says: a wrong batch, augmentation,
    clipping, rate, weight decay or running statistic shows within ten steps."""
    data = planted_data()
    training = trained(net, recipe, chunk=len(SEEDS), data=data)
    for flat, course in zip(training.state.flat, plain_courses(net, recipe, data), strict=True):
        for name, leaf in member_leaves(training, flat).items():
            torch.testing.assert_close(leaf, course.leaves[-1][name], rtol=1e-8, atol=1e-8)
    assert not torch.equal(training.state.flat[0], training.state.flat[1])


@every_case
def test_what_is_not_free_stays_as_it_was(net: Net, recipe: Recipe) -> None:
    """A block trained alone says nothing if weight decay or momentum moves the old net beneath it. The free part is
    trained from where it was, as a plain loop does that asks for its gradients alone."""
    start = trained(net, recipe).layout.leaves(trained(net, recipe).state.flat)
    shapes = net.parameter_shapes()
    free = torch.cat([torch.full((int(np.prod(shape)),), float("head" in name)) for name, shape in shapes.items()])
    training = Training(net, planted_data(), recipe, SEEDS, start=start, free=free)
    final = training.layout.leaves(training.run().flat)
    for name in shapes:
        moved = (final[name] - start[name]).flatten(1).abs().amax(dim=1)
        assert bool((moved > 1e-3).all()) if "head" in name else torch.equal(final[name], start[name]), name
    whole = Training(net, planted_data(), recipe, SEEDS, start=start).run().flat
    everything = Training(net, planted_data(), recipe, SEEDS, start=start, free=torch.ones_like(free)).run().flat
    assert torch.equal(whole, everything)


@every_case
def test_members_are_independent(net: Net, recipe: Recipe) -> None:
    """A seed's result would depend on which other seeds share its job, and adding a seed would change the old ones."""
    together = trained(net, recipe, chunk=len(SEEDS)).state
    for chunk in (1, 2):
        torch.testing.assert_close(trained(net, recipe, chunk=chunk).state.flat, together.flat, rtol=0, atol=1e-8)
    for member, seed in enumerate(SEEDS):
        alone = trained(net, recipe, seeds=[seed]).state
        torch.testing.assert_close(alone.flat[0], together.flat[member], rtol=0, atol=1e-8)
        assert alone.history[-1][0] == 10
        np.testing.assert_allclose(alone.history[-1][1][:, 0], together.history[-1][1][:, member], atol=1e-8)


def test_channels_last_is_only_a_layout() -> None:
    """A switch for speed that changes numbers would make CPU and GPU runs of one config disagree."""
    plain = trained(CNN, SGD)
    for chunk in (1, len(SEEDS)):
        switched = trained(CNN, dataclasses.replace(SGD, channels_last=True), chunk=chunk)
        torch.testing.assert_close(switched.state.flat, plain.state.flat, rtol=0, atol=1e-8)


def test_bfloat16_is_near_and_used() -> None:
    """`precision: bfloat16` would be ignored, or would break the gradients."""
    exact = planted_data()
    data = TrainingData(exact.x.float(), exact.y, exact.x_validation.float(), exact.y_validation)
    recipes = (dataclasses.replace(SGD, precision=precision) for precision in ("float32", "bfloat16"))
    plain, rough = (Training(CNN, data, recipe, SEEDS) for recipe in recipes)
    for training in (plain, rough):
        training.step()
    alike = torch.cosine_similarity(plain.gradients, rough.gradients)
    assert (alike > 0.95).all()
    assert (alike < 1 - 1e-6).all()
    assert rough.state.flat.dtype == torch.float32


@pytest.mark.parametrize("net", [MLP, CNN], ids=["resmlp", "resnet"])
def test_evaluation_is_the_mean_over_all_samples(net: Net) -> None:
    """Losses in every table would lack samples at the border of evaluation batches, or weigh them wrongly."""
    x, y = planted(2 * EVALUATION_BATCH + 7, 2)
    leaves = initial_leaves(net, 2)
    losses, accuracies = evaluate(net, leaves, x, y)
    training = Training(net, planted_data(), ADAMW, SEEDS)
    for member in range(2):
        logits = [
            train_logits(net, {name: leaf[member : member + 1] for name, leaf in leaves.items()}, part)
            for part in x.split(101)
        ]
        loss = functional.cross_entropy(torch.cat(logits), y)
        torch.testing.assert_close(losses[member], loss, rtol=1e-12, atol=0)
        assert accuracies[member] == (torch.cat(logits).argmax(1) == y).double().mean()
    for chunk in (1, 2, 3):
        training.chunk = chunk
        whole = evaluate(net, training.layout.leaves(training.state.flat), x, y)
        for mine, reference in zip(training.evaluate(training.state.flat, x, y), whole, strict=True):
            np.testing.assert_allclose(mine, reference, rtol=1e-12)


def train_logits(net: Net, leaves: Leaves, x: Tensor) -> Tensor:
    """Logits [B, classes] of one member in evaluation mode."""
    z = net.stem(leaves, x.unsqueeze(0), False)
    for index in range(net.depth):
        z = net.block(leaves, index, z, False)
    return net.head(leaves, z)[0]


# Batches


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**40),
    samples=st.integers(1, 60),
    batch=st.integers(1, 80),
    epoch=st.integers(0, 5),
    augmented=st.booleans(),
)
def test_an_epoch_visits_each_sample_once(seed: int, samples: int, batch: int, epoch: int, augmented: bool) -> None:
    """Some samples would be trained on twice as often as others, so that M training samples are not M; a batch larger
    than the training set is the whole set."""
    batches = Batches([seed], samples, batch, *((1, True) if augmented else ()))
    size = min(batch, samples)
    steps = samples // size
    parts = [batches.at(epoch * steps + step) for step in range(steps)]
    visited = np.concatenate([order[0] for order, _ in parts])
    assert all(order.shape == (1, size) for order, _ in parts)
    assert len(set(visited)) == len(visited) == steps * size
    assert set(visited) <= set(range(samples))
    if samples % size == 0:
        assert len(visited) == samples
    for _, draws in parts:
        assert [(len(draw.offsets), len(draw.flips)) for draw in draws] == ([(size, size)] if augmented else [])


@settings(max_examples=40, deadline=None)
@given(seeds=st.lists(st.integers(0, 2**40), min_size=2, max_size=4, unique=True), steps=st.permutations(range(13)))
def test_batches_are_functions_of_seed_and_step(seeds: list[int], steps: list[int]) -> None:
    """A resumed run would see other batches than an uninterrupted one (nanoGPT #467), and a seed's batches would depend
    on its fellows."""
    whole = Batches(seeds, 30, 7, 2, True)
    forwards = [whole.at(step) for step in range(13)]
    jumping = Batches(seeds, 30, 7, 2, True)
    for step in steps:
        order, draws = jumping.at(step)
        np.testing.assert_array_equal(order, forwards[step][0])
        for member, seed in enumerate(seeds):
            alone, (draw,) = Batches([seed], 30, 7, 2, True).at(step)
            np.testing.assert_array_equal(alone[0], order[member])
            for one in (draws[member], forwards[step][1][member]):
                assert torch.equal(one.offsets, draw.offsets)
                assert torch.equal(one.flips, draw.flips)


def test_orders_differ_between_seeds_epochs_and_streams() -> None:
    """Seeds that share an order are no repetitions: the spread over seeds, and with it every interval, would be too
    small. An order that repeats each epoch, or offsets drawn from the order's stream, are known bugs."""
    batches = Batches([1, 2], 40, 40, 3, True)
    orders, draws = zip(*(batches.at(epoch) for epoch in range(3)), strict=True)
    flat = {tuple(order[member]) for order in orders for member in range(2)}
    offsets = {tuple(draw[member].offsets.flatten().tolist()) for draw in draws for member in range(2)}
    assert len(flat) == len(offsets) == 6
    for epoch in range(3):
        np.testing.assert_array_equal(orders[epoch][1], np.random.default_rng([2, 1, epoch]).permutation(40))
        expected = np.random.default_rng([2, 2, epoch]).integers(0, 7, (40, 2))
        np.testing.assert_array_equal(draws[epoch][1].offsets, expected)


# Checkpoints of a training


LEVELS = (1.05, 0.9, 0.7, 0.69, 0.01)


@pytest.mark.parametrize(("net", "recipe"), CASES[:2])
def test_checkpoints_are_the_moments_they_name(net: Net, recipe: Recipe) -> None:
    """Comparisons at matched loss would compare nets at other losses than they say; `step_7` would not be 7 steps in.

    The running mean is recomputed from the batch losses of the plain loop as the weighted mean that its definition
    gives, the weights of the checkpoints are those of the plain loop at that step.
    """
    data = planted_data(96)
    recipe = dataclasses.replace(
        recipe, steps=40, warmup=0, schedule="constant", crop=0, checkpoint_steps=(0, 7, 40), losses=LEVELS
    )
    training = trained(net, recipe, data=data)
    expected, crossed = {}, set()
    courses = plain_courses(net, recipe, data)
    for member, course in enumerate(courses):
        steps = {"init": 0, "step_0": 0, "step_7": 7, "step_40": 40, "final": 40}
        expected |= {(member, name): step for name, step in steps.items()}
        for level in LEVELS:
            for step in range(1, 41):
                weights = SMOOTHING ** np.arange(step - 1, -1, -1.0)
                mean = np.average(course.losses[:step], weights=weights)
                assert abs(mean - level) > 1e-7, "the planted level must be crossed clearly"
                if mean < level:
                    expected[member, f"loss_{level:g}"] = step
                    crossed.add((level, member, step))
                    break
    assert {key: step for key, (step, _) in training.state.snapshots.items()} == expected
    assert {level for level, _, _ in crossed} == set(LEVELS[:-1]), "planted: the last level is never reached"
    assert len({(member, step) for _, member, step in crossed}) < len(crossed), "planted: two levels at one step"
    for (member, _), (step, flat) in training.state.snapshots.items():
        for name, leaf in member_leaves(training, flat).items():
            torch.testing.assert_close(leaf, courses[member].leaves[step][name], rtol=1e-6, atol=1e-6)


def test_history_and_best_validation() -> None:
    """Early-stopped numbers would not be those of the lowest validation loss, and curves would have wrong axes."""
    data = planted_data(96)
    recipe = dataclasses.replace(ADAMW, steps=50, evaluate_every=4, warmup=0, optimiser=Optimiser("adamw", 0.1))
    training = trained(MLP, recipe, data=data)
    state = training.state
    steps = [step for step, _ in state.history]
    assert steps == [*range(0, 50, 4), 50]
    validation = np.stack([values[2] for _, values in state.history])
    np.testing.assert_array_equal(state.best_loss, validation.min(0))
    np.testing.assert_array_equal(state.best_step, np.array(steps)[validation.argmin(0)])
    assert (state.best_step < 50).any(), "planted: some seed overfits"
    loss, _ = training.evaluate(state.best, data.x_validation, data.y_validation)
    np.testing.assert_array_equal(loss, state.best_loss)
    final = training.evaluate(state.flat, data.x_validation, data.y_validation)
    np.testing.assert_array_equal(final, state.history[-1][1][2:])
    for member, course in enumerate(plain_courses(MLP, recipe, data)):
        for step, values in state.history[1:]:
            weights = SMOOTHING ** np.arange(step - 1, -1, -1.0)
            assert values[0, member] == pytest.approx(np.average(course.losses[:step], weights=weights), abs=1e-6)
    assert np.isnan(state.history[0][1][:2]).all()


# Divergence


def steps_until(sample: int, samples: int, batch: int) -> list[int]:
    """The step at which each seed first sees a sample, by the definition of the order stream."""
    orders = [np.random.default_rng([seed, 1, 0]).permutation(samples) for seed in SEEDS]
    return [int(np.flatnonzero(order == sample)[0]) // batch for order in orders]


def poisoned_data(sample: int, samples: int = 96) -> TrainingData:
    data = planted_data(samples)
    data.x[sample] = torch.inf
    return data


@every_case
def test_a_diverged_member_stands_still_and_harms_no_one(net: Net, recipe: Recipe) -> None:
    """One bad seed would take the cell with it, or leave its mark on its fellows.

    Planted: one sample is infinite, and within the run exactly one seed gets to see it, at a known step. That seed ends
    as a run of that many steps leaves it, running statistics included; the others end with the bytes of a run without
    the sample.
    """
    recipe = dataclasses.replace(recipe, batch=8, steps=5, schedule="constant", warmup=0, losses=(9.0,))
    sample = next(s for s in range(96) if sorted(t < 5 for t in steps_until(s, 96, 8)) == [False, False, True]
                  and min(steps_until(s, 96, 8)) == 3)  # fmt: skip
    victim = int(np.argmin(steps_until(sample, 96, 8)))
    others = [member for member in range(3) if member != victim]
    for chunk in (1, 3):
        clean = trained(net, recipe, chunk=chunk, data=planted_data(96)).state
        state = trained(net, recipe, chunk=chunk, data=poisoned_data(sample)).state
        assert state.step == 5
        assert state.diverged.tolist() == [3 if member == victim else -1 for member in range(3)]
        assert torch.equal(state.flat[others], clean.flat[others])
        for (member, name), (step, flat) in clean.snapshots.items():
            if member != victim:
                assert state.snapshots[member, name][0] == step
                assert torch.equal(state.snapshots[member, name][1], flat)
        before = trained(net, dataclasses.replace(recipe, steps=3), chunk=chunk, data=planted_data(96)).state
        assert torch.equal(state.flat[victim], before.flat[victim])
        assert (victim, "final") not in state.snapshots
        without = trained(net, recipe, [SEEDS[one] for one in others], data=poisoned_data(sample)).state
        torch.testing.assert_close(without.flat, state.flat[others], rtol=0, atol=1e-12)


def test_a_run_without_members_left_ends(recwarn: pytest.WarningsRecorder) -> None:
    """Hours of compute would go into nets that are all NaN; the rows must say at which step each seed ended."""
    data = poisoned_data(11)
    expected = steps_until(11, 96, 8)
    recipe = dataclasses.replace(ADAMW, batch=8, steps=500, evaluate_every=2)
    training = trained(MLP, recipe, data=data)
    assert training.state.diverged.tolist() == expected
    assert training.state.step == max(expected) + 1
    cell = {"dataset": "d", "arch": "a", "depth": 2, "width": 6, "samples": 96}
    parts = dict.fromkeys(("train", "test"), (data.x_validation, data.y_validation))
    rows = list(train_baseline.metric_rows(cell, training, list(SEEDS), parts))
    finals = {row["seed"]: (row["status"], row["step"]) for row in rows if row["checkpoint"] == "final"}
    assert finals == {seed: ("diverged", step) for seed, step in zip(SEEDS, expected, strict=True)}
    assert not [str(one.message) for one in recwarn if "empty slice" in str(one.message).lower()]


def test_divergence_reaches_the_tables(make_cell: Callable[..., Cell]) -> None:
    """A cell whose seeds all diverge would leave no outputs: the DAG stops at the highest rate of a sweep."""
    cell = make_cell(training={"optimiser": {"name": "sgd", "lr": 1e30}, "steps": 400})
    train_baseline.body(parse("train_baseline", cell.arguments()))
    rows = read_table(cell.outputs["metrics"], METRICS).to_pylist()
    assert {row["status"] for row in rows} == {"diverged"}
    assert all(0 < row["step"] < 10 for row in rows if row["checkpoint"] == "final")
    records = read_checkpoint_header(cell.outputs["checkpoints"])["checkpoints"]
    assert sorted(records) == [f"seed_{seed}/{name}" for seed in (1, 3, 4) for name in ("best_validation", "init")]
    curves = read_table(cell.outputs["curves"], CURVES).to_pylist()
    assert {row["step"] for row in curves if row["split"] == "train"} <= {4, 8}


# Memory


def full(members: int, most: int) -> None:
    if members > most:
        raise torch.OutOfMemoryError(f"planted: {members} members")


class CrampedMLP(ResMLP):
    """Has memory for two members, whatever the pass."""

    def stem(self, leaves: Leaves, x: Tensor, train: bool) -> Tensor:
        full(len(x), 2)
        return super().stem(leaves, x, train)


class CrampedCNN(ResNet):
    """Runs out of memory late in a training pass, when running statistics have been computed."""

    def head(self, leaves: Leaves, z: Tensor, train: bool = False) -> Tensor:
        if leaves["head.weight"].requires_grad:
            full(len(leaves["head.weight"]), 2)
        return super().head(leaves, z, train)


class NoMemory(ResMLP):
    def head(self, leaves: Leaves, z: Tensor, train: bool = False) -> Tensor:
        full(1, 0)
        return z


FIVE = (5, 0, 2**31, 8, 9)


@pytest.mark.parametrize(
    ("net", "cramped", "recipe"),
    [
        pytest.param(ResMLP(2, 6, SHAPE, CLASSES), CrampedMLP(2, 6, SHAPE, CLASSES), ADAMW, id="everywhere"),
        pytest.param(CNN, CrampedCNN(3, 2, SHAPE, CLASSES), SGD, id="late"),
    ],
)
def test_out_of_memory_halves_the_members(
    net: Net, cramped: Net, recipe: Recipe, caplog: pytest.LogCaptureFixture
) -> None:
    """A cell with many seeds would fail on a smaller GPU, or go on with statistics counted twice, or pass for a result
    that another machine reproduces byte by byte."""
    roomy = trained(net, recipe, FIVE, chunk=5)
    assert roomy.state.tier == "bytes"
    caplog.set_level(logging.WARNING)
    tight = trained(cramped, recipe, FIVE, chunk=5)
    assert tight.chunk == 2
    assert tight.state.tier == "statistical"
    said = [record.message for record in caplog.records]
    assert said == [f"out of memory: going on with {count} members at a time" for count in (3, 2)]
    torch.testing.assert_close(tight.state.flat, roomy.state.flat, rtol=0, atol=1e-10)
    for (_, mine), (_, reference) in zip(tight.state.history, roomy.state.history, strict=True):
        np.testing.assert_allclose(mine, reference, atol=1e-10)


def test_out_of_memory_with_one_member() -> None:
    """An endless loop at one member, instead of an error."""
    with pytest.raises(torch.OutOfMemoryError):
        trained(NoMemory(2, 6, SHAPE, CLASSES), ADAMW)


def test_out_of_memory_reaches_the_outputs(make_cell: Callable[..., Cell], monkeypatch: pytest.MonkeyPatch) -> None:
    """The audit would ask for equal bytes of a cell that cannot have them."""
    monkeypatch.setattr(train_baseline, "build_net", lambda spec, *place: CrampedMLP(*place))
    cell = make_cell()
    train_baseline.body(parse("train_baseline", cell.arguments()))
    tiers = {read_header(cell.outputs[name])["tier"] for name in ("curves", "metrics")}
    assert tiers | {read_checkpoint_header(cell.outputs["checkpoints"])["tier"]} == {"statistical"}


# Equal runs


@pytest.mark.parametrize("family", ["resmlp", "resnet"])
def test_two_runs_give_the_same_bytes(make_cell: Callable[..., Cell], family: str) -> None:
    """No reader could check a published number: a second run of the same cell would differ for no reason."""
    cells = [make_cell(family, root=root) for root in ("one", "two")]
    for cell in cells:
        train_baseline.body(parse("train_baseline", cell.arguments()))
    assert cells[0].contents() == cells[1].contents()
    other = make_cell(family, root="three", seeds=[3, 1, 5])
    train_baseline.body(parse("train_baseline", other.arguments()))
    assert all(other.contents()[name] != content for name, content in cells[0].contents().items())


READ_THREADS = """
import atexit, json, re, sys, torch
from jumpboard.artefacts.job import run_stage
from jumpboard.stages import train_baseline
from jumpboard.training.engine import Training
step, found = Training.step, set()
def reading(self):
    step(self)
    info = torch.__config__.parallel_info()
    found.update([torch.get_num_threads(), *map(int, re.findall(r"get_(?:num|max)_threads\\(\\) : (\\d+)", info))])
Training.step = reading
run_stage("train_baseline", train_baseline.body)
print(json.dumps(sorted(found)))
"""


def test_threads_are_those_of_the_rule(make_cell: Callable[..., Cell], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every job pinned to one thread, or each of many jobs taking all cores (snakemake #521): counts read inside two
    jobs that run side by side, with an environment that says otherwise, are those of the command line, and recorded."""
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    cells = {threads: make_cell(root=f"threads_{threads}") for threads in (1, 2)}
    jobs = {
        threads: subprocess.Popen(
            [sys.executable, "-c", READ_THREADS, *cell.arguments(threads)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for threads, cell in cells.items()
    }
    for threads, job in jobs.items():
        out, errors = job.communicate(timeout=120)
        assert job.returncode == 0, errors
        assert json.loads(out) == [threads]
        for name in ("curves", "metrics"):
            assert read_header(cells[threads].outputs[name])["threads"] == threads
        assert read_checkpoint_header(cells[threads].outputs["checkpoints"])["threads"] == threads


# Bad input


def refused(cell: Cell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], threads: int = 1) -> str:
    """The one line that the stage ends with."""
    monkeypatch.setattr(sys, "argv", ["train_baseline", *cell.arguments(threads)])
    with pytest.raises(SystemExit) as ended:
        train_baseline.run_stage("train_baseline", train_baseline.body)
    assert ended.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("error: ")
    return captured.err


BAD = {
    "unknown net": ({"net": {"family": "resnext"}}, "net family 'resnext' is not known; accepted: resmlp, resnet"),
    "unknown switch": (
        {"net": {"family": "resmlp", "norms": "rms"}},
        "'resmlp' does not take these switches: ['norms']",
    ),
    "depth": ({"net": {"family": "resnet"}, "depth": 4}, "resnet: depth 4 must be a positive multiple of 3"),
    "device": ({"device": "cuda:9"}, "config: device is 'cuda:9', but this machine has 0 CUDA devices"),
    "samples": ({"samples": 241}, "241 training samples asked for; accepted: 1 to 240"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_parameters(
    case: str, make_cell: Callable[..., Cell], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A page of traceback, a status that reads as success, or a half-written cell that looks finished."""
    changes, message = BAD[case]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    cell = make_cell(**changes)
    assert message in refused(cell, monkeypatch, capsys)
    assert cell.files() == []


@pytest.mark.parametrize("threads", [0, -2])
def test_no_threads(
    threads: int, make_cell: Callable[..., Cell], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """torch ends such a number in a traceback that names no option."""
    assert refused(make_cell(), monkeypatch, capsys, threads) == f"error: --threads is {threads}; accepted: 1 or more\n"


@pytest.mark.parametrize("damage", ["cut", "flipped", "missing", "another kind"])
def test_damaged_splits(
    damage: str, make_cell: Callable[..., Cell], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A half-copied data set would be trained on, or end in a traceback that does not name the file."""
    cell = make_cell()
    content = cell.splits.read_bytes()
    flipped = content[:40] + bytes(255 - byte for byte in content[40:80]) + content[80:]
    cell.splits.write_bytes({"cut": content[:-100], "flipped": flipped, "another kind": b"x" * 500}.get(damage, b""))
    if damage == "missing":
        cell.splits.unlink()
    assert str(cell.splits) in refused(cell, monkeypatch, capsys)
    assert cell.files() == ([] if damage != "missing" else ["prepare_dataset/splits"])
