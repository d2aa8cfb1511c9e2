"""Every number of this project passes through a table: one that is silently dropped, widened, cut short or mistaken for
another column would be published with nobody the wiser."""

import importlib
import json
import math
import pkgutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumpboard import figures, schemas
from jumpboard.artefacts import paths
from jumpboard.artefacts.files import REMEDY, replacing
from jumpboard.artefacts.provenance import Provenance
from jumpboard.artefacts.tables import Column, Schema, concatenate, read_header, read_table, write_table
from jumpboard.errors import InputError
from jumpboard.schemas.keys import CELL, SEED
from jumpboard.schemas.metrics import METRICS

SCHEMA = Schema(
    "loss",
    1,
    (
        *CELL,
        SEED,
        Column("loss", "float64", "nats", "test loss; NaN where the run diverged"),
        Column("low", "float64", "nats", "lower limit; null where there is none", nullable=True),
        Column("trained", "bool", "1", "whether it was trained to the end"),
    ),
)
PROVENANCE = Provenance("c0de", "c0f1", {"b": "2", "a": "1"}, (0, 1), "bytes", 1, "cpu", {"numpy": "2", "arrow": "1"})
ALL_SCHEMAS = [
    value
    for package in (schemas, figures)
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
    for name, value in vars(importlib.import_module(module.name)).items()
    if isinstance(value, Schema) and name in (value.name.upper(), "SCHEMA")
]


def row(**changes: Any) -> dict[str, Any]:
    plain = {"dataset": "digits", "arch": "resnet", "depth": 3, "width": 2, "samples": 100, "seed": 0}
    return {**plain, "loss": 1.5, "low": 1.0, "trained": True, **changes}


def written(path: Path, *rows: dict[str, Any]) -> Path:
    write_table(path, SCHEMA, rows, PROVENANCE)
    return path


def forged(path: Path, schema: pa.Schema, change: Callable[[pa.Table], pa.Table] = lambda table: table) -> Path:
    """A file with the header of a table `loss`, but the given arrow schema: what another program might leave."""
    values = {name: [value] for name, value in row().items() if name in schema.names}
    header = {"schema": SCHEMA.name, "version": SCHEMA.version, **PROVENANCE.as_json()}
    table = change(pa.table(values).cast(schema)).replace_schema_metadata({"jumpboard": json.dumps(header)})
    pq.write_table(table, path)
    return path


def message(action: Callable[[], Any]) -> str:
    """The one line that an action is refused with."""
    with pytest.raises(InputError) as caught:
        action()
    text = str(caught.value)
    assert "\n" not in text
    return text


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"extra": 1.0}, ["unknown columns ['extra']", "missing columns []"]),
        ({"depth": True}, ["'depth' takes int64, not True"]),
        ({"depth": np.True_}, ["'depth' takes int64", "True"]),
        ({"depth": 3.0}, ["'depth' takes int64, not 3.0"]),
        ({"depth": "3"}, ["'depth' takes int64, not '3'"]),
        ({"depth": 2**63}, ["'depth' takes int64, not 9223372036854775808"]),
        ({"depth": None}, ["'depth' takes int64, not None"]),
        ({"loss": 2}, ["'loss' takes float64, not 2"]),
        ({"loss": True}, ["'loss' takes float64, not True"]),
        ({"loss": None}, ["'loss' takes float64, not None"]),
        ({"loss": "nan"}, ["'loss' takes float64, not 'nan'"]),
        ({"low": "1"}, ["'low' takes float64, not '1'"]),
        ({"trained": 1}, ["'trained' takes bool, not 1"]),
        ({"arch": b"resnet"}, ["'arch' takes string, not b'resnet'"]),
    ],
)
def test_writer_refuses_what_pyarrow_would_bend(tmp_path: Path, changes: dict[str, Any], parts: list[str]) -> None:
    """pyarrow drops unknown columns and turns a bool into 1.0: a wrong number would stand in the table for good."""
    text = message(lambda: written(tmp_path / "t.parquet", row(), row(seed=1) | changes))
    assert all(part in text for part in ["table loss", *parts]), text
    assert list(tmp_path.iterdir()) == []


