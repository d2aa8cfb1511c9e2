"""Does a run hold together? Its files against its manifests, and their digests against those of a code and config.

Pure reading: nothing is changed, no torch is imported, and Snakemake's own records are not needed. Manifests are not
trusted: a name that leads out of its folder, a link to elsewhere, a folder or a pipe is refused before it is opened.
"""

import json
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from jumpboard.artefacts import paths
from jumpboard.artefacts.checkpoints import read_checkpoint_header
from jumpboard.artefacts.files import REMEDY, sha256_of
from jumpboard.artefacts.job import json_text
from jumpboard.artefacts.tables import read_header
from jumpboard.errors import InputError

PLACES = {"results", "figures"}
NOT_SHIPPED = ("checkpoints/", "prepare_dataset/splits/", "prepare_fresh/rows/")
"""What a released run leaves out."""
MISSING, DIFFERS = "listed but missing", "differs from its manifest entry"


class Fault(NamedTuple):
    """One thing that is wrong, in words."""

    file: str
    reason: str


def printable(text: str) -> str:
    """Text of unknown origin as one line that a terminal can show."""
    return text if text.isprintable() else text.encode("unicode_escape").decode()


def refusal(root: Path, name: str) -> str:
    """Why the file `name` below `root` is not opened; empty for a regular file that lies there."""
    pure = PurePosixPath(name)
    if pure.is_absolute() or ".." in pure.parts or pure.as_posix() != name:
        return "listed, but not the path of a file below the folder"
    try:
        real = (root / name).resolve(strict=True)
        regular = stat.S_ISREG(os.stat(real).st_mode)
        inside = real.is_relative_to(root.resolve())
    except (FileNotFoundError, NotADirectoryError):
        return MISSING
    except (OSError, ValueError, RuntimeError) as error:
        return f"cannot be read: {type(error).__name__}"
    if not inside:
        return "a link that leads out of the folder"
    return "" if regular else "not a regular file"


def read_json(path: Path) -> Any:
    """The value of a JSON file that was written here. Raises InputError where it is not there or not whole."""
    reason = refusal(path.parent, path.name)
    if reason == MISSING:
        raise InputError(f"{path}: no such file; accepted: the results folder of a finished run")
    if reason:
        raise InputError(f"{path}: {reason}")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        raise InputError(f"{path}: not a whole JSON file; {REMEDY}") from None


def read_manifest(path: Path) -> dict[str, dict[str, Any]]:
    """A manifest: place -> path -> {sha256, bytes}. Raises InputError for a missing or damaged one, and for one whose
    text is not the one that is written for its value."""
    manifest = read_json(path)
    try:
        entries = [entry for listed in manifest.values() for entry in listed.values()]
        whole = all(isinstance(one["sha256"], str) and isinstance(one["bytes"], int) for one in entries)
        if not whole or not set(manifest) <= PLACES or path.read_text(encoding="utf-8") != json_text(manifest):
            raise ValueError
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(f"{path}: not a whole manifest; {REMEDY}") from None
    return dict(manifest)


def read_config(path: Path) -> dict[str, Any]:
    """A run's `config.json`: config, datasets, claims. Raises InputError for a missing or damaged one."""
    resolved = read_json(path)
    try:
        if not all(isinstance(resolved[name], dict) for name in ("config", "datasets", "claims")):
            raise ValueError
        if not isinstance(resolved["config"]["grid"], list):
            raise ValueError
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path}: not the resolved config of a run; {REMEDY}") from None
    return dict(resolved)


def entry_fault(root: Path, name: str, entry: Mapping[str, Any]) -> str:
    """What is wrong with a listed file; empty where its bytes are those of its entry."""
    reason = refusal(root, name)
    if reason:
        return reason
    try:
        same = (root / name).stat().st_size == entry["bytes"] and sha256_of(root / name) == entry["sha256"]
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return "" if same else DIFFERS


def manifest_faults(manifest: Path, places: Mapping[str, Path]) -> Iterator[Fault]:
    """Re-hash every file that a manifest lists below the given places."""
    for place, listed in read_manifest(manifest).items():
        for name, entry in listed.items():
            reason = entry_fault(places[place], name, entry)
            if reason:
                yield Fault(printable(str(places[place] / name)), reason)


def run_faults(places: Mapping[str, Path]) -> Iterator[Fault]:
    """Re-hash all that both manifests of a run list; the second one covers the first."""
    results = places["results"]
    for manifest in (results / paths.RECORDS / paths.MANIFEST, results / paths.MANIFEST):
        yield from manifest_faults(manifest, places)


def check_whole(results: Path, figures: Path) -> None:
    """Raise InputError, naming the first file, for a run that differs from what its manifests list."""
    damaged = next(run_faults({"results": results, "figures": figures}), None)
    if damaged is not None:
        raise InputError(f"{damaged.file}: {damaged.reason}; the run must be whole to be shown")


def stored_header(path: Path) -> dict[str, Any]:
    """The header of a table or checkpoint file. Raises InputError for any other file."""
    return read_checkpoint_header(path) if path.suffix == ".safetensors" else read_header(path)


def stored_digests(path: Path) -> tuple[str, str]:
    """Code and config digest in the header of a table or checkpoint file."""
    header = stored_header(path)
    return header["code"], header["config"]


def digest_faults(expected: Mapping[Path, tuple[str, str]]) -> Iterator[Fault]:
    """Hold the stored code and config digests of files against the expected ones."""
    for path, wanted in expected.items():
        found = stored_digests(path)
        for kind, one, other in zip(("code", "config"), found, wanted, strict=True):
            if one != other:
                yield Fault(str(path), f"made with another {kind}: digest {one[:12]}, now {other[:12]}")
