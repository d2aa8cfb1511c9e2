"""Class folders: `train/<class>/<picture>` and `test/` or `val/`; the sorted names of the classes give the labels.

Pictures lie in the class folder or in folders below it. Only the files that are asked for are opened, one at a time.
"""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from jumpboard.data.layouts.decode import SUFFIXES, decode
from jumpboard.data.layouts.source import Part, Source, Spec
from jumpboard.errors import InputError

FOLDERS = {"train": "train", "test": "test", "val": "validation", "validation": "validation"}


def sources(place: Path) -> Iterator[Source]:
    """The copy in a folder, if it is in this layout."""
    found = {part: place / name for name, part in FOLDERS.items() if (place / name).is_dir()}
    if (place / "val").is_dir() and (place / "validation").is_dir():
        raise InputError(f"{place}: holds val and validation; accepted: one of them")
    if found:
        yield Source(place, {part: partial(_open, folder, found) for part, folder in found.items()})


def _classes(folder: Path) -> list[str]:
    return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and not entry.name.startswith("."))


def _files(folder: Path) -> list[str]:
    found = [
        os.path.join(root, name)
        for root, _, names in os.walk(folder)
        for name in names
        if name.lower().endswith(SUFFIXES) and not name.startswith(".")
    ]
    if not found:
        raise InputError(f"{folder}: class folder without pictures; accepted: {', '.join(SUFFIXES)}, or no such folder")
    return sorted(found)


def _open(folder: Path, found: dict[str, Path], spec: Spec) -> Part:
    known = _classes(found.get("train", folder))
    if len(known) != spec["classes"]:
        raise InputError(f"{found.get('train', folder)}: {len(known)} class folders; the entry says {spec['classes']}")
    foreign = sorted(set(_classes(folder)) - set(known))
    if foreign:
        raise InputError(f"{folder / foreign[0]}: class that {found['train']} lacks; accepted: its classes")
    files = [_files(folder / name) if (folder / name).is_dir() else [] for name in known]
    paths = [path for listed in files for path in listed]

    def pictures(indexes: np.ndarray) -> Iterator[np.ndarray]:
        for index in map(int, indexes):
            yield decode(Path(paths[index]).read_bytes(), paths[index], spec)

    labels = np.repeat(np.arange(len(known)), [len(listed) for listed in files])
    return Part(labels.astype(np.int64), paths.__getitem__, pictures)
