"""What a table or checkpoint file is, in words: schema or members, and where it comes from, down to the data.

Parents are looked for by their SHA-256 below the results folder that the file lies in: the nearest folder above it with
a manifest, or for a figure's table the one that the run has beside its figures.
"""

from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from safetensors import safe_open

from jumpboard.artefacts import paths
from jumpboard.artefacts.files import REMEDY, sha256_of
from jumpboard.artefacts.verification import printable, read_manifest, refusal
from jumpboard.audit.lineage import read_provenance
from jumpboard.audit.run import WITH_HEADER, kind_of
from jumpboard.errors import InputError

MOST_SHOWN = 4


def inspect(path: Path) -> str:
    """The text about a file. Raises InputError for one that jumpboard did not write, or that is damaged."""
    reason = _unopened(path)
    if reason:
        raise InputError(f"{path}: {reason}; accepted: a {' or '.join(WITH_HEADER)} file of a run")
    try:
        header = read_provenance(path)
    except InputError as error:  # whose file it is, nobody knows: it is not to be deleted
        raise InputError(str(error).removesuffix(f"; {REMEDY}")) from None
    shape = _checkpoints(path, header) if path.suffix == ".safetensors" else _table(path)
    facts = {
        "file": str(path),
        "schema": f"{header['schema']} version {header['version']}",
        "sha256": sha256_of(path),
        "code": header["code"],
        "config": header["config"],
        "seeds": ", ".join(map(str, header["seeds"])) or "none",
        "computed": f"on {header['device']} with {header['threads']} threads, determinism tier {header['tier']}",
        "versions": ", ".join(f"{name} {version}" for name, version in header["versions"].items()),
    }
    root = results_of(path)
    where = f"provenance, below {printable(str(root))}" if root else "provenance (no manifest above: parents by digest)"
    chain = list(_chain(header["parents"], root))
    lines = [
        *(f"{name:<10}{printable(value)}" for name, value in facts.items()),
        "",
        *shape,
        "",
        where,
        *(chain or ["  none: the data themselves"]),
    ]
    return "\n".join(lines)


def _unopened(path: Path) -> str:
    """Why a file is not opened: pipes and devices might hang."""
    if not path.exists():
        return "no such file"
    if not path.is_file():
        return "not a regular file"
    return "" if path.suffix in WITH_HEADER else "not a table or checkpoint file"


def results_of(path: Path) -> Path | None:
    """The results folder of the run that a file belongs to."""
    for folder in path.absolute().parents:
        for root in (folder, folder.parent / "results", folder.parent.parent / "results" / folder.name):
            if (root / paths.MANIFEST).is_file():
                return root
    return None


def _table(path: Path) -> Iterator[str]:
    with pq.ParquetFile(path) as file:
        schema, rows = file.schema_arrow, file.metadata.num_rows
    yield f"{rows} rows"
    names, types, units = (max(map(len, column), default=0) for column in zip(*_columns(schema), strict=True))
    for (name, kind, unit), field in zip(_columns(schema), schema, strict=True):
        null = "" if not field.nullable else " (may lack values)"
        meaning = _text(field.metadata, b"description")
        yield f"  {name:<{names}}  {kind:<{types}}  {unit:<{units}}  {meaning}{null}"


def _columns(schema: Any) -> list[tuple[str, str, str]]:
    return [(printable(one.name), str(one.type), _text(one.metadata, b"unit")) for one in schema]


def _text(metadata: Mapping[bytes, bytes] | None, name: bytes) -> str:
    return printable((metadata or {}).get(name, b"-").decode(errors="replace"))


def _checkpoints(path: Path, header: Mapping[str, Any]) -> Iterator[str]:
    records = header["checkpoints"]
    with safe_open(path, framework="numpy") as handle:
        names = handle.keys()
        stored = {name: handle.get_slice(name) for name in names}
        yield f"{len(records)} members"
        for name, record in sorted(records.items(), key=lambda one: (one[0].split("/")[0], one[1]["step"], one[0])):
            leaves = [part for full, part in stored.items() if full.startswith(f"{name}/")]
            size = sum(prod(part.get_shape()) for part in leaves)
            facts = f"step {record['step']:<6} {len(leaves)} leaves, {size:>8} numbers"
            yield f"  {printable(name):<24} {facts}  {record['sha256'][:12]}, from {record['parent'][:12]}"
        first = min(records, default="")
        yield from ("", f"leaves of {printable(first)}") if records else ()
        for full, part in stored.items():
            if full.startswith(f"{first}/"):
                yield f"  {printable(full.removeprefix(f'{first}/')):<24} {part.get_dtype():<5} {part.get_shape()}"


def _chain(parents: Mapping[str, str], root: Path | None) -> Iterator[str]:
    """The parents of a file, then theirs, level by level down to files without any; each file once, by kind."""
    listed = read_manifest(root / paths.MANIFEST).get("results", {}) if root else {}
    places = {entry["sha256"]: name for name, entry in listed.items()}
    told: set[str] = set()
    level, depth = dict(parents), 1
    while level:
        kinds: dict[str, list[str]] = {}
        further: dict[str, str] = {}
        for name, digest in level.items():
            place = places.get(digest)
            at_hand = root is not None and place is not None and not refusal(root, place)
            state = "" if at_hand else ", not in the manifest" if place is None else ", not at hand"
            kinds.setdefault(kind_of(name), []).append(f"{printable(place or name)}  {printable(digest[:12])}{state}")
            if root is not None and place is not None and at_hand and place.endswith(WITH_HEADER):
                further |= read_provenance(root / place)["parents"]
        told |= set(level.values())
        for found in kinds.values():
            yield from (f"{'  ' * depth}{one}" for one in found[:MOST_SHOWN])
            yield from (f"{'  ' * depth}and {len(found) - MOST_SHOWN} more",) if len(found) > MOST_SHOWN else ()
        level, depth = {name: digest for name, digest in further.items() if digest not in told}, depth + 1
