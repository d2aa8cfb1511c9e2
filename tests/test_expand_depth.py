"""The stage `expand_depth` on small trained cells: what its tables say of a new block must be what training and test
samples say, what is chosen must be chosen without test samples, and a harmful block must never be the selected one."""

import json
import math
import shutil
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from conftest import CLASSES, SIZES, TRAININGS, Cell, cells_below, planted_rows
from jumpboard.artefacts import paths
from jumpboard.artefacts.checkpoints import read_checkpoint_header, read_member
from jumpboard.artefacts.files import sha256_of
from jumpboard.artefacts.job import parse
from jumpboard.artefacts.provenance import Provenance
from jumpboard.artefacts.tables import Schema, read_header, read_table
from jumpboard.data.splits import read_splits, write_splits
from jumpboard.errors import InputError
from jumpboard.expansion.choice import Samples
from jumpboard.expansion.insertion import Inserted, insert_at, site_groups
from jumpboard.expansion.search import Grid, search
from jumpboard.nets.base import Net, forward
from jumpboard.nets.registry import build_net
from jumpboard.nets.resmlp import ResMLP
from jumpboard.schemas.expansion import EXPANSION
from jumpboard.schemas.jumpboard import JUMPBOARD
from jumpboard.schemas.step_gains import STEP_GAINS
from jumpboard.stages import expand_depth, train_baseline
from jumpboard.training.engine import Training, TrainingData
from jumpboard.training.recipe import Recipe
from killing import sweep
from problems import trained_leaves

SCHEMAS = (JUMPBOARD, STEP_GAINS, EXPANSION)
SEEDS = (3, 1, 4)
SPEC = {
    "reference": "final",
    "splits": {"train": 100, "test": 1000, "fresh": 120},
    "steps": {"lowest": 1e-3, "highest": 1, "count": 4},
    "scratch": [0.5],
    "keep_nets": False,
}
BUDGET = {"steps": 6, "evaluate_every": 3, "state_every": 2, "checkpoints": {"steps": [2], "losses": [5.0]}}
CONTROLS = {"random", "orthogonal", "shuffled"}
OF_SITES = ("jumpboard_all", "jumpboard_block", "zero_all", "zero_block")
Row = dict[str, Any]


@dataclass(frozen=True)
class Expanded:
    """A trained cell, and how it is expanded."""

    cell: Cell
    spec: Mapping[str, Any]
    training: Mapping[str, Any]

    @property
    def outputs(self) -> dict[str, Path]:
        patterns = {one.name: paths.cell_table("expand_depth", one.name) for one in SCHEMAS}
        patterns |= {"checkpoints": paths.cell_checkpoints("expand_depth")}
        return {name: self.cell.root / paths.filled(pattern, self.cell.params) for name, pattern in patterns.items()}

    @property
    def fresh(self) -> Path:
        return self.cell.root / paths.filled(paths.dataset_table("prepare_fresh", "rows"), self.cell.params)

    @property
    def checkpoints(self) -> Path:
        return self.cell.outputs["checkpoints"]

    def arguments(self) -> list[str]:
        params = {name: value for name, value in self.cell.params.items() if name != "training"}
        params |= {"baseline": self.cell.params["training"], "training": self.training, "expansion": self.spec}
        inputs = {"base": self.cell.splits, "checkpoints": self.checkpoints}
        inputs |= {"fresh": self.fresh} if "fresh" in self.spec["splits"] else {}
        options = {"--root": str(self.cell.root), "--params": json.dumps(params), "--code": "c0de"}
        pairs = [text for option in options.items() for text in option]
        places = [f"{name}={path}" for name, path in self.outputs.items()]
        return [*pairs, "--inputs", *(f"{name}={path}" for name, path in inputs.items()), "--outputs", *places]

    def run(self) -> "Expanded":
        expand_depth.body(parse("expand_depth", self.arguments()))
        return self

    def rows(self, schema: Schema, **wanted: Any) -> list[Row]:
        rows = read_table(self.outputs[schema.name], schema).to_pylist()
        return [row for row in rows if all(row[name] == value for name, value in wanted.items())]

    def contents(self) -> dict[str, bytes]:
        return {name: path.read_bytes() for name, path in self.outputs.items()}

    def net(self) -> Net:
        splits = read_splits(self.cell.splits)
        params = self.cell.params
        return build_net(params["net"], params["depth"], params["width"], splits.shape, splits.classes)

    def samples(self, split: str) -> tuple[torch.Tensor, torch.Tensor]:
        """All samples of a split, normalised; of the fresh ones the half that gains are measured on."""
        base = read_splits(self.cell.splits)
        rows = read_splits(self.fresh).rows("fresh").slice(60, 120) if split == "fresh" else base.rows(split)
        rows = base.training_subset(self.cell.params["samples"]) if split == "train" else rows
        return torch.from_numpy(base.normalised(rows)), torch.from_numpy(rows.y.copy())

    def leaves(self, seed: int, checkpoint: str = "final") -> dict[str, torch.Tensor]:
        member = read_member(self.checkpoints, seed, checkpoint)
        return {name: torch.from_numpy(leaf)[None] for name, leaf in member.items()}


