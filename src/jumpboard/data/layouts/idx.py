"""IDX files, as MNIST comes: `{train,t10k}-{images-idx3,labels-idx1}-ubyte`, plain or .gz, in the folder, its `raw/` or
a `<name>/raw/` below it, as torchvision keeps them. Where a file is there twice the plain one is taken.

A file is two zero bytes, 0x08 for unsigned bytes, the number of dimensions, each dimension as a big-endian 32-bit
number, and the values.
"""

import gzip
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from jumpboard.data.layouts.source import Batch, Part, Source, Spec, matching, part_of
from jumpboard.errors import InputError

PREFIXES = {"train": "train", "test": "t10k"}
KINDS = {"images": 3, "labels": 1}


def _files(folder: Path, prefix: str, kind: str) -> list[Path]:
    return matching(folder, rf"{prefix}-{kind}[-.]idx{KINDS[kind]}-ubyte(\.gz)?")


def sources(place: Path) -> Iterator[Source]:
    """The copies in a folder that are in this layout."""
    if place.is_dir():
        for folder in (place, place / "raw", *sorted(place.glob("*/raw"))):
            found = [part for part, prefix in PREFIXES.items() if _files(folder, prefix, "images")]
            if found:
                yield Source(folder, {part: partial(_open, folder, PREFIXES[part]) for part in found})


def _read(path: Path, dimensions: int) -> np.ndarray:
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error):
        raise InputError(f"{path}: archive is cut short or damaged; copy it again") from None
    start = 4 + 4 * dimensions
    if data[:4] != bytes([0, 0, 8, dimensions]) or len(data) < start:
        raise InputError(f"{path}: not an IDX file of unsigned bytes with {dimensions} dimensions")
    shape = np.frombuffer(data, dtype=">u4", count=dimensions, offset=4).astype(int).tolist()
    if len(data) - start != np.prod(shape, dtype=object):
        raise InputError(f"{path}: holds {len(data) - start} values, not the {shape} of its head; copy it again")
    return np.frombuffer(data, dtype=np.uint8, offset=start).reshape(shape)


def _open(folder: Path, prefix: str, spec: Spec) -> Part:
    images, labels = (_files(folder, prefix, kind)[:1] for kind in KINDS)
    if not labels:
        raise InputError(f"{folder}: has {images[0].name}, but no {prefix}-labels-idx1-ubyte or .gz")
    x, y = _read(images[0], 3), _read(labels[0], 1)
    if len(x) != len(y):
        raise InputError(f"{images[0]}: {len(x)} pictures, but {len(y)} labels in {labels[0].name}")
    return part_of([Batch(str(images[0]), y.astype(np.int64), x[:, None])])
