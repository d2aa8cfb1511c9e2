"""The splits file: what is written comes back, equal input gives equal bytes, and a damaged file is refused."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jumpboard.artefacts.provenance import Provenance
from jumpboard.artefacts.tables import read_header, write_parquet
from jumpboard.data.rows import SPLITS, Rows
from jumpboard.data.splits import Moments, Splits, channel_moments, given_moments, read_splits, write_splits
from jumpboard.errors import InputError

PROVENANCE = Provenance("c0de", "c0f1", {"a": "b"}, (1,), "bytes", 1, "cpu", {"numpy": "2"})
SPEC = {"shape": [2, 3, 3], "classes": 4}


def random_rows(count: int, shape: tuple[int, ...], classes: int, kind: str, seed: int) -> Rows:
    generator = np.random.default_rng(seed)
    if kind == "uint8":
        x = generator.integers(0, 256, (count, *shape), dtype=np.uint8)
    else:
        x = generator.normal(3.0, 5.0, (count, *shape)).astype(np.float32)
    return Rows(x, generator.integers(0, classes, count))


def small_parts() -> dict[str, Rows]:
    sizes = {"train": 12, "validation": 4, "test": 5}
    return {name: random_rows(size, (2, 3, 3), 4, "float32", size) for name, size in sizes.items()}


def written(path: Path) -> Path:
    write_splits(path, small_parts(), SPEC, PROVENANCE)
    return path


@settings(max_examples=40, deadline=None)
@given(
    shape=st.one_of(st.tuples(st.integers(1, 9)), st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 4))),
    classes=st.integers(1, 12),
    kind=st.sampled_from(["float32", "uint8"]),
    sizes=st.dictionaries(st.sampled_from(SPLITS), st.integers(1, 9), min_size=1),
    seed=st.integers(0, 1000),
)
def test_round_trip(shape: tuple[int, ...], classes: int, kind: str, sizes: dict[str, int], seed: int) -> None:
    """Whatever the splits, type and shape, the same samples come back with the same labels in the same split, the
    header's moments are those of the training split, and a second write gives the same bytes."""
    parts = {name: random_rows(size, shape, classes, kind, seed + i) for i, (name, size) in enumerate(sizes.items())}
    spec = {"shape": list(shape), "classes": classes}
    channels = shape[0] if len(shape) > 1 else 1
    given_moments = None if "train" in parts else Moments((0.25,) * channels, (2.0,) * channels)
    with TemporaryDirectory() as folder:
        path, second = Path(folder) / "one.parquet", Path(folder) / "two.parquet"
        write_splits(path, parts, spec, PROVENANCE, given_moments)
        write_splits(second, dict(reversed(parts.items())), spec, PROVENANCE, given_moments)
        assert path.read_bytes() == second.read_bytes()
        splits = read_splits(path)
        table = pq.read_table(path)
    assert (splits.shape, splits.classes, splits.sizes) == (shape, classes, sizes)
    assert list(splits.sizes) == [name for name in SPLITS if name in sizes]
    for name, part in parts.items():
        assert splits.rows(name).x.dtype == kind
        np.testing.assert_array_equal(splits.rows(name).x, part.x)
        np.testing.assert_array_equal(splits.rows(name).y, part.y)
    stored = np.array(table.column("x").to_pylist())
    np.testing.assert_array_equal(stored, np.concatenate([parts[n].x for n in splits.sizes]).reshape(len(stored), -1))
    if given_moments is not None:
        assert splits.moments == given_moments
    else:
        values = np.moveaxis(parts["train"].x.astype(np.float64).reshape(sizes["train"], channels, -1), 1, 0)
        np.testing.assert_allclose(splits.moments.mean, [one.mean() for one in values], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(splits.moments.sd, [one.std() for one in values], rtol=1e-12, atol=1e-12)


def test_training_subsets_are_nested(tmp_path: Path) -> None:
    """Loss against sample size compares nets on growing sets: a larger set must contain the smaller ones."""
    splits = read_splits(written(tmp_path / "splits.parquet"))
    train = splits.rows("train")
    for samples in range(1, 13):
        subset = splits.training_subset(samples)
        np.testing.assert_array_equal(subset.x, train.x[:samples])
        np.testing.assert_array_equal(subset.y, train.y[:samples])


@pytest.mark.parametrize("samples", [0, -1, 13])
def test_impossible_training_subsets_are_refused(tmp_path: Path, samples: int) -> None:
    """A grid that asks for more samples than there are must not silently train on fewer."""
    splits = read_splits(written(tmp_path / "splits.parquet"))
    with pytest.raises(InputError, match=f"^{samples} training samples.*12$"):
        splits.training_subset(samples)


def test_normalised_training_rows_have_mean_0_and_sd_1(tmp_path: Path) -> None:
    """Channel by channel, and the other splits with the training split's moments, never their own."""
    splits = read_splits(written(tmp_path / "splits.parquet"))
    x = splits.normalised(splits.rows("train"))
    assert x.dtype == np.float32
    np.testing.assert_allclose(x.mean(axis=(0, 2, 3)), 0, atol=1e-6)
    np.testing.assert_allclose(x.std(axis=(0, 2, 3)), 1, atol=1e-6)
    test = splits.rows("test")
    moments = channel_moments(splits.rows("train"))
    mean, sd = (np.reshape(one, (2, 1, 1)) for one in (moments.mean, moments.sd))
    np.testing.assert_allclose(splits.normalised(test), (test.x - mean) / sd, rtol=1e-5, atol=1e-6)
    with pytest.raises(InputError, match=r"\[40\].*\[2, 3, 3\]"):
        splits.normalised(random_rows(3, (40,), 4, "float32", 0))


@settings(max_examples=30, deadline=None)
@given(value=st.floats(-1e6, 1e6, width=32), count=st.integers(1, 50))
def test_a_constant_channel_is_centred_and_not_divided(value: float, count: int) -> None:
    """The sd of a constant channel is exactly 0 whatever its value (a remainder of 1e-17 would blow other splits
    up) and counts as 1."""
    x = np.full((count, 2, 2, 2), value, dtype=np.float32)
    x[:, 1] = np.arange(count * 4).reshape(count, 2, 2)
    rows = Rows(x, np.zeros(count, dtype=np.int64))
    moments = channel_moments(rows)
    assert (moments.mean[0], moments.sd[0]) == (float(np.float32(value)), 0.0)
    splits = Splits({"train": rows}, (2, 2, 2), 1, moments)
    other = Rows(x + np.float32(1), rows.y)
    np.testing.assert_array_equal(splits.normalised(other)[:, 0], (x[:, 0] + np.float32(1)) - np.float32(value))


def test_constants_of_an_entry_stand_for_the_moments(tmp_path: Path) -> None:
    """Pretrained nets were trained with constants, not with the moments of the rows at hand."""
    block = {"mean": [1, 2.5], "sd": [4, 0.5]}
    moments = given_moments({**SPEC, "normalise": block})
    assert given_moments(SPEC) is None
    write_splits(tmp_path / "splits.parquet", {"test": small_parts()["test"]}, SPEC, PROVENANCE, moments)
    splits = read_splits(tmp_path / "splits.parquet")
    x = splits.rows("test").x
    mean, sd = (np.array(block[name]).reshape(1, 2, 1, 1) for name in ("mean", "sd"))
    np.testing.assert_allclose(splits.normalised(splits.rows("test")), (x - mean) / sd, rtol=1e-5, atol=1e-6)


def test_rows_can_be_given_to_torch_without_a_warning(tmp_path: Path) -> None:
    """Read-only arrays would share memory with a tensor that torch believes it may write to."""
    splits = read_splits(written(tmp_path / "splits.parquet"))
    rows = splits.rows("train")
    assert rows.x.flags.writeable
    assert rows.y.flags.writeable
    torch.from_numpy(rows.y)[0] = 1
    assert splits.rows("train").y[0] == 1


def test_header_states_how_the_file_came_about(tmp_path: Path) -> None:
    """The audit and `inspect` read digests, sizes and moments from the header alone; columns say what they hold."""
    path = written(tmp_path / "splits.parquet")
    header = read_header(path)
    assert {key: header[key] for key in PROVENANCE.as_json()} == PROVENANCE.as_json()
    assert (header["schema"], header["version"]) == ("splits", 1)
    assert header["sizes"] == {"train": 12, "validation": 4, "test": 5}
    assert (header["shape"], header["classes"]) == ([2, 3, 3], 4)
    schema = pq.ParquetFile(path).schema_arrow
    assert all({b"unit", b"description"} <= set(schema.field(name).metadata) for name in ("x", "y"))


def changed(part: Rows, **changes: Any) -> Rows:
    return Rows(changes.get("x", part.x), changes.get("y", part.y))


def with_value(array: np.ndarray, index: tuple[int, ...], value: float) -> np.ndarray:
    array = array.copy()
    array[index] = value
    return array


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda p: {**p, "test": changed(p["test"], y=with_value(p["test"].y, (2,), 4))}, "'test'.*to 4.*0 to 3"),
        (lambda p: {**p, "test": changed(p["test"], y=with_value(p["test"].y, (2,), -1))}, "'test'.*from -1"),
        (lambda p: {**p, "train": changed(p["train"], x=with_value(p["train"].x, (1, 0, 0, 0), np.nan))}, "1 values"),
        (lambda p: {**p, "train": changed(p["train"], y=p["train"].y[:-1])}, "12 samples and 11 labels"),
        (lambda p: {**p, "train": changed(p["train"], y=p["train"].y.astype(np.int32))}, "labels are int32"),
        (lambda p: {**p, "train": changed(p["train"], x=p["train"].x.astype(np.float64))}, "samples are float64"),
        (lambda p: {**p, "train": changed(p["train"], x=p["train"].x[:, :1])}, r"\[1, 3, 3\], not \[2, 3, 3\]"),
        (lambda p: {**p, "test": changed(p["test"], x=p["test"].x.astype(np.uint8))}, "float32 and uint8"),
        (lambda p: {**p, "train": p["train"].slice(0, 0)}, "'train': 0 samples and 0 labels"),
        (lambda p: {**p, "valid": p["test"]}, "'valid'.*train, validation, test, fresh"),
        (lambda p: {"test": p["test"]}, "normalise_as"),
        (lambda p: {}, r"splits \[\]"),
    ],
)
def test_bad_rows_are_not_written(
    tmp_path: Path, change: Callable[[dict[str, Rows]], dict[str, Rows]], named: str
) -> None:
    """Rows that do not fit their entry end in one line with the file's name, and leave no file."""
    path = tmp_path / "splits.parquet"
    with pytest.raises(InputError, match=named) as caught:
        write_splits(path, change(small_parts()), SPEC, PROVENANCE)
    assert str(caught.value).startswith(str(path))
    assert list(tmp_path.iterdir()) == []


