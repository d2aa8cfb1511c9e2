"""The table of damaged and foreign files: whatever a stage reads is named in one line, with what to do about it, and
nothing is written."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calls import called, refusal
from conftest import SHAPE, Cell, cells_below
from jumpboard.artefacts import paths
from jumpboard.artefacts.files import REMEDY
from jumpboard.schemas.registry import table_schema


def truncated(share: float) -> Callable[[Path], None]:
    return lambda path: os.truncate(path, int(share * path.stat().st_size))


def with_column(name: str, change: Callable[[pa.Array], pa.Array]) -> Callable[[Path], None]:
    """The table with one column changed, under its own header."""

    def damage(path: Path) -> None:
        table = pq.read_table(path)
        index = table.column_names.index(name)
        field = table.schema.field(name)
        column = change(table.column(name).combine_chunks())
        changed = table.set_column(index, pa.field(name, column.type, metadata=field.metadata), column)
        pq.write_table(changed.replace_schema_metadata(table.schema.metadata), path)

    return damage


def without_column(name: str) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        table = pq.read_table(path)
        pq.write_table(table.drop_columns([name]), path)

    return damage


def written(content: bytes) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(content) and None


class Chain:
    """A trained and measured cell, its collected table, and the command lines of the stages that made them."""

    def __init__(self, folder: Path, splits: Path) -> None:
        make = cells_below(folder, splits)
        self.cell = make(seeds=[3])
        self.wider = make(root="wider", seeds=[3], width=12)
        self.again = make(root="again", seeds=[3], samples=150)
        for cell in (self.cell, self.wider, self.again):
            assert called("train_baseline", cell.arguments())[0] == 0
        self.root, self.name = self.cell.root, paths.filled(paths.CELL, self.cell.params)
        grid = {name: self.cell.params[name] for name in ("dataset", "arch", "seeds")}
        axes = {name: [self.cell.params[name]] for name in ("depth", "width", "samples")}
        config = {"grid": [{**grid, "training": "resmlp", "product": axes}]}
        self.config = self.root / paths.CONFIG
        self.config.write_text(json.dumps({"config": config, "datasets": {}, "claims": {}}))
        self.collected = self.root / "collect" / "metrics.parquet"
        self.drawn = self.root / "figures"
        spec = {"checkpoints": ["final"], "splits": {"test": 60}, "heat_maps": []}
        spec |= {"blocks": 3, "pool": 10, "permutations": 1}
        own = {name: value for name, value in self.cell.params.items() if name != "training"}
        net = {"dataset": "planted", "arch": "resmlp"}
        tables = ("signal", "moments", "covariance", "correlations")
        inputs = {"base": self.cell.splits, "checkpoints": self.cell.outputs["checkpoints"]}
        self.arguments = {
            "train_baseline": self.cell.arguments(),
            "measure_gradients": self.call(
                {**own, "measurement": spec}, inputs, {name: self.root / f"{name}.parquet" for name in tables}
            ),
            "expand_width": self.call(
                {
                    **own, "baseline": self.cell.params["training"], "training": self.cell.params["training"],
                    "expansion": {"reference": "final", "splits": {"test": 60}, "factor": 2},
                },
                inputs, {"widening": self.root / "widening.parquet"},
            ),
            "collect": self.call(
                {**net, "table": "metrics", "rule": "train_baseline"},
                {"config": self.config}, {"table": self.collected},
            ),
            "draw_figure": self.call(
                {**net, "figure": "joint_scaling"}, {"table": self.collected},
                {name: self.drawn / f"a.{name}" for name in ("svg", "png", "table")},
            ),
            "evaluate_claims": self.call(
                {}, {"config": self.config, "metrics_0": self.collected}, {"claims": self.root / "claims.parquet"}
            ),
            "describe_dataset": self.call({}, {"splits": self.cell.splits}, {"card": self.root / "card"}),
            "write_manifest": self.call({}, {"config": self.config}, {"manifest": self.root / "manifest"}),
        }  # fmt: skip
        self.files = {
            "splits": self.cell.splits, **self.cell.outputs, "config": self.config, "collected": self.collected
        }  # fmt: skip
        assert called("collect", self.arguments["collect"])[0] == 0

    def call(self, params: Any, inputs: dict[str, Path], outputs: dict[str, Path]) -> list[str]:
        """A stage's command line."""
        places = [[f"{name}={path}" for name, path in pairs.items()] for pairs in (inputs, outputs)]
        options = ["--root", str(self.root), "--params", json.dumps(params), "--code", "c0de"]
        return [*options, "--inputs", *places[0], "--outputs", *places[1]]

    def all_files(self) -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in self.root.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory, splits_file: Path) -> Chain:
    return Chain(tmp_path_factory.mktemp("chain"), splits_file)


