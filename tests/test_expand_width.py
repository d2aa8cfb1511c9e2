"""The stage `expand_width`: a widened net is compared with the old one trained as long and with one that was wide from
the beginning; each must be what its name says, or width gets the credit of something else."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from conftest import RUN, cells_below
from expanded import RECIPE, Expanded, mean_losses, write_fresh
from jumpboard.artefacts.checkpoints import read_checkpoint_header, read_member
from jumpboard.artefacts.files import sha256_of
from jumpboard.artefacts.job import parse
from jumpboard.artefacts.tables import read_header
from jumpboard.expansion.widenable import refusal
from jumpboard.expansion.widening import widen
from jumpboard.schemas.widening import WIDENING
from jumpboard.stages import expand_width, train_baseline
from jumpboard.streams import BLOCK, generator
from jumpboard.training.engine import Training
from jumpboard.training.recipe import Recipe
from jumpboard.training.resume import ResumeStore
from problems import PROBLEMS, Problem
from test_configuration import changed
from test_configuration import refusal as refusal_of

SPEC = {"reference": "final", "splits": {"test": 50, "fresh": 90}, "factor": 2}
SEEDS, SPLITS, BASELINE_STEPS = (3, 1, 4), ("train", "validation", "test", "fresh"), RUN["steps"]
Make = Callable[..., Expanded]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, splits_file: Path) -> Make:
    """trained(family, spec changes, recipe changes, **params): a trained cell, not yet widened; roots never meet."""
    folder = tmp_path_factory.mktemp("widened")
    count = iter(range(1000))

    def make(
        family: str = "resmlp", spec: Mapping[str, Any] = {}, training: Mapping[str, Any] = {}, **params: Any
    ) -> Expanded:
        cell = cells_below(folder, splits_file)(family, root=f"root_{next(count)}", **params)
        train_baseline.body(parse("train_baseline", cell.arguments()))
        one = Expanded(cell, "expand_width", ("widening",), SPEC | spec, RECIPE | training)
        write_fresh(one, 120)
        return one

    return make


@pytest.fixture(scope="module")
def widened(trained: Make) -> Expanded:
    """The standard cell, widened."""
    one = trained()
    one.run(expand_width.body)
    return one


def by_arm(one: Expanded) -> dict[str, list[dict[str, Any]]]:
    """Rows by arm, in the order of the cell's seeds."""
    rows = {(row["arm"], row["seed"]): row for row in one.rows(WIDENING)}
    return {arm: [rows[arm, seed] for seed in SEEDS if (arm, seed) in rows] for arm in sorted({arm for arm, _ in rows})}


def column(rows: list[dict[str, Any]], name: str) -> np.ndarray:
    return np.array([row[name] for row in rows])


def oracle(one: Expanded) -> dict[str, Training]:
    """The arms, trained in one go and without anything saved."""
    net, leaves, recipe = one.net(), one.reference().leaves, Recipe.parse(one.training)
    width = 2 * net.width
    wider, more = widen(net, leaves, width, [generator(seed, BLOCK, width) for seed in SEEDS])
    longer = replace(Recipe.parse(one.cell.params["training"]), steps=BASELINE_STEPS + recipe.steps)
    data = one.training_data()
    trainings = {
        "widened": Training(wider, data, recipe, SEEDS, start=more),
        "trained_on": Training(net, data, recipe, SEEDS, start=leaves),
        "scratch": Training(wider, data, longer, SEEDS),
    }
    for training in trainings.values():
        training.run()
    return trainings


def test_every_arm_is_what_its_name_says(widened: Expanded) -> None:
    """Started elsewhere, given other batches, more steps or another schedule, an arm would be compared with something
    it is no control for. The losses of old and new nets, over all samples of each split."""
    arms = by_arm(widened)
    wanted = oracle(widened)
    assert sorted(arms) == sorted(wanted)
    for arm, training in wanted.items():
        rows, leaves = arms[arm], training.layout.leaves(training.state.flat)
        for split in SPLITS:
            part = widened.samples(split)
            old = mean_losses(widened.net(), widened.reference().leaves, *part)
            assert column(rows, f"old_{split}_loss") == pytest.approx(old, rel=1e-6), split
            assert column(rows, f"new_{split}_loss") == pytest.approx(
                mean_losses(training.net, leaves, *part), rel=1e-6
            )
        gain = column(rows, "old_test_loss") - column(rows, "new_test_loss")
        assert column(rows, "gain") == pytest.approx(gain, rel=1e-12)
    assert len({len(widened.samples(split)[0]) for split in SPLITS} & {200, 60, 90}) == 3


