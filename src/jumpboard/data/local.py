"""Local copies of picture sets: the layout is found by what lies there.

| layout | what lies in the folder that `path` names |
|---|---|
| class folders | `train/<class>/*.png` (jpg, ...; folders below too) and `test/` or `val/`; sorted names are labels |
| the hub's Parquet files | `train-*.parquet`, `test-*.parquet`, `validation-*.parquet`, all there or one folder below |
| IDX files | `train-images-idx3-ubyte` and its fellows, plain or .gz, there, in `raw/` or in `<name>/raw/` |
| CIFAR binary batches | `cifar-10-batches-bin/`, `cifar-10-binary.tar.gz`, `cifar-100-...`, or the batches themselves |
| CIFAR Python batches | `cifar-10-batches-py/`, `cifar-100-python/`, or the batches themselves |

A torchvision root is one of the last three. Two copies in one folder are refused.

Training rows come from the train part, test rows from the test part (the validation part, where there is no other),
and validation rows from the part that `validation_from` names. Of each part an order is drawn from the entry's seed;
train and test take its first rows and validation the next ones, and only the rows taken are read.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jumpboard.data.layouts import cifar_binary, cifar_python, class_folders, hub_parquet, idx
from jumpboard.data.layouts.options import check_options
from jumpboard.data.layouts.source import Part, Source, Spec
from jumpboard.data.rows import DRAWN, Rows, blank
from jumpboard.errors import InputError

SAMPLER = False
OPTIONS = ("resize", "crop", "convert")
LAYOUTS: dict[str, Callable[[Path], Iterator[Source]]] = {
    "class folders": class_folders.sources,
    "the hub's Parquet files": hub_parquet.sources,
    "IDX files": idx.sources,
    "CIFAR binary batches": cifar_binary.sources,
    "CIFAR Python batches": cifar_python.sources,
}
STREAMS = {"train": 0, "test": 1, "validation": 2}


def find_source(place: Path) -> Source:
    """The one copy at a folder or archive. Raises InputError where there is none in a known layout, or several."""
    if not place.exists():
        raise InputError(f"{place}: no such folder; accepted: a folder with one of {', '.join(LAYOUTS)}")
    found = [(layout, source) for layout, sources in LAYOUTS.items() for source in sources(place)]
    if not found:
        remedy = (
            "; folders of pictures must lie as train/<class>/ and test/<class>/" if class_folders.is_flat(place) else ""
        )
        raise InputError(f"{place}: no known layout; accepted: {', '.join(LAYOUTS)}{remedy}")
    if len(found) > 1:
        listed = ", ".join(f"{layout} in {source.place}" for layout, source in found)
        raise InputError(f"{place}: holds several copies ({listed}); accepted: a path to one of them alone")
    return found[0][1]


def _part_of(split: str, spec: Spec, source: Source) -> str:
    """The name of the part that a split is taken from."""
    role = spec.get("validation_from", "train") if split == "validation" else split
    part = "validation" if role == "test" and "test" not in source.parts else role
    if part not in source.parts:
        raise InputError(f"{source.place}: has no {role} part, only {', '.join(source.parts)}; {split} rows need it")
    return part


def _read(part: Part, indexes: np.ndarray, spec: Spec, scratch: Path | None) -> Rows:
    shape, classes, y = tuple(spec["shape"]), spec["classes"], part.labels[indexes]
    bad = np.flatnonzero((y < 0) | (y >= classes))
    if len(bad):
        where = part.name(int(indexes[bad[0]]))
        raise InputError(f"{where}: label {y[bad[0]]}; accepted: 0 to {classes - 1}")
    x = blank((len(indexes), *shape), "uint8", scratch)
    order = np.argsort(indexes)
    for position, picture in zip(order, part.pictures(indexes[order]), strict=True):
        if picture.shape != shape:
            where = part.name(int(indexes[position]))
            raise InputError(
                f"{where}: picture of shape {list(picture.shape)}; accepted: {list(shape)}, or options resize and crop"
                " for picture files"
            )
        x[position] = picture
    return Rows(x, y)


def draw_splits(spec: Mapping[str, Any], copy: Path | None, scratch: Path | None = None) -> dict[str, Rows]:
    """The splits of a copy, x [n, C, H, W] uint8, held in files of the folder `scratch` where one is given.

    Raises InputError, naming file and remedy, for whatever is wrong with the copy.
    """
    check_options("data loader 'local'", spec)
    if copy is None:
        raise InputError("data loader 'local' reads a copy; accepted: its folder, as `paths` or `path`")
    source, sizes = find_source(copy), spec["splits"]
    taken_from = {split: _part_of(split, spec, source) for split in DRAWN if split in sizes}
    drawn: dict[str, Rows] = {}
    for name in dict.fromkeys(taken_from.values()):
        part = source.parts[name](spec)
        takers = sorted((split for split in taken_from if taken_from[split] == name), key=STREAMS.__getitem__)
        asked = sum(sizes[split] for split in takers)
        if asked > len(part.labels):
            raise InputError(
                f"{source.place}: its {name} part holds {len(part.labels)} samples; the splits ask for {asked}"
            )
        stream = STREAMS["test"] if taken_from.get("test") == name else STREAMS[name]
        order = np.random.default_rng([spec["seed"], stream]).permutation(len(part.labels))
        for split in takers:
            drawn[split] = _read(part, order[: sizes[split]], spec, scratch)
            order = order[sizes[split] :]
    return {split: drawn[split] for split in taken_from}
