"""Checkpoints: the tensors of each are those of its record, and each descends from what its file says.

A seed's first checkpoints descend from outside the file: from the same seed's reference in the checkpoint file that the
header names as a parent, else from the file of weights, else from the data. Every later one descends from the last one
at an earlier step, but for the nets of an expansion in depth, which all descend from the reference. The same tensors
may stand twice only where nothing was trained between, or as siblings of one seed: anything else is a copy, and both
are named. An expanded net of step 0 holds every tensor of its reference.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from safetensors import safe_open

from jumpboard.artefacts import paths
from jumpboard.artefacts.checkpoints import member_digest, parent_of, read_checkpoint_header
from jumpboard.artefacts.verification import Fault
from jumpboard.audit.lineage import is_outside
from jumpboard.audit.members import DUE, split_name
from jumpboard.audit.run import Run
from jumpboard.configuration.plan import Artefact


def record_fault(run: Run, one: Artefact) -> str:
    """What is wrong with a checkpoint file in itself or against its parents; empty where nothing is."""
    path, cell = run.path(one), run.plan.cell(one.keys)
    header = read_checkpoint_header(path)
    records: dict[str, Any] = header["checkpoints"]
    strange = [name for name in records if split_name(name)[0] not in cell.seeds]
    if strange:
        return f"holds {strange[0]}, a seed that the cell does not have"
    if one.rule in DUE:
        (certain, possible), there = DUE[one.rule](run, cell), set(map(split_name, records))
        for seed, name in sorted((certain - there) | (there - possible)):
            return f"{'lacks' if (seed, name) in certain else 'should not hold'} seed_{seed}/{name}"
    return _tensor_fault(path, records) or _parent_fault(run, one, header) or _beginning_fault(run, one, records)


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
        earlier = parent_of(record["step"], lines[seed]) if one.rule != "expand_depth" else None
        accepted = {earlier} if earlier else _ancestors(run, one, header["parents"], seed)
        if record["parent"] not in accepted:
            whose = "the checkpoint before it" if earlier else "what the file descends from"
            return f"{name} does not descend from {whose}: parent {record['parent'][:12]}"
    return ""


def _beginning_fault(run: Run, one: Artefact, records: Mapping[str, Any]) -> str:
    reference = _reference(run, one)
    if reference is None:
        return ""
    begun = [name for name, record in records.items() if record["step"] == 0]
    trained = run.result(paths.filled(paths.cell_checkpoints("train_baseline"), one.keys))
    with safe_open(trained, framework="numpy") as old, safe_open(run.path(one), framework="numpy") as new:
        stored = old.keys()
        for name in begun:
            whole = f"seed_{split_name(name)[0]}/{reference}"
            for leaf in (full.removeprefix(whole) for full in stored if full.startswith(f"{whole}/")):
                if old.get_tensor(whole + leaf).tobytes() != new.get_tensor(name + leaf).tobytes():
                    return f"{name} does not hold the tensors of {whole}, at which it begins"
    return ""


def _ancestors(run: Run, one: Artefact, parents: Mapping[str, str], seed: int) -> set[str]:
    """Digests that a seed's first checkpoint may descend from."""
    found: set[str] = set()
    reference = _reference(run, one)
    for name in parents:
        if name.endswith(".safetensors") and not is_outside(run, one, name):
            records = read_checkpoint_header(run.result(name))["checkpoints"]
            members = {split_name(member): record["sha256"] for member, record in records.items()}
            found |= {sha for (own, moment), sha in members.items() if own == seed and reference in (None, moment)}
    outside = {digest for name, digest in parents.items() if is_outside(run, one, name)}
    return found or outside or set(parents.values())


def _reference(run: Run, one: Artefact) -> str | None:
    """The checkpoint that a rule expands, if it expands any."""
    reference: str | None = run.plan.params(one.rule, one.keys).get("expansion", {}).get("reference")
    return reference


def copies(run: Run, failed: Mapping[str, str]) -> Iterator[Fault]:
    """Trained checkpoints that stand in two places; of each pair both files are named. Siblings of one seed are none:
    those of one training, and what two expansions made of one net, which may be the same step from it."""
    seen: dict[str, tuple[Artefact, str, tuple[int, str]]] = {}
    for one in run.at_hand((".safetensors",)):
        if str(run.path(one)) in failed:
            continue
        reference = _reference(run, one)
        for name, record in read_checkpoint_header(run.path(one))["checkpoints"].items():
            initial = record["step"] == 0 and reference in (None, "init")
            if initial or record["sha256"] == record["parent"]:
                continue
            siblings = split_name(name)[0], record["parent"] if reference else one.path
            other, its, theirs = seen.setdefault(record["sha256"], (one, name, siblings))
            if theirs != siblings:
                yield Fault(str(run.path(one)), f"{name} holds the tensors of {its} in {other.path}")
                yield Fault(str(run.path(other)), f"{its} holds the tensors of {name} in {one.path}")