NOT_WHOLE = {
    "table": f"not a whole Parquet table written by jumpboard; {REMEDY}",
    "checkpoints": f"not a whole checkpoint file written by jumpboard; {REMEDY}",
    "config": f"not a whole JSON file; {REMEDY}",
}
Damage = Callable[[Path], None]
STAGES: dict[str, tuple[str, str, Damage, str]] = {  # stage, the file, what is done to it, the answer
    **{
        f"{stage}, {kind} {file}": (stage, file, truncated(share), NOT_WHOLE.get(file, NOT_WHOLE["table"]))
        for stage, files in {
            "train_baseline": ("splits",),
            "describe_dataset": ("splits",),
            "measure_gradients": ("splits", "checkpoints"),
            "expand_width": ("splits", "checkpoints"),
            "collect": ("config", "metrics"),
            "draw_figure": ("collected",),
            "evaluate_claims": ("config", "collected"),
            "write_manifest": ("config",),
        }.items()
        for file in files
        for kind, share in (("empty", 0.0), ("half a", 0.5))
    },
    "missing splits": ("train_baseline", "splits", Path.unlink, "no such file"),
    "missing checkpoints": ("measure_gradients", "checkpoints", Path.unlink, "no such file"),
    "missing cell": ("collect", "metrics", Path.unlink, "no such file"),
    "missing config": ("collect", "config", Path.unlink, "no such file"),
    "foreign checkpoints": ("measure_gradients", "checkpoints", written(b"\x80\x04" * 50), "not a whole checkpoint"),
    "foreign table": ("draw_figure", "collected", written(b"depth,width\n3,4\n"), "not a whole Parquet table"),
    "text for numbers": (
        "collect", "metrics", with_column("test_loss", lambda column: column.cast(pa.string())),
        "column 'test_loss' holds string, not double",
    ),
    "narrower numbers": (
        "collect", "metrics", with_column("test_loss", lambda column: column.cast(pa.float32())),
        "column 'test_loss' holds float, not double",
    ),
    "nulls": (
        "collect", "metrics", with_column("test_loss", lambda column: pa.nulls(len(column), pa.float64())),
        "column 'test_loss' lacks values",
    ),
    "no column": ("draw_figure", "collected", without_column("test_loss"), "columns ["),
    "another cell's rows": (
        "collect", "metrics", with_column("depth", lambda column: pa.array([7] * len(column))),
        "holds rows of cell planted/resmlp/7/8/200, not of planted/resmlp/2/8/200; delete it",
    ),
    "config of no grid": ("collect", "config", written(b'{"config": {}}'), "not the resolved config of a run"),
}  # fmt: skip


def refused(chain: Chain, stage: str, path: Path, damage: Damage) -> str:
    """The one line that a stage ends with when a file is damaged; it must not change any file. The damage is undone."""
    content = path.read_bytes()
    damage(path)
    before = chain.all_files()
    try:
        line = refusal(stage, chain.arguments[stage])
        assert chain.all_files() == before
    finally:
        path.write_bytes(content)
    return line


@pytest.mark.parametrize("case", STAGES)
def test_files_of_stages(case: str, chain: Chain) -> None:
    """Half a table read as a whole one, or a page of traceback in a log that nobody opens."""
    stage, file, damage, answer = STAGES[case]
    line = refused(chain, stage, chain.files[file], damage)
    assert line.startswith(f"error: {chain.files[file]}: "), line
    assert answer in line


@pytest.mark.parametrize("stage", ["measure_gradients", "expand_width"])
@pytest.mark.parametrize("other", ["wider", "again"])
def test_checkpoints_of_another_cell(stage: str, other: str, chain: Chain) -> None:
    """One checkpoint file copied over another (pythia #203, #195, #108): where the shapes fit too, its gradients would
    stand in the tables under another cell's name."""
    foreign: Cell = getattr(chain, other)
    path = chain.files["checkpoints"]
    line = refused(chain, stage, path, lambda place: shutil.copy(foreign.outputs["checkpoints"], place) and None)
    found = f"planted/resmlp/2/{foreign.params['width']}/{foreign.params['samples']}"
    assert line == f"error: {path}: is of cell {found}, not of cell planted/resmlp/2/8/200; {REMEDY}"


def test_a_table_of_another_kind(chain: Chain) -> None:
    """Learning curves copied to where the metrics belong."""
    path = chain.files["metrics"]
    line = refused(chain, "collect", path, lambda place: shutil.copy(chain.files["curves"], place) and None)
    schema = table_schema("metrics")
    assert line == f"error: {path}: holds table curves version 1, not metrics {schema.version}"


TOO_LARGE = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
from jumpboard.artefacts.job import run_stage
from jumpboard.stages import train_baseline
sys.argv[0] = "train_baseline"
run_stage("train_baseline", train_baseline.body)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit on memory is Linux's")
def test_a_net_that_does_not_fit_into_memory(tmp_path: Path, splits_file: Path) -> None:
    """Allowed by the bounds of the config, but not by this machine."""
    cell = cells_below(tmp_path, splits_file)(width=65536, depth=10)
    done = subprocess.run(
        [sys.executable, "-c", TOO_LARGE, *cell.arguments()], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert done.stderr.startswith("error: out of memory: ")
    assert "accepted: a smaller net" in done.stderr
    assert cell.files() == []


def test_batches_of_one_sample(tmp_path: Path, splits_file: Path) -> None:
    """Batch statistics of one sample: torch's own words come in the middle of a traceback."""
    cell = cells_below(tmp_path, splits_file)("resnet", samples=1)
    assert cell.params["net"]["family"] == "resnet"
    assert SHAPE == (1, 6, 6)
    assert refusal("train_baseline", cell.arguments()) == (
        "error: a batch of 1 sample has no statistics to normalise by; accepted: 2 or more"
    )