def test_writer_refuses_a_missing_column(tmp_path: Path) -> None:
    """A forgotten metric would otherwise look like one that was never defined."""
    incomplete = {name: value for name, value in row().items() if name != "loss"}
    assert "missing columns ['loss']" in message(lambda: written(tmp_path / "t.parquet", incomplete))


def test_writer_refuses_a_repeated_key(tmp_path: Path) -> None:
    """The same run counted twice would halve the variance that a claim's interval rests on."""
    text = message(lambda: written(tmp_path / "t.parquet", row(seed=4), row(seed=5), row(seed=4, loss=2.0)))
    assert "'seed': 4" in text
    assert "twice" in text


def test_narrow_numbers_keep_the_type_of_the_schema(tmp_path: Path) -> None:
    """A table written from float32 values would not concatenate with its neighbours (arrow #37068)."""
    narrow = row(depth=np.int32(3), loss=np.float32(0.5), low=np.float16(0.25), trained=np.bool_(True))
    table = read_table(written(tmp_path / "t.parquet", narrow), SCHEMA)
    assert table.schema.types == SCHEMA.arrow().types
    assert table.to_pylist() == [row(loss=0.5, low=0.25)]


def test_nan_and_missing_are_different_things(tmp_path: Path) -> None:
    """A diverged run (NaN) read as a missing one would drop out of the count of seeds unseen."""
    path = written(tmp_path / "t.parquet", row(seed=0, loss=math.nan), row(seed=1, low=math.nan), row(seed=2, low=None))
    first, second, third = read_table(path, SCHEMA).to_pylist()
    assert math.isnan(first["loss"])
    assert math.isnan(second["low"])
    assert third["low"] is None
    assert read_table(path, SCHEMA).column("low").null_count == 1


def test_runs_with_and_without_nan_concatenate(tmp_path: Path) -> None:
    """Arrow #39670: the table of a run whose metric is all NaN or all null must still join those of its fellows."""
    files = [
        written(tmp_path / "a.parquet", row(seed=0, loss=math.nan, low=None)),
        written(tmp_path / "b.parquet", row(seed=1)),
        written(tmp_path / "c.parquet"),
    ]
    assert [one["seed"] for one in concatenate(files, SCHEMA)] == [0, 1]
    joined = pa.concat_tables([pq.read_table(path) for path in files])  # no promotion: equal schemas
    assert joined.schema.types == SCHEMA.arrow().types
    assert pq.read_table(tmp_path).num_rows == 2


def test_every_field_says_unit_and_meaning(tmp_path: Path) -> None:
    """A column without a unit is a number that nobody can check."""
    fields = pq.read_schema(written(tmp_path / "t.parquet", row()))
    for column in SCHEMA.columns:
        field = fields.field(column.name)
        assert field.metadata == {b"unit": column.unit.encode(), b"description": column.description.encode()}
        assert field.nullable == column.nullable


@pytest.mark.parametrize("schema", ALL_SCHEMAS, ids=lambda schema: schema.name)
def test_schemas_of_the_project(schema: Schema) -> None:
    """Rows could not be joined by keys that are floats, null, or scattered among the values; nor read without units."""
    assert all(column.unit and len(column.description) > 5 for column in schema.columns)
    keys = [column for column in schema.columns if column.key]
    assert tuple(keys) == schema.columns[: len(keys)]
    assert all(column.type in ("int64", "string") and not column.nullable for column in keys)
    assert len({column.name for column in schema.columns}) == len(schema.columns)


ROWS = [row(depth=depth, seed=seed, loss=depth / 7 + seed) for depth in (1, 2, 12) for seed in (0, 1)]


