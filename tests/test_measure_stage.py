"""The stage `measure_gradients` on small trained cells: what its tables hold, what they must not, and that nothing is
left behind where a file is not what it says."""

import json
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from conftest import CLASSES, SIZES, Cell, cells_below, planted_rows
from jumpboard.artefacts import paths
from jumpboard.artefacts.checkpoints import read_checkpoint_header, read_member
from jumpboard.artefacts.files import sha256_of
from jumpboard.artefacts.job import parse
from jumpboard.artefacts.provenance import Provenance
from jumpboard.artefacts.tables import Schema, read_header, read_table
from jumpboard.data.splits import read_splits, write_splits
from jumpboard.measure.moments import moments
from jumpboard.nets.registry import build_net
from jumpboard.schemas.correlations import CORRELATIONS
from jumpboard.schemas.covariance import COVARIANCE
from jumpboard.schemas.moments import MOMENTS
from jumpboard.schemas.signal import SIGNAL
from jumpboard.stages import measure_gradients, train_baseline
from oracles.gradients import loop_rows

SCHEMAS = (SIGNAL, MOMENTS, COVARIANCE, CORRELATIONS)
SPEC = {
    "checkpoints": ["init", "loss_0.9", "step_99", "final"],
    "splits": {"train": 100, "test": 1000},
    "blocks": 5,
    "pool": 30,
    "permutations": 2,
    "heat_maps": [0.5],
}
Make = Callable[..., "Measured"]


@dataclass(frozen=True)
class Measured:
    """A trained cell, and what is measured of it."""

    cell: Cell
    spec: Mapping[str, Any]

    @property
    def outputs(self) -> dict[str, Path]:
        patterns = {one.name: paths.cell_table("measure_gradients", one.name) for one in SCHEMAS}
        return {name: self.cell.root / paths.filled(pattern, self.cell.params) for name, pattern in patterns.items()}

    @property
    def fresh(self) -> Path:
        return self.cell.root / paths.filled(paths.dataset_table("prepare_fresh", "rows"), self.cell.params)

    def arguments(self) -> list[str]:
        params = {name: value for name, value in self.cell.params.items() if name != "training"}
        inputs = {"base": self.cell.splits, "checkpoints": self.cell.outputs["checkpoints"]}
        inputs |= {"fresh": self.fresh} if self.fresh.exists() else {}
        options = {"--root": str(self.cell.root), "--params": json.dumps({**params, "measurement": self.spec})}
        pairs = [text for option in {**options, "--code": "c0de"}.items() for text in option]
        places = [f"{name}={path}" for name, path in self.outputs.items()]
        return [*pairs, "--inputs", *(f"{name}={path}" for name, path in inputs.items()), "--outputs", *places]

    def run(self) -> None:
        measure_gradients.body(parse("measure_gradients", self.arguments()))

    def rows(self, schema: Schema) -> list[dict[str, Any]]:
        return list(read_table(self.outputs[schema.name], schema).to_pylist())


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, splits_file: Path) -> Make:
    """trained(family, spec changes, **params): a trained cell, not yet measured; roots never meet."""
    folder = tmp_path_factory.mktemp("measured")
    count = iter(range(1000))

    def make(family: str = "resmlp", spec: Mapping[str, Any] = {}, **params: Any) -> Measured:
        cell = cells_below(folder, splits_file)(family, root=f"root_{next(count)}", **params)
        train_baseline.body(parse("train_baseline", cell.arguments()))
        return Measured(cell, {**SPEC, **spec})

    return make


@pytest.fixture(scope="module")
def measured(trained: Make) -> Measured:
    """The standard cell, measured."""
    one = trained()
    one.run()
    return one


def reached(one: Measured) -> set[tuple[int, str]]:
    """The seeds and checkpoints to be measured that the training has left."""
    records = read_checkpoint_header(one.cell.outputs["checkpoints"])["checkpoints"]
    seeds, names = one.cell.params["seeds"], one.spec["checkpoints"]
    return {(seed, name) for seed in seeds for name in names if f"seed_{seed}/{name}" in records}


