"""CIFAR's binary batches: `cifar-10-batches-bin/` or `cifar-10-binary.tar.gz`, `cifar-100-binary/` or its archive.

The training part of CIFAR-10 is five files, every other part one; each must be there once. A record is one label byte
(CIFAR-100: the coarse, then the fine label) and 3 x 32 x 32 bytes. A folder is taken before an archive beside it.
Archives are read member by member and nothing is unpacked; one with a member that is a link or leads out of the folder
is refused whole.
"""

import tarfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

import numpy as np

from jumpboard.data.layouts.source import Batch, Part, Source, Spec, check_whole, named, part_of
from jumpboard.errors import InputError

PICTURE = (3, 32, 32)


@dataclass(frozen=True)
class Kind:
    """Names of folder and archive, bytes of label in a record (the last one counts), files of each part."""

    folder: str
    archive: str
    label_bytes: int
    files: dict[str, list[str]]


KINDS = (
    Kind(
        "cifar-10-batches-bin",
        "cifar-10-binary.tar.gz",
        1,
        {"train": [f"data_batch_{number}.bin" for number in range(1, 6)], "test": ["test_batch.bin"]},
    ),
    Kind("cifar-100-binary", "cifar-100-binary.tar.gz", 2, {"train": ["train.bin"], "test": ["test.bin"]}),
)


def sources(place: Path) -> Iterator[Source]:
    """The copies in a folder, or in the archive at `place`, that are in this layout."""
    for kind in KINDS:
        folders = (
            one for one in (place, place / kind.folder) if any(named(one, names) for names in kind.files.values())
        )
        archives = (one for one in (place, place / kind.archive) if one.name == kind.archive and one.is_file())
        found = next(folders, None) or next(archives, None)
        if found is not None:
            yield Source(found, {part: partial(_open, found, kind, part) for part in kind.files})


def _of_folder(folder: Path, names: list[str], label_bytes: int) -> Iterator[Batch]:
    paths = named(folder, names)
    check_whole(folder, names, [path.name for path in paths])
    for path in paths:
        yield _batch(str(path), path.stat().st_size, path.read_bytes, label_bytes)


def _of_archive(archive: Path, names: list[str], label_bytes: int) -> Iterator[Batch]:
    """The batches of a part. All members of the archive are looked at before the first is read."""
    try:
        with tarfile.open(archive) as tar:
            members = tar.getmembers()
            for member in members:
                path = PurePosixPath(member.name)
                if path.is_absolute() or ".." in path.parts or not (member.isfile() or member.isdir()):
                    raise InputError(
                        f"{archive}: member '{member.name}' is a link or leads out of the folder; copy it again"
                    )
            found = {member: PurePosixPath(member.name).name for member in members if member.isfile()}
            check_whole(archive, names, list(found.values()))
            for member in sorted((one for one in found if found[one] in names), key=found.__getitem__):
                content = tar.extractfile(member)
                assert content is not None  # it is a file
                yield _batch(f"{archive}: {member.name}", member.size, content.read, label_bytes)
    except (tarfile.TarError, EOFError, OSError, zlib.error):
        raise InputError(f"{archive}: archive is cut short or damaged; copy it again") from None


def _batch(name: str, size: int, read: Callable[[], bytes], label_bytes: int) -> Batch:
    """The records of a file, which is only read if they can be whole."""
    record = label_bytes + int(np.prod(PICTURE))
    if not size or size % record:
        raise InputError(f"{name}: {size} bytes are not whole records of {record}; copy it again")
    rows = np.frombuffer(read(), dtype=np.uint8).reshape(-1, record)
    return Batch(name, rows[:, label_bytes - 1].astype(np.int64), rows[:, label_bytes:].reshape(-1, *PICTURE))


def _open(place: Path, kind: Kind, part: str, spec: Spec) -> Part:
    batches = _of_folder if place.is_dir() else _of_archive
    return part_of(list(batches(place, kind.files[part], kind.label_bytes)))
