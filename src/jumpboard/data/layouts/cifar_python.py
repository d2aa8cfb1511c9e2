"""CIFAR's Python batches: `cifar-10-batches-py/` or `cifar-100-python/`, as torchvision keeps them."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from jumpboard.data.layouts.batch_pickle import read_batch
from jumpboard.data.layouts.source import Batch, Part, Source, Spec, check_whole, named, part_of

KINDS = {  # folder -> key of the labels, file of class names, files of each part
    "cifar-10-batches-py": (
        "labels",
        "batches.meta",
        {"train": [f"data_batch_{number}" for number in range(1, 6)], "test": ["test_batch"]},
    ),
    "cifar-100-python": ("fine_labels", "meta", {"train": ["train"], "test": ["test"]}),
}


def sources(place: Path) -> Iterator[Source]:
    """The copies in a folder that are in this layout."""
    for name, (label_key, meta, files) in KINDS.items():
        for folder in (place, place / name):
            if named(folder, [meta]) and any(named(folder, names) for names in files.values()):
                yield Source(folder, {part: partial(_open, folder, names, label_key) for part, names in files.items()})


def _open(folder: Path, names: list[str], label_key: str, spec: Spec) -> Part:
    paths = named(folder, names)
    check_whole(folder, names, [path.name for path in paths])
    return part_of([Batch(str(path), *read_batch(path, label_key)) for path in paths])