@settings(max_examples=20, deadline=None)
@given(order=st.permutations(ROWS), reverse=st.booleans())
def test_bytes_depend_on_nothing_but_rows_and_provenance(
    tmp_path_factory: pytest.TempPathFactory, order: list[dict[str, Any]], reverse: bool
) -> None:
    """Were the bytes to depend on the order of the work, no second run could be compared with the first."""
    place = tmp_path_factory.mktemp("order")
    again = [dict(reversed(one.items())) if reverse else one for one in order]
    shuffled = Provenance(
        **{**vars(PROVENANCE), "parents": {"a": "1", "b": "2"}, "versions": {"arrow": "1", "numpy": "2"}}
    )
    write_table(place / "other" / "name.parquet", SCHEMA, again, shuffled)
    assert (place / "other" / "name.parquet").read_bytes() == written(place / "t.parquet", *ROWS).read_bytes()
    keys = [(one["depth"], one["seed"]) for one in pq.read_table(place / "t.parquet").to_pylist()]
    assert keys == sorted(keys)


def test_header_holds_provenance_and_nothing_of_the_moment(tmp_path: Path) -> None:
    """A clock or path in the header would make every run look changed."""
    header = read_header(written(tmp_path / "t.parquet", row()))
    assert header == {"schema": "loss", "version": 1, **PROVENANCE.as_json()}
    assert str(tmp_path) not in json.dumps(header)


def test_reader_names_the_column_of_a_wrong_type(tmp_path: Path) -> None:
    """Arrow #37068: a narrower column of another program must be named, not widened or failed on far away."""
    for name, kind in (("depth", pa.int32()), ("loss", pa.float32()), ("trained", pa.int8()), ("arch", pa.binary())):
        fields = [pa.field(one.name, kind if one.name == name else one.type) for one in SCHEMA.arrow()]
        path = forged(tmp_path / "t.parquet", pa.schema(fields))
        text = message(lambda path=path: read_table(path, SCHEMA))
        assert f"column '{name}' holds {kind}" in text
        assert str(path) in text


def test_reader_names_null_where_none_belongs(tmp_path: Path) -> None:
    """A null loss would become NaN in numpy, and a missing run a diverged one."""

    def emptied(table: pa.Table) -> pa.Table:
        return table.set_column(table.column_names.index("loss"), "loss", pa.array([None], pa.float64()))

    path = forged(tmp_path / "t.parquet", pa.schema([pa.field(one.name, one.type) for one in SCHEMA.arrow()]), emptied)
    assert "column 'loss' lacks values" in message(lambda: read_table(path, SCHEMA))


def test_reader_refuses_other_columns_schemas_and_versions(tmp_path: Path) -> None:
    """A table of last year's meaning under this year's name would be read as if it were this year's."""
    path = written(tmp_path / "t.parquet", row())
    newer = Schema(SCHEMA.name, 2, SCHEMA.columns)
    assert "holds table loss version 1, not loss 2" in message(lambda: read_table(path, newer))
    assert "not metrics 1" in message(lambda: read_table(path, METRICS))
    fewer = pa.schema([one for one in SCHEMA.arrow() if one.name != "low"])
    assert "columns" in message(lambda: read_table(forged(tmp_path / "f.parquet", fewer), SCHEMA))


def _truncated(path: Path) -> None:
    written(path, row())
    path.write_bytes(path.read_bytes()[:-20])


def _foreign_header(text: str) -> Callable[[Path], None]:
    return lambda path: pq.write_table(pa.table({"x": [1]}).replace_schema_metadata({"jumpboard": text}), path)