Make = Callable[..., Expanded]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory, splits_file: Path) -> Make:
    """make(family, spec changes, training changes, **params): a cell, trained once for equal params, with 120 fresh
    samples, not yet expanded."""
    folder = tmp_path_factory.mktemp("expanded")
    trained: dict[str, Cell] = {}

    def maker(
        family: str = "resmlp", spec: Mapping[str, Any] = {}, training: Mapping[str, Any] = {}, **params: Any
    ) -> Expanded:
        name = sha256(repr((family, params)).encode()).hexdigest()
        if name not in trained:
            params = {"seeds": list(SEEDS), **params}
            cell = trained[name] = cells_below(folder, splits_file)(family, root=f"trained_{len(trained)}", **params)
            train_baseline.body(parse("train_baseline", cell.arguments()))
            write_fresh(Expanded(cell, {}, {}))
        root = folder / f"root_{len(list(folder.iterdir()))}"
        shutil.copytree(trained[name].root, root)
        recipe = {**TRAININGS[family], **BUDGET, **training}
        return Expanded(Cell(root, trained[name].params), {**SPEC, **spec}, recipe)

    return maker


def write_fresh(one: Expanded, count: int = 120) -> None:
    """Further samples of the planted law, normalised as the base."""
    base = read_splits(one.cell.splits)
    provenance = Provenance("c0de", "c0f1", {}, (0,), "bytes", 1, "cpu", {})
    spec = {"shape": list(base.shape), "classes": CLASSES}
    one.fresh.parent.mkdir(parents=True)
    write_splits(one.fresh, {"fresh": planted_rows(count, 77)}, spec, provenance, base.moments)


@pytest.fixture(scope="module")
def expanded(make: Make) -> Expanded:
    """The standard cell, expanded."""
    return make().run()


@pytest.fixture(scope="module")
def expanded_resnet(make: Make) -> Expanded:
    """A BatchNorm net, whose sites have three shapes."""
    spec = {"splits": {"train": 60, "test": 60}, "scratch": [0, 1]}
    return make("resnet", spec, {"steps": 3}, seeds=[3, 1]).run()


both = pytest.mark.parametrize("name", ["expanded", "expanded_resnet"])


