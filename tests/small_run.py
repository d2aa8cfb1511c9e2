"""A whole small run, every rule of the pipeline in this process; and a forger who covers the tracks of a change."""

import importlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from matplotlib.figure import Figure
from safetensors import safe_open
from safetensors.numpy import save_file

from jumpboard.artefacts import paths
from jumpboard.artefacts.files import sha256_of
from jumpboard.artefacts.job import run_stage, write_json
from jumpboard.artefacts.tables import METADATA_KEY, write_parquet
from jumpboard.artefacts.verification import stored_header
from jumpboard.configuration.load import load, merged, read_yaml, resolve
from jumpboard.configuration.plan import COLLECTED, Artefact, Plan, table_place
from jumpboard.configuration.selection import SECTIONS
from jumpboard.figures.registry import figure_entry, figure_module
from jumpboard.stages.evaluate_claims import TABLES
from jumpboard.stages.write_manifest import entry
from test_workflow import ORIGIN, ROOT, SHORT

RESULTS, FIGURES_FOLDER = Path("run/results"), Path("run/figures")
NET = {"dataset": "mnist1d", "arch": "resmlp"}
GROWN = {**NET, "only": {"depth": [2], "width": [4]}, "reference": "final", "training": "resmlp"}
STEPS = {"lowest": 0.01, "highest": 0.1, "count": 2}
SMALL: dict[str, Any] = {
    "results": str(RESULTS),
    "figures": str(FIGURES_FOLDER),
    "device": "cpu",
    "trainings": {"resmlp": SHORT | {"checkpoints": {"steps": [2], "losses": [1.0]}}},
    "grid": [
        {
            **NET, "training": "resmlp", "seeds": [0, 1, 2],
            "product": {"depth": [1, 2, 4], "width": [4, 8, 16], "samples": [200]},
        },
    ],
    "measurements": [
        {
            **NET, "only": {"width": [4]}, "checkpoints": ["init", "loss_1", "final"], "blocks": 3,
            "splits": {"test": 60, "fresh": 60}, "pool": 20, "permutations": 1, "heat_maps": [0.5],
        },
    ],
    "expansions": [
        {
            **GROWN, "scratch": [1], "splits": {"train": 60, "test": 60, "fresh": 60}, "steps": STEPS,
            "keep_nets": True,
        },
    ],
    "widenings": [{**GROWN, "splits": {"test": 60}, "factor": 2}],
    "chains": [
        {
            **GROWN, "reference": "best_validation", "splits": {"train": 200, "test": 60, "fresh": 60},
            "steps": STEPS, "site": 0.5, "length": 2,
        },
    ],
    "certificates": [{**NET, "only": {"depth": [2], "width": [4]}, "losses": ["brier"], "delta": 0.05}],
    "fits": [{**NET, "checkpoints": ["final"], "resamples": 20, "permutations": 1}],
}  # fmt: skip
INVENTORY = {
    "mnist1d": {
        **ORIGIN, "loader": "mnist1d", "shape": [40], "classes": 10, "seed": 2,
        "splits": {"train": 300, "validation": 100, "test": 100}, "fresh": {"seed": 3, "samples": 60},
    },
}  # fmt: skip
INPUTS: dict[str, Callable[[Plan, Mapping[str, Any]], dict[str, str]]] = {
    "prepare_dataset": lambda plan, keys: {},
    "describe_dataset": lambda plan, keys: {"splits": _splits(keys)},
    "prepare_fresh": lambda plan, keys: {"base": _splits(keys)},
    "train_baseline": lambda plan, keys: {"splits": _splits(keys)},
    "collect": lambda plan, keys: {"config": paths.CONFIG},
    "fit_power_law": lambda plan, keys: {
        **{name: _read(name, keys) for name in ("metrics", "chain") if plan.cells(COLLECTED[name])},
        "card": _card(keys),
    },
    "draw_figure": lambda plan, keys: {"table": _read(figure_entry(keys["figure"]).table, keys)},
    "evaluate_claims": lambda plan, keys: {
        "config": paths.CONFIG,
        **{f"{schema.name}_0": _read(schema.name, NET) for schema, _ in TABLES if plan.nets_of(schema.name)},
    },
}


