"""Picture sets larger than memory: what is decoded, held and read of them is counted, not timed."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import pictures
from jumpboard.artefacts.provenance import Provenance
from jumpboard.data.draw import draw_rows
from jumpboard.data.layouts import class_folders, hub_parquet
from jumpboard.data.layouts.decode import decode
from jumpboard.data.rows import Rows
from jumpboard.data.splits import read_splits, write_splits
from jumpboard.errors import InputError
from pictures import as_set, planted, spec

PROVENANCE = Provenance("c0de", "c0f1", {}, (1,), "bytes", 1, "cpu", {})


def streamed(folder: Path, count: int) -> dict[str, Any]:
    """A set of `count` training pictures of 12 kB in class folders."""
    parts = planted((3, 64, 64), 2, {"train": count, "test": 4})
    pictures.class_folders(folder, parts)
    return spec(parts, 2)


def test_only_the_pictures_of_the_splits_are_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand rows of ImageNet must not cost the decoding of all 1.3 million pictures."""
    parts, decoded = planted(), []
    pictures.class_folders(tmp_path / "folders", parts)
    pictures.hub_parquet(tmp_path / "hub", parts)
    for module, layout in ((class_folders, "folders"), (hub_parquet, "hub")):
        decoded.clear()
        monkeypatch.setattr(module, "decode", lambda *given: decoded.append(given[1]) or decode(*given))
        drawn = draw_rows(spec(parts, splits={"train": 6, "validation": 2, "test": 3}), tmp_path / layout)
        assert len(set(decoded)) == len(decoded) == 11
        assert set(as_set(drawn["train"])) < set(as_set(parts["train"]))


def peaks(tmp_path: Path, count: int) -> dict[str, int]:
    """The most bytes that Python and numpy hold while a set of `count` pictures is drawn, written and read back; arrow
    holds one row group, which is ten pictures."""
    copy, scratch, path = (tmp_path / f"{name} {count}" for name in ("copy", "scratch", "splits.parquet"))
    entry = streamed(copy, count)
    rows: dict[str, Rows] = {}
    actions: dict[str, Callable[[], Any]] = {
        "draw": lambda: rows.update(draw_rows(entry, copy, scratch)),
        "write": lambda: write_splits(path, rows, entry, PROVENANCE),
        "read": lambda: read_splits(path, scratch=scratch),
    }
    found = {}
    for name, action in actions.items():
        tracemalloc.start()
        action()
        found[name] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert list(scratch.iterdir()) == []
    assert pq.ParquetFile(path).metadata.num_row_groups == count // 10 + 1
    assert as_set(read_splits(path).rows("train")) == as_set(rows["train"])
    return found


def test_memory_does_not_grow_with_the_number_of_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A set four times as large takes no more memory, and no file of its own is left: a part of ImageNet is larger
    than the memory of most machines."""
    picture = 3 * 64 * 64
    monkeypatch.setattr("jumpboard.data.rows.CHUNK_BYTES", 10 * picture)
    few, many = peaks(tmp_path, 60), peaks(tmp_path, 240)
    for name in few:
        assert many[name] - few[name] < 30 * picture, f"{name}: {few[name]}, {many[name]}; all are {240 * picture}"


def test_a_failed_draw_leaves_no_file(tmp_path: Path) -> None:
    """The file that holds the rows has no name from the start, so that not even a kill leaves it behind."""
    entry = streamed(tmp_path / "copy", 20)
    path = max((tmp_path / "copy" / "train").rglob("*.png"))
    path.write_bytes(path.read_bytes()[:-900])
    with pytest.raises(InputError, match="cannot be decoded"):
        draw_rows(entry, tmp_path / "copy", tmp_path / "scratch")
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_reader_of_the_first_rows_reads_only_their_row_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two thousand test rows of ImageNet are 0.3 GB, its file 3 GB."""
    monkeypatch.setattr("jumpboard.data.rows.CHUNK", 5)
    path, parts, groups = tmp_path / "splits.parquet", planted(), []
    write_splits(path, parts, spec(parts), PROVENANCE)
    original = pq.ParquetFile.read_row_group
    monkeypatch.setattr(
        pq.ParquetFile, "read_row_group", lambda file, group: groups.append(group) or original(file, group)
    )
    splits = read_splits(path, {"test": 7, "train": 5})
    assert groups == [0, 8, 9]
    assert splits.sizes == {"train": 5, "test": 7}
    for name, count in splits.sizes.items():
        np.testing.assert_array_equal(splits.rows(name).x, parts[name].x[:count])
        np.testing.assert_array_equal(splits.rows(name).y, parts[name].y[:count])
    groups.clear()
    assert read_splits(path, {}).moments == splits.moments
    assert groups == []
    assert read_splits(path, {"test": 99}).sizes == {"test": 20}
    with pytest.raises(InputError, match=r"splits.parquet: split 'validation' is not there; .*train, test"):
        read_splits(path, {"validation": 1})
