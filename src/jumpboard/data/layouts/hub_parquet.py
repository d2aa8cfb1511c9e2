"""The hub's Parquet layout: `train-*.parquet`, `test-*.parquet`, `validation-*.parquet` in the folder or one below it.

Files that are numbered `-00000-of-00002` must all be there. Column `image` or `img` is a struct whose `bytes` hold a
picture file; `label` or `fine_label` its class. Files are read a few rows at a time, row groups without a row that is
asked for not at all.
"""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from jumpboard.data.layouts.decode import decode
from jumpboard.data.layouts.source import Part, Source, Spec, matching
from jumpboard.errors import InputError

FILES = {part: rf"{part}([-.].*)?\.parquet" for part in ("train", "test", "validation")}
IMAGES, LABELS = ("image", "img"), ("label", "fine_label")
NUMBERED = r".*?-(\d{5})-of-(\d{5})([-.].*)?\.parquet"
ROWS = 64


def sources(place: Path) -> Iterator[Source]:
    """The copies in a folder and in those directly below it that are in this layout."""
    below = sorted(path for path in place.iterdir() if path.is_dir()) if place.is_dir() else []
    for folder in (place, *below):
        found = {part: matching(folder, pattern) for part, pattern in FILES.items()}
        if any(found.values()):
            yield Source(folder, {part: partial(_open, files) for part, files in found.items() if files})


def _shard(path: Path) -> tuple[int, int] | None:
    """Number and count in a file's name, if it has them."""
    match = re.fullmatch(NUMBERED, path.name)
    return match and (int(match[1]), int(match[2]))


def _check_shards(paths: list[Path]) -> None:
    """Raise InputError, naming the file, where one of a part's numbered files is missing or there is one too many."""
    shards = [_shard(path) for path in paths]
    count = next((shard[1] for shard in shards if shard), None)
    if count is None:
        return
    wanted = [(number, count) for number in range(count)]
    for place, (path, shard) in enumerate(zip(paths, shards, strict=True)):
        if shard not in wanted or shard in shards[:place]:
            raise InputError(f"{path}: not one set with the files beside it; accepted: each of {count} numbers once")
    missing = next((number for number, _ in wanted if (number, count) not in shards), None)
    if missing is not None:
        name = re.sub(r"-\d+-of-", f"-{missing:05d}-of-", paths[0].name)
        raise InputError(f"{paths[0].with_name(name)}: is not there, but {paths[0].name} is; copy all {count} files")


def _columns(path: Path) -> tuple[str, str]:
    """Names of the columns of pictures and labels."""
    try:
        schema = pq.read_schema(path)
    except (OSError, pa.ArrowInvalid):
        raise InputError(f"{path}: not a whole Parquet file; copy it again") from None
    names = []
    for accepted in (IMAGES, LABELS):
        name = next((name for name in accepted if name in schema.names), None)
        if name is None:
            raise InputError(f"{path}: has columns {schema.names}; accepted: one of {', '.join(accepted)}")
        if schema.names.count(name) > 1:
            raise InputError(f"{path}: column '{name}' is there {schema.names.count(name)} times; accepted: once")
        names.append(name)
    image, label = (schema.field(name).type for name in names)
    if not (pa.types.is_struct(image) and image.get_field_index("bytes") >= 0):
        raise InputError(f"{path}: column '{names[0]}' holds {image}; accepted: a struct with one `bytes`")
    if not _is_binary(image.field("bytes").type):
        raise InputError(f"{path}: `bytes` of column '{names[0]}' are {image.field('bytes').type}; accepted: binary")
    if not pa.types.is_integer(label):
        raise InputError(f"{path}: column '{names[1]}' holds {label}; accepted: whole numbers")
    return names[0], names[1]


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind))


def _labels(path: Path, classes: int) -> np.ndarray:
    try:
        column = pq.read_table(path, columns=[_columns(path)[1]], partitioning=None).column(0)
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(f"{path}: column of labels cannot be read ({error}); copy the file again") from None
    if column.null_count:
        raise InputError(f"{path}: {column.null_count} rows have no label; accepted: a label in every row")
    values = column.to_numpy()
    wide = np.flatnonzero(values > np.iinfo(np.int64).max)
    if len(wide):
        raise InputError(f"{path}: row {wide[0]}: label {values[wide[0]]}; accepted: 0 to {classes - 1}")
    return np.asarray(values, dtype=np.int64)


def _pictures(path: Path, wanted: np.ndarray, spec: Spec) -> Iterator[np.ndarray]:
    """The pictures of the rising rows `wanted` of one file."""
    column = _columns(path)[0]
    try:
        with pq.ParquetFile(path) as file:
            first = 0
            for group in range(file.num_row_groups):
                last = first + file.metadata.row_group(group).num_rows
                if np.searchsorted(wanted, first) < np.searchsorted(wanted, last):
                    for batch in file.iter_batches(ROWS, row_groups=[group], columns=[f"{column}.bytes"]):
                        low, high = np.searchsorted(wanted, (first, first + len(batch)))
                        data = batch.column(0).field("bytes")
                        for row in map(int, wanted[low:high]):
                            name, content = f"{path}: row {row}", data[row - first].as_py()
                            if content is None:
                                raise InputError(f"{name}: has no bytes; accepted: a picture in every row")
                            yield decode(content, name, spec)
                        first += len(batch)
                first = last
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(f"{path}: column '{column}' cannot be read ({error}); copy the file again") from None


def _open(paths: list[Path], spec: Spec) -> Part:
    _check_shards(paths)
    labels = [_labels(path, spec["classes"]) for path in paths]
    starts = np.cumsum([0, *map(len, labels)])

    def name(index: int) -> str:
        number = int(np.searchsorted(starts, index, side="right")) - 1
        return f"{paths[number]}: row {index - starts[number]}"

    def pictures(indexes: np.ndarray) -> Iterator[np.ndarray]:
        for path, first, last in zip(paths, starts[:-1], starts[1:], strict=True):
            own = indexes[(indexes >= first) & (indexes < last)] - first
            if len(own):
                yield from _pictures(path, own, spec)

    return Part(np.concatenate(labels), name, pictures)
