"""CIFAR's Python batches: `cifar-10-batches-py/` or `cifar-100-python/`, as torchvision keeps them."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from jumpboard.data.layouts.batch_pickle import read_batch
from jumpboard.data.layouts.source import Batch, Part, Source, Spec, matching, part_of

KINDS = {  # folder -> key of the labels, file of class names, file names of each part
    "cifar-10-batches-py": ("labels", r"batches\.meta", {"train": r"data_batch_\d+", "test": "test_batch"}),
    "cifar-100-python": ("fine_labels", "meta", {"train": "train", "test": "test"}),
}


def sources(place: Path) -> Iterator[Source]:
    """The copies in a folder that are in this layout."""
    for name, (label_key, meta, files) in KINDS.items():
        for folder in (place, place / name):
            found = {part: matching(folder, pattern) for part, pattern in files.items()}
            if any(found.values()) and matching(folder, meta):
                yield Source(folder, {part: partial(_open, paths, label_key) for part, paths in found.items() if paths})


def _open(paths: list[Path], label_key: str, spec: Spec) -> Part:
    return part_of([Batch(str(path), *read_batch(path, label_key)) for path in paths])