def test_every_net_split_and_site_has_its_row(measured: Measured) -> None:
    """A missing row shortens a trend that is fitted to what is there; all three tables of sites have the same keys."""
    wanted = {
        (seed, checkpoint, site, split)
        for seed, checkpoint in reached(measured)
        for site in range(3)
        for split in ("train", "test")
    }
    for schema in (SIGNAL, MOMENTS, COVARIANCE):
        rows = measured.rows(schema)
        assert {(row["seed"], row["checkpoint"], row["site"], row["split"]) for row in rows} == wanted, schema.name
        assert len(rows) == len(wanted)
        for name in paths.CELL_KEYS:
            assert {row[name] for row in rows} == {measured.cell.params[name]}
        assert {row["units"] for row in rows} == {8}
    sizes = {"train": 100, "test": SIZES["test"]}  # of the test split all there are
    assert all(row["n"] == sizes[row["split"]] for schema in (SIGNAL, MOMENTS) for row in measured.rows(schema))
    assert {row["n"] for row in measured.rows(COVARIANCE)} == {30}
    assert {row["relative_site"] for row in measured.rows(SIGNAL)} == {0.0, 0.5, 1.0}


def test_a_checkpoint_that_was_not_reached_is_left_out(measured: Measured) -> None:
    """A net that never came to a level has no gradients there; another net's would be compared at matched loss."""
    found = {(row["seed"], row["checkpoint"]) for row in measured.rows(SIGNAL)}
    assert found == reached(measured)
    assert {(seed, name) for seed in (3, 1, 4) for name in ("init", "final")} <= found
    assert (3, "loss_0.9") in found
    assert (1, "loss_0.9") not in found
    assert "step_99" not in {name for _, name in found}
    records = read_checkpoint_header(measured.cell.outputs["checkpoints"])["checkpoints"]
    for row in measured.rows(SIGNAL):
        assert row["step"] == records[f"seed_{row['seed']}/{row['checkpoint']}"]["step"]


def test_rows_are_of_the_net_and_samples_that_their_keys_name(measured: Measured) -> None:
    """Exchanged seeds, splits or checkpoints leave a table that looks right: moments from a per-sample loop over the
    stored weights and the normalised samples. Training rows are the first of those trained on."""
    splits = read_splits(measured.cell.splits)
    net = build_net({"family": "resmlp"}, 2, 8, splits.shape, splits.classes)
    rows = {(row["seed"], row["checkpoint"], row["split"], row["site"]): row for row in measured.rows(MOMENTS)}
    for seed, checkpoint in ((3, "init"), (4, "final")):
        member = read_member(measured.cell.outputs["checkpoints"], seed, checkpoint)
        leaves = {name: torch.from_numpy(leaf)[None].double() for name, leaf in member.items()}
        for split, size in (("train", 100), ("test", SIZES["test"])):
            part = splits.rows(split).slice(0, size)
            x, y = torch.from_numpy(splits.normalised(part)).double(), torch.from_numpy(part.y.copy())
            for site, gradients in enumerate(loop_rows(net, leaves, x, y)):
                wanted, row = moments(gradients), rows[seed, checkpoint, split, site]
                for name in ("S", "V", "T", "R", "R2", "diag", "rho_off"):
                    scale = abs(float(getattr(wanted, name))) + float(wanted.R) ** (1 if name == "S" else 2)
                    assert row[name] == pytest.approx(float(getattr(wanted, name)), abs=1e-4 * scale), name


def test_signal_and_moments_say_the_same(measured: Measured) -> None:
    """One pass, two tables: the bias signal is S, its scale is E |zeta|^2 = R + S."""
    for signal, moment in zip(measured.rows(SIGNAL), measured.rows(MOMENTS), strict=True):
        for ending in ("", "_low", "_high", "_plugin"):
            assert signal[f"signal_bias_sq{ending}"] == moment[f"S{ending}"]
        assert signal["signal_rms_sq"] == pytest.approx(moment["R"] + moment["S"], rel=1e-12)
        assert signal["signal_feature_sq_plugin"] > signal["signal_feature_sq"]
        assert moment["S_plugin"] == pytest.approx(moment["S"] + moment["R"] / moment["n"], rel=1e-9)