BAD_FILES: dict[str, Callable[[Path], Any]] = {
    "truncated": _truncated,
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("depth,width\n1,2\n"),
    "folder": lambda path: path.mkdir(),
    "foreign": lambda path: pq.write_table(pa.table({"x": [1]}), path),
    "foreign header": _foreign_header("no JSON"),
    "header is a list": _foreign_header("[1]"),
    "header is a number": _foreign_header("5"),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_damaged_and_foreign_files_are_named_in_one_line(tmp_path: Path, kind: str) -> None:
    """A user who copied half a file must learn which one, not read a traceback of pyarrow."""
    path = tmp_path / "t.parquet"
    BAD_FILES[kind](path)
    for action in (lambda: read_header(path), lambda: read_table(path, SCHEMA)):
        assert message(action) == f"{path}: not a whole Parquet table written by jumpboard; {REMEDY}"


def test_absent_file_is_named(tmp_path: Path) -> None:
    """As above, for a file that was never copied."""
    assert message(lambda: read_table(tmp_path / "t.parquet", SCHEMA)) == f"{tmp_path / 't.parquet'}: no such file"


def test_file_cut_in_its_data_is_refused(tmp_path: Path) -> None:
    """A whole footer over missing pages must not be read as a shorter table."""
    path = written(tmp_path / "t.parquet", *[row(seed=seed, loss=seed * math.pi) for seed in range(5000)])
    content = path.read_bytes()
    path.write_bytes(content[:1000] + content[9000:])
    assert str(path) in message(lambda: read_table(path, SCHEMA))


def test_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    """A half-written table under its final name would be read as the whole one."""
    path = written(tmp_path / "t.parquet", row())
    before = path.read_bytes()

    def fail() -> None:
        with replacing(path) as temporary:
            temporary.write_bytes(before[:50])
            assert not (tmp_path / "u.parquet").exists()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_reader_keeps_the_table_that_it_opened(tmp_path: Path) -> None:
    """A table written over in place would give a reader the head of one run and the tail of another."""
    path = written(tmp_path / "t.parquet", row(seed=1))
    before = path.read_bytes()
    with path.open("rb") as handle:
        start = handle.read(10)
        written(path, row(seed=2), row(seed=3))
        assert start + handle.read() == before
    assert path.read_bytes() != before


KILLED = """
import os, signal, sys
from pathlib import Path
from jumpboard.artefacts.files import replacing
with replacing(Path(sys.argv[1])) as temporary:
    temporary.write_bytes(b"PAR1 half a file")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_killed_write_is_invisible_and_swept_up(tmp_path: Path) -> None:
    """After kill -9 a collecting reader must see the folder as it was, and the rerun must not pile up remains."""
    written(tmp_path / "a.parquet", row(seed=1))
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "b.parquet")], check=False)
    visible = [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")]
    assert visible == ["a.parquet"]
    assert len(list(tmp_path.iterdir())) == 2, "the kill came too early to test anything"
    assert pq.read_table(tmp_path).num_rows == ds.dataset(tmp_path).count_rows() == 1
    written(tmp_path / "b.parquet", row(seed=2))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.parquet", "b.parquet"]


def test_table_folders_open_as_they_are(tmp_path: Path) -> None:
    """A reader with pandas or DuckDB opens the folder, not the files: paths must not read as partitions."""
    cells = [(depth, width, samples) for depth in (1, 2) for width in (4, 8) for samples in (100, 1000)]
    for depth, width, samples in cells:
        key = {"dataset": "digits", "arch": "resnet", "depth": depth, "width": width, "samples": samples}
        place = tmp_path / paths.filled(paths.cell_table("train_baseline", "loss"), key)
        written(place, *[row(**key, seed=seed) for seed in (0, 1)])
    folder = tmp_path / "train_baseline" / "loss"
    plain, hive = pq.read_table(folder), ds.dataset(folder, partitioning="hive").to_table()
    for table in (plain, ds.dataset(folder).to_table(), hive):
        assert table.column_names == [column.name for column in SCHEMA.columns]
        assert table.schema.types == SCHEMA.arrow().types
        found = {(one["depth"], one["width"], one["samples"]) for one in table.to_pylist()}
        assert found == set(cells)
        assert table.num_rows == 2 * len(cells)


@settings(max_examples=50, deadline=None)
@given(
    losses=st.lists(st.floats(width=64), min_size=1, max_size=5),
    text=st.text(st.characters(blacklist_categories=["Cs"]), max_size=8),
    width=st.integers(-(2**63), 2**63 - 1),
)
def test_what_is_read_is_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, losses: list[float], text: str, width: int
) -> None:
    """To the last bit: a rounded loss would move a slope."""
    rows = [row(dataset=text, width=width, seed=seed, loss=loss) for seed, loss in enumerate(losses)]
    path = written(tmp_path_factory.mktemp("round") / "t.parquet", *rows)
    read = read_table(path, SCHEMA).to_pylist()
    assert [one["loss"].hex() for one in read] == [loss.hex() for loss in losses]
    assert all(one["dataset"] == text and one["width"] == width for one in read)
