"""The file of a data set's splits: written once from its rows, checked whenever it is read.

One Parquet file per data set. Column `x` holds flattened raw samples (fixed-size lists of float32 or uint8), `y` the
labels (int64); the rows of a split are contiguous, splits in the order train, validation, test, fresh. Each split is
written in row groups of one chunk, so that neither writer nor reader needs memory for more than it asks for. The header
adds to the provenance the split sizes, shape, classes, and per channel c the moments of the training split (or those
that the entry gives), mean_c and sd_c (divisor n), with which every split is normalised: (x - mean_c) / sd_c.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from jumpboard.artefacts.files import REMEDY
from jumpboard.artefacts.provenance import Provenance
from jumpboard.artefacts.tables import parquet_writer, read_header
from jumpboard.data.rows import SPLITS, Rows, blank, check_rows, mean_and_sd
from jumpboard.errors import InputError

NAME, VERSION = "splits", 1
ELEMENTS = (pa.float32(), pa.uint8())


def _whole(value: Any) -> bool:
    return type(value) is int and value >= 1


def _finite(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, float) and math.isfinite(one) for one in value)


HEADER: dict[str, Callable[[Any], bool]] = {
    "sizes": lambda value: (
        isinstance(value, dict) and len(value) > 0 and set(value) <= set(SPLITS) and all(map(_whole, value.values()))
    ),
    "shape": lambda value: isinstance(value, list) and len(value) > 0 and all(map(_whole, value)),
    "classes": _whole,
    "mean": _finite,
    "sd": lambda value: _finite(value) and all(one >= 0 for one in value),
}


def channels_of(shape: tuple[int, ...]) -> int:
    """Images [C, H, W] have C channels, vectors [D] one."""
    return shape[0] if len(shape) > 1 else 1


@dataclass(frozen=True)
class Moments:
    """Mean and standard deviation per channel, in the unit of the raw values."""

    mean: tuple[float, ...]
    sd: tuple[float, ...]


def channel_moments(rows: Rows) -> Moments:
    """Moments over all rows and positions, one pair per channel, in float64."""
    channels = channels_of(rows.x.shape[1:])
    x = rows.x.reshape(len(rows), channels, -1)
    pairs = [mean_and_sd(x[:, channel]) for channel in range(channels)]
    return Moments(tuple(mean for mean, _ in pairs), tuple(sd for _, sd in pairs))


@dataclass(frozen=True)
class Splits:
    """The splits of one data set, their common shape and classes, and the moments they are normalised with."""

    parts: Mapping[str, Rows]
    shape: tuple[int, ...]
    classes: int
    moments: Moments

    @property
    def sizes(self) -> dict[str, int]:
        return {name: len(rows) for name, rows in self.parts.items()}

    def rows(self, split: str) -> Rows:
        """All raw rows of a split. Raises InputError for a split that the file does not hold."""
        if split not in self.parts:
            raise InputError(f"split '{split}' is not there; the data set has {', '.join(self.parts)}")
        return self.parts[split]

    def training_subset(self, samples: int) -> Rows:
        """The first `samples` rows of the training split, so that smaller subsets lie within larger ones."""
        train = self.rows("train")
        if not 1 <= samples <= len(train):
            raise InputError(f"{samples} training samples asked for; accepted: 1 to {len(train)}")
        return train.slice(0, samples)

    def normalised(self, rows: Rows) -> np.ndarray:
        """(x - mean) / sd per channel, float32 [n, *shape]; the sd of a constant channel counts as 1."""
        if rows.x.shape[1:] != self.shape:
            raise InputError(f"samples of shape {list(rows.x.shape[1:])} do not belong to shape {list(self.shape)}")
        layout = (-1,) + (1,) * (len(self.shape) - 1)
        sd = [value if value > 0 else 1.0 for value in self.moments.sd]
        x = rows.x.astype(np.float32)
        x -= np.array(self.moments.mean, dtype=np.float32).reshape(layout)
        x /= np.array(sd, dtype=np.float32).reshape(layout)
        return x


def _schema(kind: str, size: int) -> pa.Schema:
    types = {"x": pa.list_(pa.from_numpy_dtype(kind), size), "y": pa.int64()}
    meanings = {"x": "raw values of one sample, flattened row by row", "y": "label, 0..classes - 1"}
    return pa.schema(
        [
            pa.field(name, types[name], nullable=False, metadata={"unit": "1", "description": meanings[name]})
            for name in types
        ]
    )


def given_moments(spec: Mapping[str, Any]) -> Moments | None:
    """The constants of an entry's `normalise`, in the unit of the raw values, if it has any."""
    block = spec.get("normalise")
    return block and Moments(tuple(map(float, block["mean"])), tuple(map(float, block["sd"])))