@both
def test_every_seed_site_arm_and_kind_has_its_row(name: str, request: pytest.FixtureRequest) -> None:
    """A missing row shortens a comparison to what is there; null and absent columns must not be mixed up."""
    one: Expanded = request.getfixturevalue(name)
    seeds, depth = one.cell.params["seeds"], one.cell.params["depth"]
    fresh = "fresh" in one.spec["splits"]
    kinds = ("train", "population") if fresh else ("train",)
    splits = ("train", "test", "fresh") if fresh else ("train", "test")
    sites = range(depth + 1)
    pairs = [("train", name) for name in ("steepest", *sorted(CONTROLS))] + [("population", "steepest")] * fresh
    found = [(r["seed"], r["site"], r["jumpboard"], r["direction"], r["split"]) for r in one.rows(JUMPBOARD)]
    assert sorted(found) == sorted(
        (s, place, *pair, split) for s in seeds for place in sites for pair in pairs for split in splits
    )
    found = [(r["seed"], r["site"], r["jumpboard"], r["step"], r["split"]) for r in one.rows(STEP_GAINS)]
    assert sorted(found) == sorted(
        (s, place, kind, k, split)
        for s in seeds
        for place in sites
        for kind in kinds
        for k in range(4)
        for split in splits
    )
    found = [(r["seed"], r["site"], r["arm"], r["jumpboard"]) for r in one.rows(EXPANSION)]
    scratch = {round(share * depth) for share in one.spec["scratch"]}
    assert sorted(found) == sorted(
        [(s, place, arm, kind) for s in seeds for place in sites for arm in OF_SITES for kind in kinds]
        + [(s, -1, "trained_on", "none") for s in seeds]
        + [(s, place, "scratch", "none") for s in seeds for place in scratch]
    )
    for row in one.rows(EXPANSION):
        assert (row["new_fresh_loss"] is None) == (not fresh)
        assert (row["delta_erm"] is None) == (row["jumpboard"] == "none")
        assert (row["delta_r_fresh"] is None) == (row["jumpboard"] == "none" or not fresh)
        assert (row["relative_site"] is None) == (row["arm"] == "trained_on")
    for row in one.rows(JUMPBOARD):
        assert (row["measured_slope"] is None) == (row["direction"] != "steepest")
        assert row["n"] == {"train": one.spec["splits"]["train"], "test": SIZES["test"], "fresh": 60}[row["split"]]


@both
def test_a_gain_is_the_sum_of_its_parts(name: str, request: pytest.FixtureRequest) -> None:
    """L_test(f+) = L_test(f) - Delta_R^test - Delta_ERM + tau in every row, whatever was selected: who tells apart what
    depth, training and luck have done must be able to add it up again."""
    one: Expanded = request.getfixturevalue(name)
    for row in one.rows(EXPANSION):
        assert row["gain"] == row["old_test_loss"] - row["new_test_loss"]
        if row["jumpboard"] == "none":
            assert row["new_test_loss"] == row["trained_test_loss"]
            continue
        told = row["old_test_loss"] - row["delta_r_test"] - row["delta_erm"] + row["transfer"]
        assert row["new_test_loss"] == pytest.approx(told, abs=1e-12)
        assert row["delta_erm"] >= 0
        board = row["old_train_loss"] - row["delta_r_train"]
        kept = row["trained_train_loss"] <= board + 1e-12
        assert row["branch"] == ("trained" if kept else "jumpboard")
        assert row["new_train_loss"] == pytest.approx(row["trained_train_loss"] if kept else board, abs=1e-12)


