"""Parquet tables with a fixed schema: checked when written, checked when read, the same bytes for the same rows.

A schema lists its columns with type, unit and meaning; key columns come first and identify a row. The writer refuses
unknown or missing columns, wrong types, nulls where none are allowed and repeated keys, sorts rows by key, and stores
the provenance as one JSON value in the file's metadata (key `jumpboard`).
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from jumpboard.artefacts.files import REMEDY, replacing
from jumpboard.artefacts.provenance import Provenance
from jumpboard.errors import InputError

TYPES: dict[str, pa.DataType] = {
    "int64": pa.int64(),
    "float64": pa.float64(),
    "string": pa.string(),
    "bool": pa.bool_(),
}
METADATA_KEY = b"jumpboard"


@dataclass(frozen=True)
class Column:
    """One column: `type` is a key of `TYPES`; `unit` is `1` for pure numbers and `-` for names."""

    name: str
    type: str
    unit: str
    description: str
    key: bool = False
    nullable: bool = False


@dataclass(frozen=True)
class Schema:
    """A table's name, version and columns, key columns first."""

    name: str
    version: int
    columns: tuple[Column, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns if column.key)

    def arrow(self) -> pa.Schema:
        """The pyarrow schema, with unit and description in each field's metadata."""
        return pa.schema(
            [
                pa.field(
                    column.name,
                    TYPES[column.type],
                    nullable=column.nullable,
                    metadata={"unit": column.unit, "description": column.description},
                )
                for column in self.columns
            ]
        )


def _array(schema: Schema, column: Column, values: Sequence[Any]) -> pa.Array:
    accepted = {"int64": (int, np.integer), "float64": (float, np.floating), "string": (str,), "bool": (bool, np.bool_)}
    listed = list(values)
    for value in listed:
        if value is None and column.nullable:
            continue
        fits = isinstance(value, accepted[column.type])
        if column.type == "int64":
            fits = fits and not isinstance(value, bool) and -(2**63) <= value < 2**63
        if not fits:
            raise InputError(f"table {schema.name}: column '{column.name}' takes {column.type}, not {value!r}")
    return pa.array(listed, type=TYPES[column.type])


def _arrange(schema: Schema, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    names = [column.name for column in schema.columns]
    listed = list(rows)
    for row in listed:
        if set(row) != set(names):
            unknown, missing = sorted(set(row) - set(names)), sorted(set(names) - set(row))
            raise InputError(f"table {schema.name}: unknown columns {unknown}, missing columns {missing}")
    with suppress(TypeError):  # a key of a wrong type is named by the check of its column below
        listed.sort(key=lambda row: tuple(row[key] for key in schema.keys))
    arrays = [_array(schema, column, [row[column.name] for row in listed]) for column in schema.columns]
    identities = [tuple(row[key] for key in schema.keys) for row in listed]
    if len(set(identities)) != len(identities):
        repeated = next(one for one in identities if identities.count(one) > 1)
        raise InputError(f"table {schema.name}: key {dict(zip(schema.keys, repeated, strict=True))} stands twice")
    return pa.Table.from_arrays(arrays, schema=schema.arrow())


def write_table(path: Path, schema: Schema, rows: Iterable[Mapping[str, Any]], provenance: Provenance) -> None:
    """Write `rows` (one mapping per row, exactly the schema's columns) to `path`, whole or not at all.

    Raises InputError for a row that does not fit the schema, naming the column and the value.
    """
    table = _arrange(schema, rows)
    header = {"schema": schema.name, "version": schema.version, **provenance.as_json()}
    write_parquet(path, table, header)


@contextmanager
def parquet_writer(path: Path, schema: pa.Schema, header: Mapping[str, Any]) -> Iterator[pq.ParquetWriter]:
    """A writer of arrow tables to `path`, with `header` as its one metadata value; the bytes depend on nothing else."""
    schema = schema.with_metadata({METADATA_KEY: json.dumps(header, sort_keys=True)})
    with (
        replacing(path) as temporary,
        pq.ParquetWriter(temporary, schema, compression="zstd", store_schema=True) as writer,
    ):
        yield writer


def write_parquet(path: Path, table: pa.Table, header: Mapping[str, Any]) -> None:
    """Write one arrow table with `header` as its one metadata value."""
    with parquet_writer(path, table.schema, header) as writer:
        writer.write_table(table.replace_schema_metadata(writer.schema.metadata))


def read_header(path: Path) -> dict[str, Any]:
    """The metadata value of a table written here. Raises InputError for any other file."""
    try:
        metadata = pq.read_schema(path).metadata or {}
        return dict(json.loads(metadata[METADATA_KEY]))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError, RecursionError):
        raise InputError(f"{path}: not a whole Parquet table written by jumpboard; {REMEDY}") from None


def read_table(path: Path, schema: Schema) -> pa.Table:
    """Read a table and hold it against `schema`: name, version, columns, types and nulls.

    Raises InputError naming the file and the first column that differs.
    """
    header = read_header(path)
    found = (header.get("schema"), header.get("version"))
    if found != (schema.name, schema.version):
        raise InputError(f"{path}: holds table {found[0]} version {found[1]}, not {schema.name} {schema.version}")
    try:
        table = pq.ParquetFile(path).read()
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path}: cannot be read: {error}; {REMEDY}") from None
    expected = schema.arrow()
    if table.column_names != expected.names:
        raise InputError(f"{path}: columns {table.column_names}, not {expected.names}")
    for field in expected:
        if table.schema.field(field.name).type != field.type:
            found_type = table.schema.field(field.name).type
            raise InputError(f"{path}: column '{field.name}' holds {found_type}, not {field.type}")
        if not field.nullable and table.column(field.name).null_count:
            raise InputError(f"{path}: column '{field.name}' lacks values")
    return table


def concatenate(paths: Sequence[Path], schema: Schema) -> list[dict[str, Any]]:
    """The rows of several tables of one schema, in the order of `paths`."""
    rows: list[dict[str, Any]] = []
    for path in paths:
        rows.extend(read_table(path, schema).to_pylist())
    return rows