def _splits(keys: Mapping[str, Any]) -> str:
    return paths.filled(paths.dataset_table("prepare_dataset", "splits"), keys)


def _card(keys: Mapping[str, Any]) -> str:
    return paths.filled(paths.dataset_table("describe_dataset", "card"), keys)


def _read(table: str, keys: Mapping[str, Any]) -> str:
    """Where figures, fits and claims read a table from."""
    return paths.filled(table_place(table), {**keys, "table": table})


def _inputs(plan: Plan, rule: str, keys: Mapping[str, Any]) -> dict[str, Path]:
    if rule == "resolve_config":
        return {"datasets": Path("inventory.yaml"), "claims": ROOT / "config" / "claims.yaml"}
    if rule in SECTIONS:
        found = {"base": _splits(keys), "checkpoints": paths.filled(paths.cell_checkpoints("train_baseline"), keys)}
        if "fresh" in plan.asked(rule, plan.cell(keys)):
            found["fresh"] = paths.filled(paths.dataset_table("prepare_fresh", "rows"), keys)
        if rule == "certify":
            expanded = paths.filled(paths.cell_checkpoints("expand_depth"), keys)
            found |= {"card": _card(keys), "expanded": expanded}
    else:
        found = INPUTS[rule](plan, keys)
    return {name: RESULTS / path for name, path in found.items()}


def _output_name(one: Artefact) -> str:
    table = Path(one.path).parts[1] if "/" in one.path else one.path
    if one.rule == "draw_figure":
        return "table" if one.path.endswith("parquet") else Path(one.path).suffix[1:]
    if one.rule in ("resolve_config", "evaluate_claims"):
        return {"resolve_config": "config", "evaluate_claims": "claims"}[one.rule]
    return "table" if one.rule == "collect" else "checkpoints" if one.path.endswith("safetensors") else table


def _call(
    rule: str, root: Path, params: Any, code: str, inputs: Mapping[str, Path], outputs: Mapping[str, Path]
) -> None:
    options = ["--root", str(root), "--params", json.dumps(params), "--code", code, "--threads", "1", "--inputs"]
    options += [f"{name}={path}" for name, path in inputs.items()]
    sys.argv = [rule, *options, "--outputs", *(f"{name}={path}" for name, path in outputs.items())]
    body = importlib.import_module(f"jumpboard.stages.{rule}").body
    run_stage(rule, body, recorded=rule != "write_manifest")


def make(place: Path, overlay: Mapping[str, Any] = {}) -> None:
    """Run all jobs of the config below `place`."""
    with inside(place):
        Path("inventory.yaml").write_text(yaml.safe_dump(INVENTORY), encoding="utf-8")
        config = merged(merged(read_yaml(ROOT / "config" / "config.yaml"), SMALL), overlay)
        plan = Plan(load(config | {"datasets": str(place / "inventory.yaml")}))
        jobs: dict[tuple[Any, ...], list[Artefact]] = {}
        for one in plan.artefacts():
            jobs.setdefault((one.rule, *one.keys.items()), []).append(one)
        for files in jobs.values():
            rule, keys = files[0].rule, files[0].keys
            outputs = {_output_name(one): Path(config[one.place], one.path) for one in files}
            with plain_pictures(keys) if rule == "draw_figure" else nullcontext():
                _call(rule, RESULTS, plan.params(rule, keys), plan.code(rule, keys), _inputs(plan, rule, keys), outputs)
        write_manifests(plan, RESULTS)


