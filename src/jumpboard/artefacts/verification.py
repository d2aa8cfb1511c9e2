"""Does a run hold together? Its files against its manifests, and their digests against those of a code and config.

Pure reading: nothing is changed, no torch is imported, and Snakemake's own records are not needed.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from jumpboard.artefacts import paths
from jumpboard.artefacts.checkpoints import read_checkpoint_header
from jumpboard.artefacts.files import REMEDY, sha256_of
from jumpboard.artefacts.tables import read_header
from jumpboard.errors import InputError

PLACES = {"results", "figures"}


class Fault(NamedTuple):
    """One thing that is wrong, in words."""

    file: str
    reason: str


def read_manifest(path: Path) -> dict[str, dict[str, Any]]:
    """A manifest: place -> path -> {sha256, bytes}. Raises InputError for a missing or damaged one."""
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        entries = [entry for listed in manifest.values() for entry in listed.values()]
        if not set(manifest) <= PLACES or not all(isinstance(entry["sha256"], str) for entry in entries):
            raise ValueError
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; accepted: the results folder of a finished run") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{path}: not a whole manifest; {REMEDY}") from None
    return dict(manifest)


def read_config(path: Path) -> dict[str, Any]:
    """A run's `config.json`: config, datasets, claims. Raises InputError for a missing or damaged one."""
    try:
        resolved = json.loads(path.read_text(encoding="utf-8"))
        if not all(isinstance(resolved[name], dict) for name in ("config", "datasets", "claims")):
            raise ValueError
        if not isinstance(resolved["config"]["grid"], list):
            raise ValueError
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{path}: not the resolved config of a run; {REMEDY}") from None
    return dict(resolved)


def manifest_faults(manifest: Path, places: Mapping[str, Path]) -> Iterator[Fault]:
    """Re-hash every file that a manifest lists below the given places."""
    for place, listed in read_manifest(manifest).items():
        for name, entry in listed.items():
            path = places[place] / name
            if not path.is_file():
                yield Fault(str(path), f"listed in {manifest} but missing")
            elif sha256_of(path) != entry["sha256"]:
                yield Fault(str(path), f"differs from its SHA-256 in {manifest}")


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


def stored_digests(path: Path) -> tuple[str, str]:
    """Code and config digest in the header of a table or checkpoint file."""
    header = read_checkpoint_header(path) if path.suffix == ".safetensors" else read_header(path)
    return header["code"], header["config"]


def digest_faults(expected: Mapping[Path, tuple[str, str]]) -> Iterator[Fault]:
    """Hold the stored code and config digests of files against the expected ones."""
    for path, wanted in expected.items():
        found = stored_digests(path)
        for kind, one, other in zip(("code", "config"), found, wanted, strict=True):
            if one != other:
                yield Fault(str(path), f"made with another {kind}: digest {one[:12]}, now {other[:12]}")
