"""Checkpoints: the tensors of each are those of its record, and each descends from what its file says.

A seed's first checkpoints descend from outside the file: from the same seed's reference in the checkpoint file that the
header names as a parent, else from the file of weights, else from the data. Every later one descends from the last one
at an earlier step. The same tensors may stand twice only where nothing was trained between, or as siblings of one seed:
anything else is a copy, and both are named.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from safetensors import safe_open

from jumpboard.artefacts import paths
from jumpboard.artefacts.checkpoints import member_digest, parent_of, read_checkpoint_header
from jumpboard.artefacts.tables import read_table
from jumpboard.artefacts.verification import Fault
from jumpboard.audit.lineage import is_outside
from jumpboard.audit.run import Run
from jumpboard.configuration.grid import Cell
from jumpboard.configuration.load import kept_checkpoints
from jumpboard.configuration.plan import Artefact
from jumpboard.schemas.metrics import METRICS

Pairs = set[tuple[int, str]]
"""(seed, checkpoint)"""


def split_name(name: str) -> tuple[int, str]:
    """`seed_<s>/<checkpoint>` -> (s, checkpoint). Raises ValueError for any other name."""
    seed, _, checkpoint = name.partition("/")
    if not seed.startswith("seed_") or not checkpoint:
        raise ValueError(f"'{name}' is not seed_<s>/<checkpoint>")
    return int(seed.removeprefix("seed_")), checkpoint


def kept(run: Run, cell: Cell) -> tuple[Pairs, Pairs]:
    """Checkpoints of a cell's trained nets that there must be, and that there can be.

    By the file where it is at hand. Else a net that was trained to the end has all that do not depend on its loss.
    """
    keys = cell.as_json()
    name = paths.filled(paths.cell_checkpoints("train_baseline"), keys)
    if name not in run.folders.not_shipped:
        found = set(map(split_name, read_checkpoint_header(run.result(name))["checkpoints"]))
        return found, found
    return due(run, cell)


def due(run: Run, cell: Cell) -> tuple[Pairs, Pairs]:
    """The same from the recipe and from which seeds were trained to the end."""
    metrics = run.result(paths.filled(paths.cell_table("train_baseline", "metrics"), cell.as_json()))
    rows = read_table(metrics, METRICS).to_pylist()
    trained = set(cell.seeds) - {row["seed"] for row in rows if row["status"] != "trained"}
    recipe = kept_checkpoints(run.configuration.config["trainings"][cell.training])
    certain = {(seed, name) for seed in trained for name in recipe if not name.startswith("loss_")}
    certain |= {(seed, "init") for seed in cell.seeds}
    return certain, {(seed, name) for seed in cell.seeds for name in recipe}


def record_fault(run: Run, one: Artefact) -> str:
    """What is wrong with a checkpoint file in itself or against its parents; empty where nothing is."""
    path, cell = run.path(one), run.plan.cell(one.keys)
    header = read_checkpoint_header(path)
    records: dict[str, Any] = header["checkpoints"]
    strange = [name for name in records if split_name(name)[0] not in cell.seeds]
    if strange:
        return f"holds {strange[0]}, a seed that the cell does not have"
    if one.rule == "train_baseline":
        (certain, possible), there = due(run, cell), set(map(split_name, records))
        for seed, name in sorted((certain - there) | (there - possible)):
            return f"{'lacks' if (seed, name) in certain else 'should not hold'} seed_{seed}/{name}"
    return _tensor_fault(path, records) or _parent_fault(run, one, header)


def _tensor_fault(path: Path, records: Mapping[str, Any]) -> str:
    with safe_open(path, framework="numpy") as handle:
        leaves: dict[str, dict[str, Any]] = {name: {} for name in records}
        stored = handle.keys()
        for full in stored:
            owner = max((name for name in records if full.startswith(f"{name}/")), key=len, default=None)
            if owner is None:
                return f"holds the tensor {full} of no recorded checkpoint"
            leaves[owner][full.removeprefix(f"{owner}/")] = handle.get_slice(full)
        shapes: dict[str, tuple[str, Any]] = {}
        for name, slices in leaves.items():
            shape = {leaf: tuple(part.get_shape()) for leaf, part in slices.items()}
            fellow, wanted = shapes.setdefault(split_name(name)[1], (name, shape))
            if shape != wanted:
                return f"{name} and {fellow} are nets of different leaves"
            if member_digest({leaf: part[:] for leaf, part in slices.items()}) != records[name]["sha256"]:
                return f"the tensors of {name} are not those of its record"
    return ""


def _parent_fault(run: Run, one: Artefact, header: Mapping[str, Any]) -> str:
    records = header["checkpoints"]
    lines: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for name, record in records.items():
        lines[split_name(name)[0]].append((record["step"], record["sha256"]))
    for name, record in records.items():
        seed = split_name(name)[0]
        earlier = parent_of(record["step"], lines[seed])
        accepted = {earlier} if earlier else _ancestors(run, one, header["parents"], seed)
        if record["parent"] not in accepted:
            whose = "the checkpoint before it" if earlier else "what the file descends from"
            return f"{name} does not descend from {whose}: parent {record['parent'][:12]}"
    return ""


def _ancestors(run: Run, one: Artefact, parents: Mapping[str, str], seed: int) -> set[str]:
    """Digests that a seed's first checkpoint may descend from."""
    found: set[str] = set()
    reference = run.plan.params(one.rule, one.keys).get("expansion", {}).get("reference")
    for name in parents:
        if name.endswith(".safetensors") and not is_outside(run, one, name):
            records = read_checkpoint_header(run.result(name))["checkpoints"]
            members = {split_name(member): record["sha256"] for member, record in records.items()}
            found |= {sha for (own, moment), sha in members.items() if own == seed and reference in (None, moment)}
    outside = {digest for name, digest in parents.items() if is_outside(run, one, name)}
    return found or outside or set(parents.values())


def copies(run: Run, failed: Mapping[str, str]) -> Iterator[Fault]:
    """Trained checkpoints that stand in two places; of each pair both files are named."""
    seen: dict[str, tuple[Artefact, str]] = {}
    for one in run.at_hand((".safetensors",)):
        if str(run.path(one)) in failed:
            continue
        for name, record in read_checkpoint_header(run.path(one))["checkpoints"].items():
            if record["step"] == 0 or record["sha256"] == record["parent"]:
                continue
            other, its = seen.setdefault(record["sha256"], (one, name))
            if (other.path, split_name(its)[0]) != (one.path, split_name(name)[0]):
                yield Fault(str(run.path(one)), f"{name} holds the tensors of {its} in {other.path}")
                yield Fault(str(run.path(other)), f"{its} holds the tensors of {name} in {one.path}")