def test_moments_of_another_shape_are_not_written(tmp_path: Path) -> None:
    """`normalise_as` must name a set with the same channels."""
    with pytest.raises(InputError, match=r"1 means and 1 sds.*2 channels"):
        write_splits(tmp_path / "splits.parquet", small_parts(), SPEC, PROVENANCE, Moments((0.0,), (1.0,)))
    assert list(tmp_path.iterdir()) == []


def null_in(table: pa.Table, name: str) -> pa.Table:
    column = table.column(name).combine_chunks()
    mask = pa.array([False] * (len(column) - 1) + [True])
    with_null = pa.array(
        [None if hide else one for one, hide in zip(column.to_pylist(), mask.to_pylist(), strict=True)]
    )
    return replaced(table, name, with_null.cast(column.type))


def replaced(table: pa.Table, name: str, column: pa.Array) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, column)


def null_inside(table: pa.Table) -> pa.Table:
    values = table.column("x").combine_chunks().flatten().to_pylist()
    values[7] = None
    return replaced(table, "x", pa.FixedSizeListArray.from_arrays(pa.array(values, type=pa.float32()), 18))


def labels(table: pa.Table, value: int) -> pa.Table:
    return replaced(table, "y", pa.array([value] + [0] * (table.num_rows - 1), type=pa.int64()))


