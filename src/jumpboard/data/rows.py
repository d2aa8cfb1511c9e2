"""Rows: samples and their labels in one order, as the source gives them, and what must hold for any set of them.

What runs over all rows goes chunk by chunk, so that a set in a file needs the memory of one chunk only.
"""

import math
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jumpboard.errors import InputError

DRAWN = ("train", "validation", "test")
SPLITS = (*DRAWN, "fresh")
SAMPLE_TYPES = ("float32", "uint8")
CHUNK = 4096
CHUNK_BYTES = 2**25


@dataclass(frozen=True)
class Rows:
    """`x` [n, *shape], float32 or uint8, not normalised; `y` [n], int64, labels 0..classes - 1."""

    x: np.ndarray
    y: np.ndarray

    def __len__(self) -> int:
        return len(self.y)

    def slice(self, start: int, stop: int) -> "Rows":
        """Rows start..stop - 1, as views."""
        return Rows(self.x[start:stop], self.y[start:stop])

    def chunks(self) -> Iterator["Rows"]:
        """The rows in their order, at most `CHUNK` and about `CHUNK_BYTES` at a time, as views."""
        step = chunk_length(self.x.itemsize * math.prod(self.x.shape[1:]))
        for start in range(0, len(self), step):
            yield self.slice(start, start + step)


def chunk_length(row_bytes: int) -> int:
    """Rows of so many bytes in one chunk: at least 1."""
    return max(1, min(CHUNK, CHUNK_BYTES // max(1, row_bytes)))


def blank(shape: tuple[int, ...], kind: str, scratch: Path | None) -> np.ndarray:
    """An array to be filled, in memory, or for sets that may not fit there in a file of the folder `scratch`.

    The file has no name and takes its whole room at once: it is gone with the array, however the process ends, and a
    full disk is an OSError here, not a fault later.
    """
    if scratch is None:
        return np.empty(shape, dtype=kind)
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=scratch) as file:
        if hasattr(os, "posix_fallocate"):
            try:
                os.posix_fallocate(file.fileno(), 0, math.prod(shape) * np.dtype(kind).itemsize)
            except OSError as error:
                raise OSError(error.errno, error.strerror, str(scratch)) from None
        return np.asarray(np.memmap(file, dtype=kind, mode="r+", shape=shape))


def check_rows(rows: Rows, shape: tuple[int, ...], classes: int, place: str) -> None:
    """Hold rows against a data set's shape and classes. Raises InputError whose message begins with `place`."""
    x, y = rows.x, rows.y
    if x.dtype.name not in SAMPLE_TYPES:
        raise InputError(f"{place}: samples are {x.dtype.name}; accepted: {', '.join(SAMPLE_TYPES)}")
    if y.dtype.name != "int64" or y.ndim != 1:
        raise InputError(f"{place}: labels are {y.dtype.name} with {y.ndim} dimensions, not one column of int64")
    if len(x) != len(y) or len(y) < 1:
        raise InputError(f"{place}: {len(x)} samples and {len(y)} labels; there must be one label per sample")
    if x.shape[1:] != shape:
        raise InputError(f"{place}: samples have shape {list(x.shape[1:])}, not {list(shape)}")
    bad = 0 if x.dtype == np.uint8 else sum(int(np.count_nonzero(~np.isfinite(part.x))) for part in rows.chunks())
    if bad:
        raise InputError(f"{place}: {bad} values are not finite")
    if y.min() < 0 or y.max() >= classes:
        raise InputError(f"{place}: labels run from {y.min()} to {y.max()}; accepted: 0 to {classes - 1}")


def cut(rows: Rows, sizes: Mapping[str, int]) -> dict[str, Rows]:
    """Contiguous splits of the given sizes, always in the order of `SPLITS`, whatever the order of `sizes`."""
    parts, start = {}, 0
    for name in (name for name in SPLITS if name in sizes):
        parts[name] = rows.slice(start, start + sizes[name])
        start += sizes[name]
    return parts


def shuffled(rows: Rows, count: int, seed: int, source: str) -> Rows:
    """The first `count` of the rows of a finite source in an order drawn from `seed`; more than it has is refused."""
    if count > len(rows):
        raise InputError(f"{source} holds {len(rows)} samples; the splits ask for {count}")
    order = np.random.default_rng(seed).permutation(len(rows))[:count]
    return Rows(rows.x[order], rows.y[order])


def mean_and_sd(x: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation (divisor n) of all values, summed in float64.

    Where all values equal v this is exactly (v, 0): a float64 sum of up to 2**29 equal float32 values is exact.
    """
    mean = float(x.mean(dtype=np.float64))
    step = chunk_length(8 * math.prod(x.shape[1:]))
    parts = (x[start : start + step] for start in range(0, len(x), step))
    squares = sum(float(np.square(np.subtract(part, mean, dtype=np.float64)).sum()) for part in parts)
    return mean, math.sqrt(squares / x.size)
