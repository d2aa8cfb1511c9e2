"""The stage `certify` and the nets that `expand_depth` keeps for it: a certificate of another net, of other samples or
of a class that the net is not in would be a number like any other."""

import json
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from conftest import CLASSES, SHAPE, TRAININGS, Cell, cells_below, planted_rows
from jumpboard.artefacts import paths
from jumpboard.artefacts.checkpoints import read_checkpoint_header, read_member, write_checkpoints
from jumpboard.artefacts.job import parse, run_stage
from jumpboard.artefacts.provenance import Provenance
from jumpboard.artefacts.tables import Schema, read_table, write_table
from jumpboard.audit.certificates import routes_fault
from jumpboard.data.splits import Moments, read_splits, write_splits
from jumpboard.errors import InputError
from jumpboard.expansion.insertion import insert_at
from jumpboard.nets.base import forward
from jumpboard.nets.registry import build_net
from jumpboard.schemas.card import CARD
from jumpboard.schemas.ladder import LADDER
from jumpboard.schemas.routes import ROUTES
from jumpboard.stages import certify, expand_depth, train_baseline
from oracles.certificates import plain_bernstein, plain_brier, plain_cross_entropy, plain_eps, plain_lambdas

PROVENANCE = Provenance("c0de", "c0f1", {}, (0,), "bytes", 1, "cpu", {})
CAPS = {"spectral": 3.0, "frobenius": 5.0}
RECIPE = TRAININGS["resmlp"] | {"steps": 12, "evaluate_every": 6, "state_every": 6, "caps": CAPS}
EXPANSION = {
    "reference": "init",
    "splits": {"train": 100, "test": 60, "fresh": 400},
    "steps": {"lowest": 1e-2, "highest": 1, "count": 4},
    "scratch": [],
    "keep_nets": True,
}
CERTIFICATES = {"losses": ["brier", "cross_entropy"], "delta": 0.05}
RADIUS, EPS, SEEDS = 40.0, 0.01, (3, 1)
PLAIN = {"brier": (plain_brier, 2.0), "cross_entropy": (plain_cross_entropy, np.log(CLASSES) + 2)}
Row = dict[str, Any]


