"""What every layout of a local copy gives: the parts of a source, and of each part labels and pictures, on demand."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jumpboard.errors import InputError

Spec = Mapping[str, Any]


@dataclass(frozen=True)
class Part:
    """Rows of one part in the order of the source.

    `labels` [n] int64, `name(i)` says where row i lies, and `pictures(indexes)` gives the rows of rising indexes one
    at a time, each [C, H, W] uint8.
    """

    labels: np.ndarray
    name: Callable[[int], str]
    pictures: Callable[[np.ndarray], Iterator[np.ndarray]]


@dataclass(frozen=True)
class Source:
    """A copy in one layout: where it lies, and how each of its parts (train, test, validation) is opened."""

    place: Path
    parts: Mapping[str, Callable[[Spec], Part]]


@dataclass(frozen=True)
class Batch:
    """A file that is read whole: its name, `labels` [n] int64 and `pictures` [n, C, H, W] uint8."""

    name: str
    labels: np.ndarray
    pictures: np.ndarray


def part_of(batches: Sequence[Batch]) -> Part:
    """The rows of several files, one after the other."""
    starts = np.cumsum([0, *(len(batch.labels) for batch in batches)])

    def find(index: int) -> tuple[Batch, int]:
        number = int(np.searchsorted(starts, index, side="right")) - 1
        return batches[number], index - int(starts[number])

    def name(index: int) -> str:
        batch, row = find(index)
        return f"{batch.name}: row {row}"

    def pictures(indexes: np.ndarray) -> Iterator[np.ndarray]:
        for batch, row in map(find, map(int, indexes)):
            yield batch.pictures[row]

    return Part(np.concatenate([batch.labels for batch in batches]), name, pictures)


def check_whole(place: Path, wanted: Sequence[str], found: Sequence[str]) -> None:
    """Raise InputError for the first file of a part that is not among those found, or is there twice."""
    for name in wanted:
        if found.count(name) != 1:
            fault = "is there twice" if name in found else "is not there"
            raise InputError(f"{place}: {name} {fault}; accepted: each of {', '.join(wanted)} once")


def named(folder: Path, names: Sequence[str]) -> list[Path]:
    """Those of the named files that a folder holds, in the order of the names."""
    return [folder / name for name in names if (folder / name).is_file()]


def matching(folder: Path, pattern: str) -> list[Path]:
    """The files of a folder whose whole names match, sorted; none where there is no such folder."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if re.fullmatch(pattern, path.name) and path.is_file())