def loss(net: Net, leaves: Mapping[str, torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> float:
    return float(functional.cross_entropy(forward(net, leaves, x[None])[0].double(), y))


def test_losses_are_over_all_samples_of_each_split(expanded: Expanded) -> None:
    """Also where directions and steps see fewer; fresh ones that a jumpboard was made from would flatter it."""
    for row in expanded.rows(EXPANSION, arm="trained_on"):
        for split in ("train", "validation", "test", "fresh"):
            wanted = loss(expanded.net(), expanded.leaves(row["seed"]), *expanded.samples(split))
            assert row[f"old_{split}_loss"] == pytest.approx(wanted, rel=1e-6)


def test_gains_and_parts_tell_the_same(expanded: Expanded) -> None:
    """The jumpboard of both tables is the same one: on test samples, where both take all."""
    gains = {
        (row["seed"], row["site"], row["jumpboard"]): row
        for row in expanded.rows(JUMPBOARD, direction="steepest", split="test")
    }
    for row in expanded.rows(EXPANSION):
        if row["jumpboard"] != "none":
            board = gains[row["seed"], row["site"], row["jumpboard"]]
            assert row["delta_r_test"] == pytest.approx(board["gain"], abs=2e-7)
    for row in expanded.rows(STEP_GAINS, split="test"):
        board = gains[row["seed"], row["site"], row["jumpboard"]]
        if row["eta"] == board["eta"]:
            assert (row["gain"], row["gain_se"]) == (board["gain"], board["gain_se"])


# The search


@both
def test_the_slope_is_that_of_the_loss(name: str, request: pytest.FixtureRequest) -> None:
    """First-order gain computed wrongly (gromo #217): finite differences in float64 of the very same samples."""
    one: Expanded = request.getfixturevalue(name)
    rows = one.rows(JUMPBOARD, direction="steepest")
    ratios = np.array([row["measured_slope"] / row["checked_slope"] for row in rows])
    assert np.median(np.abs(ratios - 1)) < 1e-5
    assert np.abs(ratios - 1).max() < 0.02  # a kink of a ReLU may lie within the step


def test_small_steps_gain_what_is_predicted_on_each_split(make: Make) -> None:
    """With the slope of the training samples, the prediction for test samples would be off by what is to be measured:
    how far a direction carries over."""
    one = make(
        spec={"steps": {"lowest": 1e-4, "highest": 1e-3, "count": 2}, "scratch": []}, training={"steps": 0}
    ).run()
    rows = one.rows(STEP_GAINS, step=0)
    for split in ("train", "test", "fresh"):
        predicted, realised = np.array(
            [(row["predicted_gain"], row["gain"]) for row in rows if row["split"] == split]
        ).T
        assert np.linalg.norm(realised - predicted) < 0.02 * np.linalg.norm(predicted)
    shares = {
        split: np.array([row["predicted_gain"] / row["eta"] for row in rows if row["split"] == split])
        for split in ("train", "test")
    }
    assert np.abs(shares["train"] - shares["test"]).max() > 0.1 * np.abs(shares["train"]).max()


def test_test_samples_choose_nothing(make: Make, expanded: Expanded) -> None:
    """A step or a branch chosen on the samples that judge it gains by choosing: other test samples may change what is
    measured on them and nothing else."""
    one = make()
    splits = read_splits(one.cell.splits)
    rows = {name: splits.rows(name) for name in SIZES} | {"test": planted_rows(SIZES["test"], 5)}
    provenance = Provenance("c0de", "c0f1", {}, (0,), "bytes", 1, "cpu", {})
    one.cell.splits.unlink()
    write_splits(one.cell.splits, rows, {"shape": list(splits.shape), "classes": CLASSES}, provenance)
    one.run()
    for schema in SCHEMAS:
        for row, before in zip(one.rows(schema), expanded.rows(schema), strict=True):
            seen = row.get("split") == "test"
            for column in row:
                about_test = seen and ("gain" in column or column == "bernstein_low")
                about_test |= schema is EXPANSION and ("test" in column or column in ("gain", "transfer"))
                assert about_test or row[column] == before[column], (schema.name, column)
            assert not seen or row["gain_se"] != before["gain_se"]


def test_limits_pay_for_the_steps_examined(expanded: Expanded) -> None:
    """By hand: n samples, range 2 B, G steps where the step was chosen on these samples, one where it was not."""
    bound = math.log(CLASSES) + 2
    for row in expanded.rows(JUMPBOARD):
        chosen_here = row["split"] == row["jumpboard"]
        assert row["steps"] == (4 if chosen_here else 1)
        assert row["bound"] == bound
        log, n = math.log(2 * row["steps"] / 0.05), row["n"]
        spread = row["clipped_gain_se"] * math.sqrt(2 * log)
        wanted = row["clipped_gain"] - spread - 7 * 2 * bound * log / (3 * (n - 1))
        assert row["bernstein_low"] == pytest.approx(wanted, rel=1e-9)


def test_controls_find_nothing_in_noise() -> None:
    """A net that already is the truth, 24 times: along no direction may a step that was chosen on training samples gain
    on others more often than chance, or a control would tell nothing."""
    net, found = ResMLP(2, 6, (5,), 4), []
    for seed in range(24):
        leaves, draws = trained_leaves(net, 1, seed), torch.Generator().manual_seed(seed)
        x = torch.randn(400, 5, generator=draws, dtype=torch.float64)
        y = torch.multinomial(forward(net, leaves, x[None])[0].softmax(-1), 1, generator=draws)[:, 0]
        data = {"train": (x[:200], y[:200]), "test": (x[200:], y[200:])}
        samples = Samples.of(data, {"train": 200, "test": 200})
        for one in search(net, leaves, [seed], samples, Grid(0.01, 1, 4)):
            found += [(choice.direction, float(choice.gains["test"].t[0])) for choice in one.choices]
    for direction in ("steepest", *CONTROLS):
        t = np.array([value for name, value in found if name == direction])
        assert len(t) == 72
        assert (t > 2.33).sum() <= 4, direction
        assert t.mean() < 0.2, direction


def test_controls_gain_less_where_there_is_a_way(make: Make) -> None:
    """On training samples, where the steepest direction was found, all others fall behind it."""
    one = make(spec={"reference": "init", "scratch": []}, training={"steps": 0}).run()
    gains = {
        (row["seed"], row["site"], row["direction"]): row["gain"]
        for row in one.rows(JUMPBOARD, split="train", jumpboard="train")
    }
    for seed, site, direction in gains:
        if direction == "steepest":
            assert all(gains[seed, site, name] < gains[seed, site, direction] for name in CONTROLS)
            assert all(
                gains[seed, site, name] < 0.6 * gains[seed, site, direction] for name in ("random", "orthogonal")
            )
    slopes = {row["direction"]: row["slope"] for row in one.rows(JUMPBOARD, seed=3, site=1, jumpboard="train")}
    assert abs(slopes["orthogonal"]) < 0.2 * slopes["steepest"]
    assert len(set(slopes.values())) == 4


# The arms


def plainly_trained(
    one: Expanded, net: Net, start: Mapping[str, torch.Tensor], seed: int, free: Any = None, **changes: Any
) -> dict[str, torch.Tensor]:
    """The net after a plain loop of the arm's recipe, one member alone."""
    data = TrainingData(*one.samples("train"), *one.samples("validation"))
    training = Training(net, data, Recipe.parse({**one.training, **changes}), [seed], start=start, free=free)
    return dict(training.layout.leaves(training.run().flat))


def test_trained_on_is_the_old_net_trained_on(expanded: Expanded) -> None:
    """The control that every gain of depth is held against: same samples, order and budget, no block."""
    for row in expanded.rows(EXPANSION, arm="trained_on"):
        ended = plainly_trained(expanded, expanded.net(), expanded.leaves(row["seed"]), row["seed"])
        for split in ("train", "test", "fresh"):
            wanted = loss(expanded.net(), ended, *expanded.samples(split))
            assert row[f"new_{split}_loss"] == pytest.approx(wanted, abs=2e-6)
        assert row["new_test_loss"] != row["old_test_loss"]
        assert (row["steps"], row["parameters"]) == (6, expanded.net().parameter_count())


@pytest.mark.parametrize("part", ["all", "block"])
def test_members_are_trained_at_their_own_site_and_seed(part: str, expanded: Expanded) -> None:
    """Sites and seeds share one training: exchanged, the rows would still look right."""
    for seed, site in ((3, 2), (4, 0)):
        net, zero = insert_at(expanded.net(), expanded.leaves(seed), [site], [seed])
        old, new = expanded.net().parameter_count(), net.parameter_count() - expanded.net().parameter_count()
        free = None if part == "all" else torch.cat([torch.zeros(old), torch.ones(new)])
        ended = plainly_trained(expanded, net, zero, seed, free)
        (row,) = expanded.rows(EXPANSION, arm=f"zero_{part}", seed=seed, site=site, jumpboard="train")
        assert row["trained_test_loss"] == pytest.approx(loss(net, ended, *expanded.samples("test")), abs=5e-6)
        assert row["trained_parameters"] == (net.parameter_count() if part == "all" else new)
        assert row["insert_form"] == net.insert_form


def test_scratch_begins_at_the_seeds_own_weights(expanded: Expanded) -> None:
    """A net of the same depth with the same block, from the beginning, under the recipe of the old net, for the steps
    of both: the baseline's schedule is stretched over them."""
    baseline = expanded.cell.params["training"]
    (row,) = expanded.rows(EXPANSION, arm="scratch", seed=1)
    net, start = insert_at(expanded.net(), expanded.leaves(1, "init"), [1], [1])
    steps = baseline["steps"] + expanded.training["steps"]
    ended = plainly_trained(expanded, net, start, 1, **{**baseline, "steps": steps})
    assert row["steps"] == steps == 18
    assert row["site"] == 1
    assert row["new_test_loss"] == pytest.approx(loss(net, ended, *expanded.samples("test")), abs=2e-5)


@both
def test_arms_begin_at_the_old_net_or_at_the_jumpboard(name: str, make: Make, request: pytest.FixtureRequest) -> None:
    """With no step of training the zero arms are the old net and the jumpboard arms the jumpboard, so that training
    alone tells them apart."""
    like: Expanded = request.getfixturevalue(name)
    family = like.cell.params["net"]["family"]
    one = make(family, {**like.spec, "scratch": []}, {"steps": 0}, **({} if family == "resmlp" else {"seeds": [3, 1]}))
    for row in one.run().rows(EXPANSION):
        if row["arm"] in ("zero_all", "zero_block", "trained_on"):
            assert row["trained_test_loss"] == pytest.approx(row["old_test_loss"], rel=1e-6)
        elif row["jumpboard"] == "train":
            assert (row["branch"], row["delta_erm"], row["transfer"]) == ("trained", 0, 0)
            assert row["gain"] == pytest.approx(row["delta_r_test"], abs=1e-15)
            assert row["delta_r_test"] != 0


def test_a_zero_block_learns(expanded: Expanded) -> None:
    """An expansion that is all zero cannot learn (gromo, PR 196): A = 0 beside a drawn W1 can."""
    for row in expanded.rows(EXPANSION, arm="zero_block", jumpboard="train"):
        assert abs(row["trained_train_loss"] - row["old_train_loss"]) > 1e-4


@pytest.mark.parametrize(("lr", "status"), [(10.0, "trained"), (1e38, "diverged")])
def test_harmful_training_is_not_accepted(lr: float, status: str, make: Make) -> None:
    """Harmful growth accepted (gromo, PR 252): where training ends worse on training samples, or not at all, the net
    that is kept is the jumpboard, for nets that began at 0 too, and against the jumpboard of each kind."""
    rates = {"optimiser": {"name": "sgd" if status == "diverged" else "adamw", "lr": lr}}
    one = make(spec={"scratch": []}, training=rates).run()
    rows = one.rows(EXPANSION)
    assert len(rows) == 3 * (1 + 3 * 4 * 2)
    for row in (row for row in rows if row["arm"].endswith("_all")):
        assert row["status"] == status
        assert not row["trained_train_loss"] <= row["old_train_loss"]
        assert (row["branch"], row["delta_erm"], row["transfer"]) == ("jumpboard", 0, 0)
        assert row["gain"] == pytest.approx(row["delta_r_test"], abs=1e-15)
        assert all(math.isfinite(row[f"new_{split}_loss"]) for split in ("train", "validation", "test", "fresh"))
        assert (row["steps"] == 6) == (status == "trained")


# The cell


@pytest.mark.parametrize("reference", ["loss_0.9", "step_99"])
def test_seeds_without_the_reference_are_left_out(reference: str, make: Make) -> None:
    """A net that never came to a level has no jumpboard there; with none left the tables are empty, not missing."""
    one = make(spec={"reference": reference, "scratch": []}, training={"steps": 1}).run()
    records = read_checkpoint_header(one.checkpoints)["checkpoints"]
    wanted = {seed for seed in SEEDS if f"seed_{seed}/{reference}" in records}
    assert len(wanted) == {"loss_0.9": 2, "step_99": 0}[reference]
    for schema in SCHEMAS:
        assert {row["seed"] for row in one.rows(schema)} == wanted


def test_leaves_of_another_net_are_refused(make: Make) -> None:
    """Gains of a net that nobody trained would stand in the tables."""
    one = make()
    other = Expanded(
        Cell(one.cell.root, {**one.cell.params, "net": {"family": "resmlp", "bias": True}}), one.spec, one.training
    )
    with pytest.raises(InputError, match=r"seed_3/final: lacks the leaf 'stem\.bias' of the net"):
        other.run()
    assert not any(path.exists() for path in one.outputs.values())


def test_headers_name_what_the_tables_were_made_from(expanded: Expanded) -> None:
    """The audit follows this chain from a figure to the data."""
    places = (expanded.cell.splits, expanded.checkpoints, expanded.fresh)
    wanted = {path.relative_to(expanded.cell.root).as_posix(): sha256_of(path) for path in places}
    for schema in SCHEMAS:
        header = read_header(expanded.outputs[schema.name])
        assert (header["parents"], header["seeds"], header["tier"]) == (wanted, list(SEEDS), "bytes")
        assert {"torch", "numpy", "jumpboard"} <= set(header["versions"])


def test_sites_of_each_shape_are_trained_together(expanded_resnet: Expanded) -> None:
    """A resnet's sites cannot share one batch; the costs of each are those of its own block."""
    net = expanded_resnet.net()
    groups = site_groups(net)
    assert groups == [[0, 1], [2], [3]]
    for site in range(4):
        deeper, _ = insert_at(net, expanded_resnet.leaves(3), [site], [3])
        assert isinstance(deeper, Inserted)
        rows = expanded_resnet.rows(EXPANSION, arm="zero_block", site=site)
        assert {(row["parameters"], row["insert_form"]) for row in rows} == {(deeper.parameter_count(), "bare")}
        assert {row["training_flops"] for row in rows} == {3.0 * deeper.forward_flops() * 32 * 3}


# Killed


def test_killed_at_any_moment(make: Make) -> None:
    """Training killed, and days lost or other numbers: a run killed at the k-th write, rename or removal, killed again
    later, and started a third time ends with the bytes of an uninterrupted one, its states gone."""
    spec = {"splits": {"train": 30, "test": 30}, "steps": {**SPEC["steps"], "count": 2}}
    training = {"steps": 2, "state_every": 1, "evaluate_every": 2}
    expected = make(spec=spec, training=training, seeds=[3]).run().contents()
    limits = [(first, first + 15, -1) for first in (2, 17, 33, 60)]
    cells = [make(spec=spec, training=training, seeds=[3]) for _ in limits]
    found, messages = sweep("expand_depth", [one.cell.root for one in cells], limits, cells[0].arguments())
    assert len(found) == len(limits), messages
    assert {lives.statuses[0] for lives in found} == {-signal.SIGKILL}
    assert {lives.statuses[-1] for lives in found} == {0}, messages
    assert sum(lives.statuses[1] == -signal.SIGKILL for lives in found) >= 2
    assert "going on from step" in messages
    for one in cells:
        assert one.contents() == expected, one.cell.root
        assert not (one.cell.root / paths.RESUME).exists()