def test_heat_maps_are_of_the_final_nets_on_test_samples(measured: Measured) -> None:
    """Every pair of the chosen site and each coordinate with itself, once, and nothing of other sites."""
    rows = measured.rows(CORRELATIONS)
    assert {(row["seed"], row["checkpoint"], row["site"], row["split"]) for row in rows} == {
        (seed, "final", 1, "test") for seed in (3, 1, 4)
    }
    pairs = [(i, j) for i in range(8) for j in range(i, 8)]
    assert [(row["i"], row["j"]) for row in rows] == 3 * pairs
    assert all(abs(row[name]) <= 1 + 1e-12 for row in rows for name in ("correlation", "null_correlation"))
    own = [row for row in rows if row["i"] == row["j"]]
    variance = {(row["seed"], row["i"]): row["covariance"] for row in own}
    assert all(row["correlation"] == pytest.approx(1) for row in own)
    for row in rows:
        scale = (variance[row["seed"], row["i"]] * variance[row["seed"], row["j"]]) ** 0.5
        assert row["covariance"] == pytest.approx(row["correlation"] * scale)


@pytest.mark.parametrize(
    ("family", "net", "stationary"),
    [
        ("resmlp", {"family": "resmlp"}, False),
        ("resmlp", {"family": "resmlp", "bias": True}, True),
        ("resnet", {"family": "resnet"}, True),
        ("resnet", {"family": "resnet", "norm": "rms"}, False),
    ],
    ids=["plain", "biased", "batchnorm", "rms"],
)
def test_sites_behind_a_trained_shift_are_marked(trained: Make, family: str, net: Any, stationary: bool) -> None:
    """There training itself drives the mean gradient to 0: decay of that signal would be claimed from unfinished
    training. BatchNorm nets are measured too, in evaluation mode."""
    one = trained(family, {"checkpoints": ["init", "final"]}, net=net, seeds=[3])
    one.run()
    rows = one.rows(SIGNAL)
    assert {row["stationary"] for row in rows} == {stationary}
    assert all(math.isfinite(row[name]) for row in rows for name in ("signal_bias_sq", "signal_feature_sq"))
    units = {(row["site"], row["units"]) for row in rows}
    assert units == ({(0, 2), (1, 2), (2, 4), (3, 8)} if family == "resnet" else {(0, 8), (1, 8), (2, 8)})


def write_fresh(one: Measured, count: int) -> None:
    """Further samples of the planted law, normalised as the base."""
    base = read_splits(one.cell.splits)
    provenance = Provenance("c0de", "c0f1", {}, (0,), "bytes", 1, "cpu", {})
    spec = {"shape": list(base.shape), "classes": CLASSES}
    one.fresh.parent.mkdir(parents=True)
    write_splits(one.fresh, {"fresh": planted_rows(count, 77)}, spec, provenance, base.moments)


def test_fresh_samples_are_measured_where_asked_for(trained: Make) -> None:
    """What holds on samples that no choice has seen is measured on those, and the table's parents say so."""
    one = trained(spec={"splits": {"test": 60, "fresh": 150}, "checkpoints": ["final"]}, seeds=[3])
    write_fresh(one, 200)
    one.run()
    assert {(row["split"], row["n"]) for row in one.rows(MOMENTS)} == {("test", 60), ("fresh", 150)}
    parents = read_header(one.outputs["signal"])["parents"]
    assert parents[one.fresh.relative_to(one.cell.root).as_posix()] == sha256_of(one.fresh)
    splits, base = read_splits(one.fresh), read_splits(one.cell.splits)
    part = splits.rows("fresh").slice(0, 150)
    member = read_member(one.cell.outputs["checkpoints"], 3, "final")
    net = build_net({"family": "resmlp"}, 2, 8, base.shape, base.classes)
    leaves = {name: torch.from_numpy(leaf)[None].double() for name, leaf in member.items()}
    x, y = torch.from_numpy(base.normalised(part)).double(), torch.from_numpy(part.y.copy())
    for site, gradients in enumerate(loop_rows(net, leaves, x, y)):
        (row,) = (row for row in one.rows(MOMENTS) if (row["split"], row["site"]) == ("fresh", site))
        assert row["R"] == pytest.approx(float(moments(gradients).R), rel=1e-4)


