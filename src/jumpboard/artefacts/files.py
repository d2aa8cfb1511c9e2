"""Whole files or none: every artefact is written beside its place, synced, and renamed into it."""

import glob
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

REMEDY = "delete it and run again"
"""What to do about a damaged file of a run: Snakemake makes again what is missing, and not what is cut short."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path in the folder of `path`; on success it becomes `path`, on any error it is removed.

    The file gets the permissions that a new file gets here, whatever its writer gave it. An OSError that names no file
    (disk full) gets the name of `path`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with open(temporary, "wb") as handle:
            permissions = stat.S_IMODE(os.fstat(handle.fileno()).st_mode)
        yield temporary
        with open(temporary, "rb+") as handle:
            os.fchmod(handle.fileno(), permissions)
            os.fsync(handle.fileno())
        os.replace(temporary, path)
    except OSError as error:
        error.filename = error.filename or str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def remove_leftovers(path: Path) -> None:
    """Remove what killed writers of `path` left beside it; a writer that still lives keeps its file."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.partial"):
        try:
            os.kill(int(left.name.split(".")[-2]), 0)
        except ProcessLookupError:
            left.unlink(missing_ok=True)
        except (PermissionError, ValueError):
            continue


def sha256_of(path: Path) -> str:
    """Hex SHA-256 of a file's bytes."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