@dataclass(frozen=True)
class Certified:
    """A trained and expanded cell below `root`, and how it is certified."""

    cell: Cell
    caps: Mapping[str, float] | None
    spec: Mapping[str, Any]

    def path(self, pattern: str) -> Path:
        return self.cell.root / paths.filled(pattern, self.cell.params)

    @property
    def expanded(self) -> Path:
        return self.path(paths.cell_checkpoints("expand_depth"))

    @property
    def card(self) -> Path:
        return self.path(paths.dataset_table("describe_dataset", "card"))

    def inputs(self, **more: Path) -> list[str]:
        fresh = (
            {"fresh": self.path(paths.dataset_table("prepare_fresh", "rows"))} if "fresh" in self.spec["splits"] else {}
        )
        files = {"base": self.cell.splits, "checkpoints": self.cell.outputs["checkpoints"], **fresh, **more}
        return ["--inputs", *(f"{name}={path}" for name, path in files.items())]

    def arguments(self) -> list[str]:
        params = {**self.cell.params, "caps": self.caps, "expansion": self.spec, "certificates": CERTIFICATES}
        outputs = {one.name: self.path(paths.cell_table("certify", one.name)) for one in (ROUTES, LADDER)}
        told = ["--root", str(self.cell.root), "--params", json.dumps(params), "--code", "c0de"]
        places = [f"{name}={path}" for name, path in outputs.items()]
        return [*told, *self.inputs(card=self.card, expanded=self.expanded), "--outputs", *places]

    def run(self) -> "Certified":
        certify.body(parse("certify", self.arguments()))
        return self

    def rows(self, schema: Schema, **wanted: Any) -> list[Row]:
        rows = read_table(self.path(paths.cell_table("certify", schema.name)), schema).to_pylist()
        return [row for row in rows if all(row[name] == value for name, value in wanted.items())]

    def expand(self) -> None:
        params = {
            **self.cell.params,
            "baseline": RECIPE,
            "training": self.cell.params["training"],
            "expansion": self.spec,
        }
        names = ("jumpboard", "step_gains", "expansion")
        outputs = {name: self.path(paths.cell_table("expand_depth", name)) for name in names}
        places = [f"{name}={path}" for name, path in {**outputs, "checkpoints": self.expanded}.items()]
        told = ["--root", str(self.cell.root), "--params", json.dumps(params), "--code", "c0de"]
        expand_depth.body(parse("expand_depth", [*told, *self.inputs(), "--outputs", *places]))

    def write_card(self, radius: float | None) -> None:
        blank = {"int64": 1, "float64": 0.0, "string": "", "bool": True}
        row = {one.name: None if one.nullable else blank[one.type] for one in CARD.columns}
        write_table(self.card, CARD, [row | {"input_radius": radius}], PROVENANCE)

    def samples(self, split: str) -> tuple[torch.Tensor, torch.Tensor]:
        """Those that losses are over."""
        base = read_splits(self.cell.splits)
        if split == "fresh":
            rows = read_splits(self.path(paths.dataset_table("prepare_fresh", "rows"))).rows("fresh").slice(200, 400)
        else:
            rows = base.training_subset(self.cell.params["samples"]) if split == "train" else base.rows(split)
        return torch.from_numpy(rows.x), torch.from_numpy(rows.y.copy())

    def lost(self, seed: int, site: int, name: str, split: str, loss: str) -> np.ndarray:
        """Losses of one net, sample by sample, through `forward` and the plain loss."""
        params = self.cell.params
        net: Any = build_net(params["net"], params["depth"], params["width"], SHAPE, CLASSES)
        old = {
            key: torch.from_numpy(leaf)[None]
            for key, leaf in read_member(self.cell.outputs["checkpoints"], seed, "init").items()
        }
        leaves = old
        if name != "old":
            net, _ = insert_at(net, old, [site], [seed])
            found = read_member(self.expanded, seed, f"site_{site}/{name}")
            leaves = {key: torch.from_numpy(leaf)[None] for key, leaf in found.items()}
        x, y = self.samples(split)
        with torch.no_grad():
            logits = forward(net, leaves, x[None]).double()[0].numpy()
        return np.array([PLAIN[loss][0](one, int(label)) for one, label in zip(logits, y, strict=True)])


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Certified:
    """Two seeds of a capped net of depth 1, width 3, expanded at its beginning, on inputs that are not normalised."""
    folder = tmp_path_factory.mktemp("certified")
    splits, raw = folder / "splits.parquet", Moments((0.0,), (1.0,))
    spec = {"shape": list(SHAPE), "classes": CLASSES}
    rows = {
        name: planted_rows(size, place)
        for place, (name, size) in enumerate({"train": 240, "validation": 60, "test": 60}.items())
    }
    write_splits(splits, rows, spec, PROVENANCE, raw)
    net = {"family": "resmlp", "eps": EPS}
    cell = cells_below(folder, splits)(training={"caps": CAPS}, net=net, depth=1, width=3, seeds=list(SEEDS))
    train_baseline.body(parse("train_baseline", cell.arguments()))
    one = Certified(cell, CAPS, EXPANSION)
    fresh = one.path(paths.dataset_table("prepare_fresh", "rows"))
    fresh.parent.mkdir(parents=True)
    write_splits(fresh, {"fresh": planted_rows(400, 77)}, spec, PROVENANCE, raw)
    one.write_card(RADIUS)
    one.expand()
    return one


@pytest.fixture(scope="module")
def certified(trained: Certified) -> Certified:
    return trained.run()


def copied(one: Certified, place: Path, **changes: Any) -> Certified:
    """The same cell below another root, its certificates not there yet."""
    shutil.copytree(one.cell.root, place / "copy")
    shutil.rmtree(place / "copy" / "certify", ignore_errors=True)
    params = {**one.cell.params, **changes}
    return Certified(Cell(place / "copy", params), one.caps, one.spec)