@contextmanager
def plain_pictures(keys: Mapping[str, Any]) -> Iterator[None]:
    """Pictures that hold the figure's name and are soon drawn; what they show is no concern of an audit."""
    picture = Figure(figsize=(1, 1))
    picture.text(0, 0.5, keys["figure"])
    with patch.object(figure_module(keys["figure"]), "draw", lambda rows: picture):
        yield


def write_manifests(plan: Plan, results: Path) -> None:
    """Both manifests, as the run's last rule writes them, from the folder that the run lies in."""
    outputs = {"manifest": results / paths.MANIFEST, "records": results / paths.RECORDS / paths.MANIFEST}
    _call("write_manifest", results, {}, "c0de", {"config": results / paths.CONFIG}, outputs)


@contextmanager
def inside(place: Path) -> Iterator[None]:
    """In another folder, and with the command line as it was afterwards."""
    before, arguments = Path.cwd(), sys.argv
    os.chdir(place)
    try:
        yield
    finally:
        os.chdir(before)
        sys.argv = arguments


def plan_of(place: Path) -> Plan:
    """The plan of the run below `place`."""
    resolved = json.loads((place / RESULTS / paths.CONFIG).read_text(encoding="utf-8"))
    return Plan(resolve(resolved["config"], resolved["datasets"], resolved["claims"]))


def rehash(place: Path) -> None:
    """Make both manifests fit the files as they are."""
    results = place / RESULTS
    listed = json.loads((results / paths.MANIFEST).read_text(encoding="utf-8"))
    roots = {"results": results, "figures": place / FIGURES_FOLDER}
    for root, files in ((roots[name], files) for name, files in listed.items()):
        files.update({name: entry(root / name) for name in files})
    write_json(results / paths.MANIFEST, listed)
    records = json.loads((results / paths.RECORDS / paths.MANIFEST).read_text(encoding="utf-8"))
    records["results"] = {name: entry(results / name) for name in records["results"]}
    write_json(results / paths.RECORDS / paths.MANIFEST, records)


def forge(place: Path) -> None:
    """Cover the tracks of a change: every parent digest of every header is made to fit, then the manifests."""
    results = place / RESULTS
    for one in plan_of(place).artefacts():
        path = place / (RESULTS if one.place == "results" else FIGURES_FOLDER) / one.path
        if path.suffix in (".parquet", ".safetensors"):
            header = stored_header(path)
            fitting = {name: sha256_of(results / name) for name in header["parents"]}
            if fitting != header["parents"]:
                with_header(path, lambda old, new=fitting: {**old, "parents": new})
    rehash(place)


def with_header(path: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Write a table or checkpoint file again with another header."""
    header = change(stored_header(path))
    if path.suffix == ".parquet":
        write_parquet(path, pq.ParquetFile(path).read(), header)
        return
    with safe_open(path, framework="numpy") as handle:
        names = handle.keys()
        tensors = {name: handle.get_tensor(name) for name in names}
    save_file(tensors, path, {METADATA_KEY.decode(): json.dumps(header, sort_keys=True)})


def with_rows(path: Path, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
    """Write a table again with other rows and its old header."""
    table, header = pq.ParquetFile(path).read(), stored_header(path)
    write_parquet(path, pa.Table.from_pylist(change(table.to_pylist()), schema=table.schema), header)


def collected_from(place: Path, table: str) -> None:
    """Write a collected table again from its cells' tables as they are."""
    plan, results = plan_of(place), place / RESULTS
    cells = [cell.as_json() for cell in plan.cells(COLLECTED[table])]
    files = [results / paths.filled(paths.cell_table(COLLECTED[table], table), cell) for cell in cells]
    rows = [row for path in files for row in pq.ParquetFile(path).read().to_pylist()]
    keys = ("dataset", "arch", "depth", "width", "samples", "seed", "checkpoint")
    ordered = sorted(rows, key=lambda row: tuple(row[name] for name in keys))
    with_rows(results / _read(table, NET), lambda old: ordered)