def test_sizes_and_costs_of_the_arms(widened: Expanded) -> None:
    """Budgets are equal or the comparison is void; the wide net counts what it is."""
    arms, steps = by_arm(widened), RECIPE["steps"]
    for arm, width, budget in (("widened", 16, steps), ("trained_on", 8, steps), ("scratch", 16, 12 + steps)):
        net = replace(widened.net(), width=width)
        for row in arms[arm]:
            assert (row["new_width"], row["steps"], row["status"]) == (width, budget, "trained")
            assert row["parameters"] == row["trained_parameters"] == net.parameter_count()
            assert row["training_flops"] == 3 * net.forward_flops() * 32 * budget
            assert row["width"] == 8
    assert [row["seed"] for row in arms["widened"]] == [3, 1, 4]


def test_the_function_is_preserved(widened: Expanded) -> None:
    """A net that changes as it is widened starts with a gain or loss that training never made."""
    arms = by_arm(widened)
    assert all(0 < row["preserved"] < 1e-6 for row in arms["widened"])
    assert all(row["preserved"] is None for arm in ("trained_on", "scratch") for row in arms[arm])


def test_a_change_would_be_seen(trained: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Heads that are not divided: all logits sqrt 2 times as large, a change of 0.41 of the largest."""

    def naive(*arguments: Any) -> Any:
        wider, more = widen(*arguments)
        return wider, {**more, "head.weight": math.sqrt(2) * more["head.weight"]}

    monkeypatch.setattr(expand_width, "widen", naive)
    one = trained(training={"steps": 0})
    one.run(expand_width.body)
    assert column(by_arm(one)["widened"], "preserved") == pytest.approx(math.sqrt(2) - 1, rel=1e-4)


def test_without_steps_every_arm_is_where_it_begins(trained: Make) -> None:
    """The widened net begins at the old one's losses, the old one stays, and the net from scratch has the baseline's
    steps alone."""
    one = trained(training={"steps": 0})
    one.run(expand_width.body)
    arms = by_arm(one)
    for split in SPLITS:
        old = column(arms["widened"], f"old_{split}_loss")
        assert column(arms["widened"], f"new_{split}_loss") == pytest.approx(old, rel=1e-6)
        assert column(arms["trained_on"], f"new_{split}_loss").tolist() == old.tolist()
    assert {row["steps"] for row in arms["scratch"]} == {BASELINE_STEPS}
    assert column(arms["widened"], "gain") == pytest.approx([0, 0, 0], abs=1e-6)


def test_the_reference_is_the_checkpoint_of_that_name(trained: Make) -> None:
    """An early-stopped net would else be the last one."""
    one = trained(spec={"reference": "step_6"}, training={"steps": 0}, seeds=[3])
    one.run(expand_width.body)
    (row,) = by_arm(one)["trained_on"]
    found = {}
    for name in ("step_6", "final"):
        member = read_member(one.cell.outputs["checkpoints"], 3, name)
        leaves = {leaf: torch.from_numpy(value)[None] for leaf, value in member.items()}
        found[name] = mean_losses(one.net(), leaves, *one.samples("test"))[0]
    assert row["old_test_loss"] == pytest.approx(found["step_6"], rel=1e-6)
    assert row["old_test_loss"] != pytest.approx(found["final"], rel=1e-3)


def test_seeds_without_the_reference_are_left_out(trained: Make) -> None:
    """A seed whose loss never fell so far has no net at that level; another one in its place would be no match."""
    one = trained(spec={"reference": "loss_0.9"})
    records = read_checkpoint_header(one.cell.outputs["checkpoints"])["checkpoints"]
    reached = {seed for seed in SEEDS if f"seed_{seed}/loss_0.9" in records}
    assert set() != reached != set(SEEDS)
    one.run(expand_width.body)
    for rows in by_arm(one).values():
        assert {row["seed"] for row in rows} == reached


def test_a_diverged_arm_is_marked(trained: Make) -> None:
    """A loss that is no number must not read as a gain, nor its seed vanish from the table."""
    one = trained(training={"optimiser": {"name": "adamw", "lr": 1e30}}, seeds=[3])
    one.run(expand_width.body)
    arms = by_arm(one)
    for arm in ("widened", "trained_on"):
        assert [row["status"] for row in arms[arm]] == ["diverged"]
        assert arms[arm][0]["steps"] == 2
        assert math.isnan(arms[arm][0]["gain"])
    assert [row["status"] for row in arms["scratch"]] == ["trained"]


def test_two_runs_give_the_same_bytes(widened: Expanded) -> None:
    """The second in another folder, from a state that was saved within the second arm."""
    other = widened.copied("again")
    killed_in_arm(other, "trained_on")
    assert (other.states / "widened").is_dir()
    other.run(expand_width.body)
    assert other.contents() == widened.contents()
    assert not other.states.exists()


def killed_in_arm(one: Expanded, arm: str) -> None:
    """Run the stage until the arm has saved its first state."""
    with pytest.MonkeyPatch.context() as patch:
        save = ResumeStore.save

        def dying(store: Any, *arguments: Any) -> None:
            save(store, *arguments)
            if store.folder.name == arm:
                raise KeyboardInterrupt

        patch.setattr(ResumeStore, "save", dying)
        with pytest.raises(KeyboardInterrupt):
            one.run(expand_width.body)
    assert not any(path.exists() for path in one.outputs.values())


def test_the_header_names_what_the_table_was_made_from(widened: Expanded) -> None:
    """The audit follows this chain from a claim to the data."""
    header = read_header(widened.outputs["widening"])
    files = (widened.cell.splits, widened.fresh, widened.cell.outputs["checkpoints"])
    assert header["parents"] == {path.relative_to(widened.cell.root).as_posix(): sha256_of(path) for path in files}
    assert header["seeds"] == [3, 1, 4]
    assert (header["tier"], header["device"], header["threads"]) == ("bytes", "cpu", 1)
    assert {"torch", "numpy", "jumpboard"} <= set(header["versions"])


def test_what_cannot_be_widened_is_refused(trained: Make, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """In one line, before anything is trained, and with nothing left behind."""
    one = trained(net={"family": "resmlp", "bias": True}, seeds=[3])
    assert "a bias does not scale along with the stream" in one.refused(expand_width.body, monkeypatch, capsys)


def test_without_a_reference_the_table_is_empty_and_there(trained: Make) -> None:
    """A cell all of whose seeds diverged must not stop the figures of the others."""
    one = trained(spec={"reference": "step_99"}, seeds=[3])
    one.run(expand_width.body)
    assert by_arm(one) == {}


def test_damaged_checkpoints_are_refused(trained: Make, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    one = trained(seeds=[3])
    path = one.cell.outputs["checkpoints"]
    path.write_bytes(path.read_bytes()[:-10])
    assert str(path) in one.refused(expand_width.body, monkeypatch, capsys)


# What a config is told

BLOCK_OF_CONFIG = {
    "dataset": "digits", "arch": "resnet_bn", "reference": "final", "training": "resnet", "splits": {"test": 100},
    "factor": 2,
}  # fmt: skip


def test_a_config_is_told_before_any_job_runs() -> None:
    text = refusal_of(changed("widenings", [BLOCK_OF_CONFIG]))
    assert text.startswith("config: widenings[0] is of resnet_bn, which cannot be widened: BatchNorm gives each")
    assert "accepted: resmlp with norm rms" in text


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda one: one.name)
def test_config_and_net_are_told_the_same(problem: Problem) -> None:
    """Defaults that a config leaves out are those of the net, or a net that can be widened is refused."""
    net = problem.net()
    assert net.family == problem.spec["family"]
    assert refusal(net.family, problem.spec) == refusal(net.family, vars(net))


def test_a_recipe_for_pictures_is_refused_on_vectors() -> None:
    config = changed("widenings", [BLOCK_OF_CONFIG | {"dataset": "mnist1d", "arch": "resmlp", "training": "other"}])
    config["trainings"]["other"] = config["trainings"]["resmlp"] | {"augmentation": {"flip": True}}
    assert "trainings.other.augmentation is for pictures" in refusal_of(config)