def refused(one: Certified, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> str:
    capsys.readouterr()
    monkeypatch.setattr(sys, "argv", ["certify", *one.arguments()])
    with pytest.raises(SystemExit) as ended:
        run_stage("certify", certify.body)
    told = capsys.readouterr().err
    assert (ended.value.code, told.count("\n"), told[:7]) == (2, 1, "error: ")
    assert not [path for path in (one.cell.root / "certify").rglob("*") if path.is_file()]
    return str(told)


# The nets that are kept


def test_every_jumpboard_and_the_nets_trained_from_it_are_kept(trained: Certified) -> None:
    records = read_checkpoint_header(trained.expanded)["checkpoints"]
    names = ("jumpboard_train", "jumpboard_population", "jumpboard_all", "jumpboard_block")
    assert sorted(records) == sorted(
        f"seed_{seed}/site_{site}/{name}" for seed in SEEDS for site in (0, 1) for name in names
    )
    reference = read_checkpoint_header(trained.cell.outputs["checkpoints"])["checkpoints"]
    for place, record in records.items():
        assert record["parent"] == reference[f"{place.split('/')[0]}/init"]["sha256"]
        assert record["step"] == (12 if place.endswith(("_all", "_block")) else 0)


def test_kept_nets_are_those_of_the_table(trained: Certified) -> None:
    """Losses of the table `expansion`, which are not clipped, on samples none of whose losses reaches the clip."""
    from jumpboard.schemas.expansion import EXPANSION as TABLE

    rows = read_table(trained.path(paths.cell_table("expand_depth", "expansion")), TABLE).to_pylist()
    own = [row for row in rows if row["arm"].startswith("jumpboard") and row["jumpboard"] == "train"]
    assert len(own) == 8
    for row in own:
        ended = trained.lost(row["seed"], row["site"], row["arm"], "test", "cross_entropy")
        board = trained.lost(row["seed"], row["site"], "jumpboard_train", "test", "cross_entropy")
        assert max(ended.max(), board.max()) < PLAIN["cross_entropy"][1]
        assert ended.mean() == pytest.approx(row["trained_test_loss"], rel=1e-5)
        assert row["old_test_loss"] - board.mean() == pytest.approx(row["delta_r_test"], abs=1e-6)


def test_a_config_that_keeps_no_nets_leaves_a_file_that_holds_none(
    trained: Certified, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    one = copied(trained, tmp_path)
    Certified(one.cell, CAPS, EXPANSION | {"keep_nets": False}).expand()
    assert read_checkpoint_header(one.expanded)["checkpoints"] == {}
    assert "keeps no nets; accepted: those of an expansion with keep_nets: true" in refused(one, monkeypatch, capsys)


# The routes


@pytest.mark.parametrize("loss", PLAIN)
def test_every_term_of_both_routes(certified: Certified, loss: str) -> None:
    bound = PLAIN[loss][1]
    for row in certified.rows(ROUTES, loss=loss):
        seed, site = row["seed"], row["site"]
        lost = {
            (name, split): certified.lost(seed, site, name, split, loss)
            for name in ("old", f"jumpboard_{row['jumpboard']}", row["arm"])
            for split in ("train", "test", "fresh")
        }
        mean = {key: values.mean() for key, values in lost.items()}
        board = f"jumpboard_{row['jumpboard']}"
        new = row["arm"] if mean[row["arm"], "train"] <= mean[board, "train"] else board
        assert row["branch"] == ("trained" if new == row["arm"] else "jumpboard")
        assert row["old_test"] == pytest.approx(mean["old", "test"], rel=1e-5)
        assert row["new_test"] == pytest.approx(mean[new, "test"], rel=1e-5)
        assert row["new_fresh"] == pytest.approx(mean[new, "fresh"], rel=1e-5)
        assert row["delta_erm"] == pytest.approx(mean[board, "train"] - mean[new, "train"], abs=1e-6)
        where = "fresh" if row["route"] == "A" else "test"
        d = lost["old", where] - lost[board, where]
        low = plain_bernstein(d.tolist(), 2 * bound, 0.05)
        assert row["delta_r_mean"] == pytest.approx(d.mean(), abs=1e-6)
        assert row["delta_r"] == pytest.approx(low if row["route"] == "A" else d.mean(), abs=1e-6)
        largest = max(plain_lambdas(1, 3, site, EPS, RADIUS, CAPS["spectral"]))
        d_all = 3 * 36 + 2 * 9 + 3 * 3 + 4 * 3 * 3 + 3 * 13
        told = (bound, d_all, 4, CAPS["frobenius"], 2**0.5, largest)
        eps_m, eps_k = (plain_eps(*told, n, 0.05, 4) for n in (200, 60))
        assert (row["parameters"], row["layers"], row["train_samples"], row["test_samples"]) == (d_all, 4, 200, 60)
        assert row["eps_m"] == pytest.approx(eps_m, rel=1e-6)
        assert row["eps_m_draft"] == pytest.approx(plain_eps(*told, 200, 0.05, 2), rel=1e-6)
        assert row["vacuity"] == pytest.approx(eps_m / bound, rel=1e-6)
        if row["route"] == "A":
            right = row["old_test"] - row["delta_r"] / 2 - row["delta_erm"] + 2 * eps_m
            assert row["eps_k"] is None
        else:
            right = row["old_test"] - row["delta_r"] - row["delta_erm"] + 2 * (eps_m + eps_k)
        assert row["right_hand_side"] == pytest.approx(right, rel=1e-6)
        assert row["holds"] == (row["new_test"] <= row["right_hand_side"])
        assert row["informative"] == (row["right_hand_side"] < row["old_test"])
        assert row["measured_norm_constant"] <= 1 / EPS**0.5
    assert len(certified.rows(ROUTES, loss=loss)) == 2 * 2 * 2 * 2


def test_the_audit_finds_every_route_to_be_what_its_terms_give(certified: Certified) -> None:
    """An honest table passes, void and holding routes alike."""
    assert routes_fault(certified.rows(ROUTES)) == ""


def test_few_fresh_samples_leave_route_a_void(certified: Certified) -> None:
    outcomes = {(row["route"], row["outcome"]) for row in certified.rows(ROUTES)}
    assert outcomes == {("A", "void"), ("B", "holds")}


def test_rungs_of_the_ladder(certified: Certified) -> None:
    for row in certified.rows(LADDER, loss="brier"):
        if row["rung"] not in ("bernstein", "step_grid"):
            continue
        name = "jumpboard_train" if row["arm"] == "jumpboard" else row["arm"]
        new, old = (certified.lost(row["seed"], row["site"], one, "test", "brier") for one in (name, "old"))
        steps = 4 if row["rung"] == "step_grid" else 1
        assert row["limit"] == pytest.approx(plain_bernstein((old - new).tolist(), 4.0, 0.05, steps), abs=1e-6)
        assert row["slack"] == pytest.approx(row["gain"] - row["limit"])
    routes = {(row["seed"], row["site"], row["arm"], row["loss"], row["route"]): row for row in certified.rows(ROUTES)}
    for name in ("A", "B"):
        for row in certified.rows(LADDER, rung=f"route_{name.lower()}"):
            route = routes[row["seed"], row["site"], row["arm"], row["loss"], name]
            assert row["limit"] == pytest.approx(route["old_test"] - route["right_hand_side"])
            assert row["samples_needed"] is None or row["samples_needed"] > row["samples_used"]
    assert len(certified.rows(LADDER)) == 2 * 2 * 2 * (2 * 4 + 1)


# What is not covered, and what is refused


NUMBERS = [column.name for column in ROUTES.columns if column.nullable]


@pytest.mark.parametrize("family", ["no radius", "normalised"])
def test_rows_that_are_not_applicable_have_a_reason_and_no_number(
    trained: Certified, tmp_path: Path, family: str
) -> None:
    one = copied(trained, tmp_path)
    if family == "no radius":
        one.write_card(None)
    else:
        base = read_splits(one.cell.splits)
        write_splits(one.cell.splits, base.parts, {"shape": list(SHAPE), "classes": CLASSES}, PROVENANCE)
    one.run()
    assert len(one.rows(ROUTES)) == 32
    for row in one.rows(ROUTES):
        assert (row["outcome"], row["reason"]) == (
            "not applicable",
            "the law of the data gives no bound on the norm of inputs",
        )
        assert [row[name] for name in NUMBERS] == [None] * len(NUMBERS)
    rungs = {row["rung"]: row["slack"] is not None for row in one.rows(LADDER)}
    assert rungs == {"route_a": False, "route_b": False, "step_grid": True, "bernstein": True, "hoeffding": True}


def test_without_caps_the_class_is_the_smallest_of_powers_of_two(certified: Certified, tmp_path: Path) -> None:
    """It is dearer, and the same for no other net."""
    one = copied(certified, tmp_path)
    Certified(one.cell, None, one.spec).run()
    for row, other in zip(one.rows(ROUTES), certified.rows(ROUTES), strict=True):
        assert (row["class_source"], other["class_source"]) == ("powers", "caps")
        assert np.log2([row["spectral_cap"], row["frobenius_cap"]]) % 1 == pytest.approx([0, 0])
        assert row["class_share"] < other["class_share"] == 1
        assert row["failure"] == other["failure"]


def rewritten(one: Certified, name: str, change: Any, ancestor: str | None = None) -> None:
    """The kept nets again, those of one name changed."""
    records = read_checkpoint_header(one.expanded)["checkpoints"]
    members, ancestors = {}, {}
    for place, record in records.items():
        seed, _, checkpoint = place.partition("/")
        number = int(seed.removeprefix("seed_"))
        leaves = read_member(one.expanded, number, checkpoint)
        members[number, checkpoint] = (record["step"], change(leaves) if place == name else leaves)
        ancestors[number] = ancestor or record["parent"]
    one.expanded.unlink()
    write_checkpoints(one.expanded, members, ancestors, PROVENANCE, chained=False)


def test_a_net_above_its_caps_is_refused(
    trained: Certified, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    one = copied(trained, tmp_path)
    rewritten(
        one, "seed_1/site_1/jumpboard_all", lambda leaves: leaves | {"head.weight": 9 * leaves["head.weight"] + 4}
    )
    told = refused(one, monkeypatch, capsys)
    assert "seed 1, site 1: a matrix has spectral norm" in told
    assert "accepted: at most its cap 3" in told


def test_nets_of_another_reference_are_refused(
    trained: Certified, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    one = copied(trained, tmp_path)
    rewritten(one, "", lambda leaves: leaves, ancestor="0" * 64)
    assert "does not descend from the reference" in refused(one, monkeypatch, capsys)


def test_an_arm_that_diverged_falls_back_to_its_jumpboard(trained: Certified, tmp_path: Path) -> None:
    """Its net was not kept."""
    one = copied(trained, tmp_path)
    records = read_checkpoint_header(one.expanded)["checkpoints"]
    members = {}
    for place in records:
        seed, _, checkpoint = place.partition("/")
        number = int(seed.removeprefix("seed_"))
        if place != "seed_3/site_0/jumpboard_all":
            members[number, checkpoint] = (0, read_member(one.expanded, number, checkpoint))
    ancestors = {int(place.split("/")[0][5:]): record["parent"] for place, record in records.items()}
    one.expanded.unlink()
    write_checkpoints(one.expanded, members, ancestors, PROVENANCE, chained=False)
    one.run()
    for row in one.rows(ROUTES, seed=3, site=0, arm="jumpboard_all"):
        assert (row["branch"], row["delta_erm"]) == ("jumpboard", 0.0)
    with pytest.raises(InputError, match="has no checkpoint"):
        read_member(one.expanded, 3, "site_0/jumpboard_all")
