"""CIFAR's binary batches: `cifar-10-batches-bin/` or `cifar-10-binary.tar.gz`, `cifar-100-binary/` or its archive.

A record is one label byte (CIFAR-100: the coarse, then the fine label) and 3 x 32 x 32 bytes. A folder is taken before
an archive beside it. Archives are read member by member and nothing is unpacked; one with a member that is a link or
leads out of the folder is refused whole.
"""

import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from re import fullmatch

import numpy as np

from jumpboard.data.layouts.source import Batch, Part, Source, Spec, matching, part_of
from jumpboard.errors import InputError

PICTURE = (3, 32, 32)


@dataclass(frozen=True)
class Kind:
    """Names of folder and archive, bytes of label in a record (the last one counts), file names of each part."""

    folder: str
    archive: str
    label_bytes: int
    files: dict[str, str]


KINDS = (
    Kind(
        "cifar-10-batches-bin",
        "cifar-10-binary.tar.gz",
        1,
        {"train": r"data_batch_\d+\.bin", "test": r"test_batch\.bin"},
    ),
    Kind("cifar-100-binary", "cifar-100-binary.tar.gz", 2, {"train": r"train\.bin", "test": r"test\.bin"}),
)


def sources(place: Path) -> Iterator[Source]:
    """The copies in a folder, or in the archive at `place`, that are in this layout."""
    for kind in KINDS:
        folders = (one for one in (place, place / kind.folder) if any(matching(one, p) for p in kind.files.values()))
        archives = (one for one in (place, place / kind.archive) if one.name == kind.archive and one.is_file())
        found = next(folders, None) or next(archives, None)
        if found is not None:
            yield Source(found, {part: partial(_open, found, kind, part) for part in kind.files})


def _members(archive: Path, pattern: str) -> Iterator[tuple[str, bytes]]:
    """Name and content of the members whose names match. All members are looked at before the first is given."""
    try:
        with tarfile.open(archive) as tar:
            members = tar.getmembers()
            for member in members:
                path = PurePosixPath(member.name)
                if path.is_absolute() or ".." in path.parts or not (member.isfile() or member.isdir()):
                    raise InputError(
                        f"{archive}: member '{member.name}' is a link or leads out of the folder; copy it again"
                    )
            for member in sorted(members, key=lambda one: one.name):
                content = tar.extractfile(member) if fullmatch(pattern, PurePosixPath(member.name).name) else None
                if content is not None:
                    yield f"{archive}: {member.name}", content.read()
    except (tarfile.TarError, EOFError, OSError, zlib.error):
        raise InputError(f"{archive}: archive is cut short or damaged; copy it again") from None


def _batch(name: str, data: bytes, label_bytes: int) -> Batch:
    record = label_bytes + int(np.prod(PICTURE))
    if not data or len(data) % record:
        raise InputError(f"{name}: {len(data)} bytes are not whole records of {record}; copy it again")
    rows = np.frombuffer(data, dtype=np.uint8).reshape(-1, record)
    return Batch(name, rows[:, label_bytes - 1].astype(np.int64), rows[:, label_bytes:].reshape(-1, *PICTURE))


def _open(place: Path, kind: Kind, part: str, spec: Spec) -> Part:
    pattern = kind.files[part]
    files = ((str(path), path.read_bytes()) for path in matching(place, pattern))
    found = files if place.is_dir() else _members(place, pattern)
    batches = [_batch(name, data, kind.label_bytes) for name, data in found]
    if not batches:
        raise InputError(f"{place}: holds no file {pattern}, its {part} part; copy it again")
    return part_of(batches)