def write_splits(
    path: Path,
    rows: Mapping[str, Rows],
    spec: Mapping[str, Any],
    provenance: Provenance,
    moments: Moments | None = None,
) -> None:
    """Write the splits of an inventory entry, whole or not at all; equal rows and provenance give equal bytes.

    `moments` are those of `normalise` or of the set that the entry is `normalise_as`; without them the training
    split's are taken.
    Raises InputError, naming file and split, for rows that are not of the entry's shape and classes.
    """
    shape, classes = tuple(spec["shape"]), int(spec["classes"])
    ordered = {name: rows[name] for name in SPLITS if name in rows}
    if len(ordered) != len(rows) or not rows:
        raise InputError(f"{path}: splits {sorted(rows)}; accepted are one or more of {', '.join(SPLITS)}")
    for name, part in ordered.items():
        check_rows(part, shape, classes, f"{path}: split '{name}'")
    kinds = sorted({part.x.dtype.name for part in ordered.values()})
    if len(kinds) > 1:
        raise InputError(f"{path}: samples are {' and '.join(kinds)}; all splits must be of one type")
    if moments is None:
        if "train" not in rows:
            raise InputError(
                f"{path}: no training split to take mean and sd from; name a set under `normalise_as`, or constants"
            )
        moments = channel_moments(rows["train"])
    header = {
        "schema": NAME,
        "version": VERSION,
        "sizes": {name: len(part) for name, part in ordered.items()},
        "shape": list(shape),
        "classes": classes,
        "mean": list(moments.mean),
        "sd": list(moments.sd),
    }
    _check_header(path, header)
    schema = _schema(kinds[0], math.prod(shape))
    with parquet_writer(path, schema, {**header, **provenance.as_json()}) as writer:
        for chunk in (chunk for part in ordered.values() for chunk in part.chunks()):
            x = pa.FixedSizeListArray.from_arrays(pa.array(chunk.x.reshape(-1)), type=schema.field("x").type)
            writer.write_table(pa.Table.from_arrays([x, pa.array(chunk.y)], schema=schema))


def _check_header(path: Path, header: Mapping[str, Any]) -> None:
    if (header.get("schema"), header.get("version")) != (NAME, VERSION):
        found = f"{header.get('schema')} version {header.get('version')}"
        raise InputError(f"{path}: holds table {found}, not {NAME} {VERSION}")
    wrong = next((name for name, holds in HEADER.items() if not holds(header.get(name))), None)
    if wrong is not None:
        raise InputError(f"{path}: '{wrong}' in its header is {header.get(wrong)!r}")
    channels = channels_of(tuple(header["shape"]))
    if len(header["mean"]) != channels or len(header["sd"]) != channels:
        found = f"{len(header['mean'])} means and {len(header['sd'])} sds"
        raise InputError(f"{path}: {found} do not fit the {channels} channels of shape {header['shape']}")


def _numpy(path: Path, column: pa.ChunkedArray) -> np.ndarray:
    array = column.combine_chunks()
    values = array.flatten() if pa.types.is_fixed_size_list(array.type) else array
    if array.null_count or values.null_count:
        raise InputError(f"{path}: holds nulls")
    return np.asarray(values)


def _fill(path: Path, file: pq.ParquetFile, rows: Rows, first: int) -> None:
    """Read the rows from `first` on into `rows`: of the row groups that hold them, one at a time."""
    begin = 0
    for group in range(file.num_row_groups):
        end = begin + file.metadata.row_group(group).num_rows
        low, high = max(first, begin), min(first + len(rows), end)
        if low < high:
            table = file.read_row_group(group)
            for name, target in (("x", rows.x.reshape(len(rows), -1)), ("y", rows.y)):
                values = _numpy(path, table.column(name)).reshape(end - begin, *target.shape[1:])
                target[low - first : high - first] = values[low - begin : high - begin]
        begin = end


def read_splits(path: Path, wanted: Mapping[str, int] | None = None, scratch: Path | None = None) -> Splits:
    """Read the splits of a data set and check all that the writer promises of the rows that are read.

    `wanted`: of which splits how many of the first rows, at most; all rows of all splits without it. With a folder
    `scratch` the rows are held in files there and not in memory.
    Raises InputError, naming the file, for a foreign or damaged file, a split that it lacks, sizes that do not add up,
    nulls, values that are not finite, or labels outside 0..classes - 1.
    """
    header = read_header(path)
    _check_header(path, header)
    shape = tuple(header["shape"])
    sizes = {name: header["sizes"][name] for name in SPLITS if name in header["sizes"]}
    lacking = next((name for name in wanted or () if name not in sizes), None)
    if lacking is not None:
        raise InputError(f"{path}: split '{lacking}' is not there; the data set has {', '.join(sizes)}")
    parts: dict[str, Rows] = {}
    try:
        with pq.ParquetFile(path) as file:
            kind, first = _checked_columns(path, file, header), 0
            for name, size in sizes.items():
                if wanted is None or name in wanted:
                    count = size if wanted is None else min(wanted[name], size)
                    parts[name] = Rows(blank((count, *shape), kind, scratch), np.empty(count, dtype=np.int64))
                    _fill(path, file, parts[name], first)
                first += size
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(f"{path}: cannot be read: {error}; {REMEDY}") from None
    for name, part in parts.items():
        check_rows(part, shape, header["classes"], f"{path}: split '{name}'")
    return Splits(parts, shape, header["classes"], Moments(tuple(header["mean"]), tuple(header["sd"])))


def _checked_columns(path: Path, file: pq.ParquetFile, header: Mapping[str, Any]) -> str:
    """The type of the samples, of a file whose columns and number of rows are those of its header."""
    sizes, rows = header["sizes"], file.metadata.num_rows
    types = dict(zip(file.schema_arrow.names, file.schema_arrow.types, strict=True))
    accepted = [{"x": pa.list_(kind, math.prod(header["shape"])), "y": pa.int64()} for kind in ELEMENTS]
    if types not in accepted:
        raise InputError(f"{path}: columns are {types}, not one of {accepted}")
    if sum(sizes.values()) != rows:
        raise InputError(f"{path}: holds {rows} rows, but the sizes {sizes} add up to {sum(sizes.values())}")
    return str(np.dtype(types["x"].value_type.to_pandas_dtype()))
