"""Checkpoint files: all seeds and moments of a cell in one safetensors file whose header carries their ancestry.

Tensors are named `seed_<s>/<checkpoint>/<leaf>`. The header holds ONE metadata key, `jumpboard`, with sorted JSON
(several keys would be written in random order): the provenance with the cell, and for each `seed_<s>/<checkpoint>` its
step, the SHA-256 of its tensors and that of its parent: the last checkpoint of the same seed at an earlier step, or
else what came before this file: the checkpoint that is expanded, the file of weights that training began with, or the
data set's file. Checkpoints of one seed and step are siblings, and so are all of a seed in a file of expanded nets.
"""

import errno
import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from jumpboard.artefacts.files import REMEDY, replacing
from jumpboard.artefacts.paths import CELL_KEYS
from jumpboard.artefacts.provenance import Provenance
from jumpboard.errors import InputError

Member = Mapping[str, np.ndarray]
RECORD = (("step", int), ("sha256", str), ("parent", str))


def member_digest(leaves: Member) -> str:
    """SHA-256 over names, types, shapes and bytes of one member's leaves, in the order of the names."""
    digest = hashlib.sha256()
    for name in sorted(leaves):
        leaf = np.asarray(leaves[name], order="C")
        digest.update(f"{name} {leaf.dtype} {leaf.shape}\n".encode())
        digest.update(leaf.tobytes())
    return digest.hexdigest()


def parent_of(step: int, line: Iterable[tuple[int, str]]) -> str | None:
    """The digest of the last of a seed's checkpoints (step, digest) at an earlier step; None where there is none."""
    return max((one for one in line if one[0] < step), default=(0, None))[1]


def write_checkpoints(
    path: Path,
    members: Mapping[tuple[int, str], tuple[int, Member]],
    ancestor: str | Mapping[int, str],
    provenance: Provenance,
    chained: bool = True,
) -> None:
    """Write `members`, (seed, checkpoint) -> (step, leaves); the bytes do not depend on the order of the mapping.

    `ancestor` is the digest that the first checkpoints of every seed descend from, or one by seed; all of them do where
    they are not `chained`.
    """
    digests = {key: member_digest(leaves) for key, (_, leaves) in members.items()}
    lines: dict[int, list[tuple[int, str]]] = {}
    for (seed, checkpoint), (step, _) in members.items():
        lines.setdefault(seed, []).append((step, digests[seed, checkpoint]))
    records: dict[str, dict[str, Any]] = {}
    for (seed, checkpoint), (step, _) in members.items():
        first = ancestor if isinstance(ancestor, str) else ancestor[seed]
        parent = (parent_of(step, lines[seed]) if chained else None) or first
        records[f"seed_{seed}/{checkpoint}"] = {"step": step, "sha256": digests[seed, checkpoint], "parent": parent}
    header = {"schema": "checkpoints", "version": 1, "checkpoints": records, **provenance.as_json()}
    tensors = {
        f"seed_{seed}/{checkpoint}/{name}": np.asarray(leaf, order="C")
        for (seed, checkpoint), (_, leaves) in members.items()
        for name, leaf in leaves.items()
    }
    with replacing(path) as temporary:
        try:
            save_file(tensors, temporary, {"jumpboard": json.dumps(header, sort_keys=True)})
        except SafetensorError as error:
            raise OSError(errno.EIO, str(error), str(path)) from None


def read_checkpoint_header(path: Path, cell: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The header of a checkpoint file. Raises InputError for any other file, and for one of another `cell`."""
    try:
        with safe_open(path, framework="numpy") as handle:
            header = json.loads(handle.metadata()["jumpboard"])
        whole = all(isinstance(record[key], kind) for record in header["checkpoints"].values() for key, kind in RECORD)
        if (header["schema"], header["version"]) != ("checkpoints", 1) or not whole:
            raise ValueError
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (SafetensorError, OSError, TypeError, KeyError, ValueError, AttributeError, RecursionError):
        raise InputError(f"{path}: not a whole checkpoint file written by jumpboard; {REMEDY}") from None
    if cell is not None and header.get("cell") != cell:
        raise InputError(f"{path}: is of {_named(header.get('cell'))}, not of {_named(cell)}; {REMEDY}")
    return dict(header)


def _named(cell: Mapping[str, Any] | None) -> str:
    return f"cell {'/'.join(str(cell.get(name)) for name in CELL_KEYS)}" if cell else "no cell"


def read_member(path: Path, seed: int, checkpoint: str) -> dict[str, np.ndarray]:
    """One member's leaves, checked against their digest.

    Raises InputError where the file lacks the member, naming what it has, or where its bytes differ from the record.
    """
    records = read_checkpoint_header(path)["checkpoints"]
    name = f"seed_{seed}/{checkpoint}"
    if name not in records:
        raise InputError(f"{path}: has no checkpoint '{name}'; it has {', '.join(sorted(records))}")
    with safe_open(path, framework="numpy") as handle:
        prefix = f"{name}/"
        stored = handle.keys()
        leaves = {key[len(prefix) :]: handle.get_tensor(key) for key in stored if key.startswith(prefix)}
    if member_digest(leaves) != records[name]["sha256"]:
        raise InputError(f"{path}: the tensors of '{name}' are not those of its record; {REMEDY}")
    return leaves