def not_finite(table: pa.Table) -> pa.Table:
    values = table.column("x").combine_chunks().flatten().to_numpy().copy()
    values[-1] = np.inf
    return replaced(table, "x", pa.FixedSizeListArray.from_arrays(pa.array(values), 18))


@pytest.mark.parametrize(
    ("damage", "facts", "named"),
    [
        (lambda t: t, {"schema": "curves"}, "holds table curves version 1, not splits 1"),
        (lambda t: t, {"version": 2}, "holds table splits version 2, not splits 1"),
        (lambda t: t, {"sizes": {"train": 12, "validation": 4, "test": 6}}, "21 rows.*22"),
        (lambda t: t.slice(0, 20), {}, "20 rows.*21"),
        (lambda t: t, {"sizes": {"train": 22, "test": -1}}, "'sizes'.*-1"),
        (lambda t: t, {"sizes": {"training": 21}}, "'sizes'.*training"),
        (lambda t: t, {"sizes": {}}, "'sizes'.*{}"),
        (lambda t: t, {"shape": [3, 3]}, "2 means and 2 sds.*3 channels"),
        (lambda t: t, {"shape": [2, 3, 4]}, "columns are"),
        (lambda t: t, {"shape": None}, "'shape'.*None"),
        (lambda t: t, {"classes": 0}, "'classes'.*0"),
        (lambda t: t, {"classes": True}, "'classes'.*True"),
        (lambda t: t, {"mean": [0.0, float("nan")]}, "'mean'.*nan"),
        (lambda t: t, {"sd": [1.0, -1.0]}, "'sd'.*-1.0"),
        (lambda t: t, {"sd": None}, "'sd'.*None"),
        (lambda t: t.select(["x"]), {}, "columns are"),
        (lambda t: t.append_column("z", t.column("y")), {}, "columns are"),
        (lambda t: replaced(t, "y", t.column("y").cast(pa.int32())), {}, "columns are.*int32"),
        (lambda t: replaced(t, "x", t.column("x").cast(pa.list_(pa.float64(), 18))), {}, "columns are.*double"),
        (lambda t: null_in(t, "x"), {}, "nulls"),
        (lambda t: null_in(t, "y"), {}, "nulls"),
        (null_inside, {}, "nulls"),
        (lambda t: labels(t, 4), {}, "'train'.*to 4; accepted: 0 to 3"),
        (lambda t: labels(t, -1), {}, "'train'.*from -1"),
        (not_finite, {}, "'test': 1 values are not finite"),
    ],
)
def test_a_wrong_file_is_refused(
    tmp_path: Path, damage: Callable[[pa.Table], pa.Table], facts: dict[str, Any], named: str
) -> None:
    """A file whose header and columns disagree would give a training run on wrong rows: one line names the file."""
    path = written(tmp_path / "splits.parquet")
    table, header = pq.ParquetFile(path).read(), read_header(path)
    write_parquet(path, damage(table), {**header, **facts})
    with pytest.raises(InputError, match=named) as caught:
        read_splits(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    """Cut short, overwritten in its data, not Parquet, without our header, or not there: always the file's name."""
    path = written(tmp_path / "splits.parquet")
    whole = path.read_bytes()
    bare = tmp_path / "bare.parquet"
    pq.write_table(pq.ParquetFile(path).read().replace_schema_metadata(None), bare)
    broken = {
        "short": whole[:-20],
        "overwritten": whole[:40] + b"\xff" * 200 + whole[240:],
        "text": b"label,pixel\n1,2\n",
        "empty": b"",
        "bare": bare.read_bytes(),
    }
    for name, content in broken.items():
        damaged = tmp_path / f"{name}.parquet"
        damaged.write_bytes(content)
        with pytest.raises(InputError, match=rf"{name}\.parquet: "):
            read_splits(damaged)
    with pytest.raises(InputError, match=r"nowhere\.parquet: no such file"):
        read_splits(tmp_path / "nowhere.parquet")


def test_an_unknown_split_is_named(tmp_path: Path) -> None:
    """A cell that asks for a split its data set does not have learns which there are."""
    splits = read_splits(written(tmp_path / "splits.parquet"))
    with pytest.raises(InputError, match=r"'fresh'.*train, validation, test"):
        splits.rows("fresh")