def test_two_runs_give_the_same_bytes(trained: Make) -> None:
    """Random features and permutations come from the seed alone, and tables of different sites from streams of their
    own; a published number can be made again."""
    one = trained(spec={"checkpoints": ["final"]}, seeds=[3, 1])
    contents = []
    for _ in range(2):
        one.run()
        contents.append({name: path.read_bytes() for name, path in one.outputs.items()})
    assert contents[0] == contents[1]
    features = {(row["seed"], row["site"]): row["phi_rms_sq"] for row in one.rows(SIGNAL) if row["split"] == "test"}
    assert len(set(features.values())) == len(features)


def test_headers_name_what_the_tables_were_made_from(measured: Measured) -> None:
    """The audit follows this chain from a figure to the data."""
    wanted = {
        path.relative_to(measured.cell.root).as_posix(): sha256_of(path)
        for path in (measured.cell.splits, measured.cell.outputs["checkpoints"])
    }
    for schema in SCHEMAS:
        header = read_header(measured.outputs[schema.name])
        assert header["parents"] == wanted
        assert header["seeds"] == [3, 1, 4]
        assert (header["tier"], header["device"], header["threads"]) == ("bytes", "cpu", 1)
        assert {"torch", "numpy", "scipy", "jumpboard"} <= set(header["versions"])


def refused(one: Measured, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that the stage ends with; nothing may be left below the stage's folder."""
    capsys.readouterr()  # the training's own progress
    monkeypatch.setattr(sys, "argv", ["measure_gradients", *one.arguments()])
    with pytest.raises(SystemExit) as ended:
        measure_gradients.run_stage("measure_gradients", measure_gradients.body)
    assert ended.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("error: ")
    left = [path.relative_to(one.cell.root).as_posix() for path in one.cell.root.rglob("*") if path.is_file()]
    assert not [path for path in left if "measure_gradients" in path]
    return captured.err


@pytest.mark.parametrize("damage", ["cut", "altered", "missing", "another kind"])
def test_damaged_checkpoints_are_refused(
    damage: str, trained: Make, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Gradients of a net that nobody trained would stand in the tables, or a page of traceback in the log."""
    one = trained(seeds=[3])
    path = one.cell.outputs["checkpoints"]
    content = bytearray(path.read_bytes())
    length = int.from_bytes(content[:8], "little")
    offsets = json.loads(content[8 : 8 + length])["seed_3/final/stem.weight"]["data_offsets"]
    content[8 + length + offsets[0]] ^= 1
    path.write_bytes({"cut": bytes(content[:-10]), "altered": bytes(content)}.get(damage, b"x" * 500))
    if damage == "missing":
        path.unlink()
    assert str(path) in refused(one, monkeypatch, capsys)


def test_a_split_that_is_not_there_is_refused(
    trained: Make, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A shortened table would look like one whose config asked for less."""
    one = trained(spec={"splits": {"holdout": 50}}, seeds=[3])
    assert "split 'holdout' is not there; the data set has train, validation, test" in refused(one, monkeypatch, capsys)


def test_null_columns_stand_beside_the_observed_ones(measured: Measured) -> None:
    """An off-diagonal share without its null says nothing; permuting samples must have taken the dependence away."""
    rows = measured.rows(COVARIANCE)
    observed, null = (np.mean([row[name] for row in rows]) for name in ("mean_correlation", "null_mean_correlation"))
    assert null < 0.5 * observed
    assert np.mean([row["rho_off"] for row in rows]) > 0.3 > np.mean([row["null_rho_off"] for row in rows])
