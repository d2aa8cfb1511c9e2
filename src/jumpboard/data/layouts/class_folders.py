"""Class folders: `train/<class>/<picture>` and `test/` or `val/`; the sorted names of the classes give the labels.

Pictures lie in the class folder or in folders below it. A class folder may be a link; a link to a folder below it is
refused, as it may lead anywhere. Hidden files and folders are not read. Only the files that are asked for are opened,
one at a time.
"""

import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from jumpboard.data.layouts.decode import SUFFIXES, decode
from jumpboard.data.layouts.source import Part, Source, Spec
from jumpboard.errors import InputError

FOLDERS = {"train": "train", "test": "test", "val": "validation", "validation": "validation"}
NAMED = 3  # names that one line lists


def sources(place: Path) -> Iterator[Source]:
    """The copy in a folder, if it is in this layout."""
    found = {part: place / name for name, part in FOLDERS.items() if (place / name).is_dir()}
    if (place / "val").is_dir() and (place / "validation").is_dir():
        raise InputError(f"{place}: holds val and validation; accepted: one of them")
    if found:
        yield Source(place, {part: partial(_open, folder, found) for part, folder in found.items()})


def is_flat(place: Path) -> bool:
    """Whether a folder holds folders of pictures itself, as if it were a part."""
    return place.is_dir() and any(
        map(_is_picture, (path.name for name in _classes(place) for path in (place / name).iterdir()))
    )


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name == "__MACOSX"


def _is_picture(name: str) -> bool:
    return name.lower().endswith(SUFFIXES) and not _is_hidden(name)


def _classes(folder: Path) -> list[str]:
    return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and not _is_hidden(entry.name))


def _files(folder: Path) -> list[str]:
    found = []
    for root, below, names in os.walk(folder):
        below[:] = [name for name in below if not _is_hidden(name)]
        link = next((path for path in (os.path.join(root, name) for name in below) if os.path.islink(path)), None)
        if link is not None:
            raise InputError(
                f"{link}: link to a folder inside a class folder; accepted: files and folders that lie there"
            )
        found += [os.path.join(root, name) for name in names if _is_picture(name)]
    if not found:
        raise InputError(f"{folder}: class folder without pictures; accepted: {', '.join(SUFFIXES)}, or no such folder")
    return sorted(found)


def _listed(names: list[str]) -> str:
    return ", ".join(names[:NAMED]) + ", ..." * (len(names) > NAMED)


def _check_number(folder: Path, known: list[str], others: set[str], classes: int) -> None:
    """Raise InputError where a part has not as many class folders as its entry has classes.

    Which are too many or missing the other parts tell; where they do not, the names in their order do.
    """
    text = f"{folder}: {len(known)} class folders; the entry says {classes}"
    if len(known) > classes:
        surplus = sorted(set(known) - others) if others else []
        raise InputError(f"{text}; too many: {_listed(surplus or known[classes:])}")
    if len(known) < classes:
        missing = sorted(others - set(known))
        there = f"missing: {_listed(missing)}" if missing else f"there are {_listed(known)}"
        raise InputError(f"{text}; {there}")


def _open(folder: Path, found: Mapping[str, Path], spec: Spec) -> Part:
    base = found.get("train", folder)
    classes = {place: _classes(place) for place in found.values()}
    for place in (base, folder):
        if not classes[place]:
            raise InputError(f"{place}: has no class folders; accepted: {place.name}/<class>/<picture>")
    known = classes[base]
    others = {name for place, names in classes.items() if place != base for name in names}
    _check_number(base, known, others, spec["classes"])
    foreign = sorted(set(classes[folder]) - set(known))
    if foreign:
        raise InputError(f"{folder / foreign[0]}: class that {base} lacks; accepted: its classes")
    files = [_files(folder / name) if (folder / name).is_dir() else [] for name in known]
    paths = [path for listed in files for path in listed]

    def pictures(indexes: np.ndarray) -> Iterator[np.ndarray]:
        for index in map(int, indexes):
            yield decode(Path(paths[index]).read_bytes(), paths[index], spec)

    labels = np.repeat(np.arange(len(known)), [len(listed) for listed in files])
    return Part(labels.astype(np.int64), paths.__getitem__, pictures)
