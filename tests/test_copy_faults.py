"""Local copies of picture sets: each fault ends in one line that names it, and no pickle can run anything."""

import io
import os
import pickle
import re
import shutil
import tarfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import pictures
from jumpboard.data.draw import draw_rows
from jumpboard.data.layouts.batch_pickle import read_batch
from jumpboard.data.layouts.decode import decode
from jumpboard.errors import InputError
from pictures import as_png, as_set, planted, spec

GREY = (1, 28, 28)


def refusal(entry: dict[str, Any], place: Path) -> str:
    """The one line that a copy is refused with; nothing is left in the scratch folder."""
    scratch = place.parent / "scratch"
    with pytest.raises(InputError) as caught:
        draw_rows(entry, place, scratch)
    assert not scratch.exists() or not list(scratch.iterdir())
    text = str(caught.value)
    assert "\n" not in text
    return text


def rewritten(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


def emptied(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


def table_changed(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    pq.write_table(change(pq.read_table(path)), path)


def replaced(name: str, values: Any) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.set_column(table.column_names.index(name), name, pa.array(values(table[name])))


def first_becomes(value: Any) -> Callable[[pa.ChunkedArray], list[Any]]:
    return lambda values: [value, *values.to_pylist()[1:]]


def column_damaged(path: Path) -> None:
    """Overwrite the pages of the picture column, and leave the file's foot as it is."""
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(0)
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    rewritten(path, lambda data: data[:start] + b"\xff" * 200 + data[start + 200 :])


def add_member(path: Path, change: Callable[[tarfile.TarInfo], None]) -> None:
    """The archive with one more member, before the others."""
    with tarfile.open(path) as old:
        kept = [(member, old.extractfile(member).read()) for member in old.getmembers()]  # type: ignore[union-attr]
    member = tarfile.TarInfo("cifar-10-batches-bin/readme.html")
    change(member)
    with tarfile.open(path, "w:gz") as tar:
        tar.addfile(member)
        for one, content in kept:
            tar.addfile(one, io.BytesIO(content))


Members = list[tuple[str, bytes]]


def members_changed(path: Path, change: Callable[[Members], Members]) -> None:
    """The archive with other members; they stand in the order of their names."""
    with tarfile.open(path) as old:
        kept = sorted((member.name, old.extractfile(member).read()) for member in old)  # type: ignore[union-attr]
    with tarfile.open(path, "w:gz") as tar:
        for name, content in change(kept):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


def frames(form: str) -> bytes:
    """A picture file of two frames or pages."""
    first, second = (Image.fromarray(x.transpose(1, 2, 0)) for x in planted()["train"].x[:2])
    buffer = io.BytesIO()
    first.save(buffer, format=form, save_all=True, append_images=[second])
    return buffer.getvalue()


def linked(target: str, kind: bytes = tarfile.SYMTYPE) -> Callable[[tarfile.TarInfo], None]:
    def change(member: tarfile.TarInfo) -> None:
        member.type, member.linkname = kind, target

    return change


def named_member(name: str) -> Callable[[tarfile.TarInfo], None]:
    return lambda member: setattr(member, "name", name)


def archive(folder: Path, parts: pictures.Parts) -> None:
    pictures.binary_archive(folder / ARCHIVE, parts)


def any_png(folder: Path) -> Path:
    return min(folder.rglob("*.png"))


TRAIN, SECOND, TEST = (
    f"{name}.parquet" for name in ("train-00000-of-00002", "train-00001-of-00002", "test-00000-of-00001")
)
ARCHIVE, IMAGES, LABELS = "cifar-10-binary.tar.gz", "train-images-idx3-ubyte", "t10k-labels-idx1-ubyte"
FAULTS: dict[str, tuple[Any, Callable[[Path], Any], str]] = {
    "empty class folder": (
        pictures.class_folders, lambda c: emptied(c / "train/class_003"), "train/class_003: class folder without pic",
    ),
    "class that train lacks": (
        pictures.class_folders, lambda c: (c / "test/class_009").rename(c / "test/zebra"), "test/zebra: class that",
    ),
    "too few classes": (
        pictures.class_folders, lambda c: [emptied(c / "train/class_009"), (c / "train/class_009").rmdir()],
        "train: 9 class folders; the entry says 10",
    ),
    "classes that only the other part has": (
        pictures.class_folders,
        lambda c: [[emptied(c / f"train/class_{n:03d}"), (c / f"train/class_{n:03d}").rmdir()] for n in (2, 4)],
        "train: 8 class folders; the entry says 10; missing: class_002, class_004$",
    ),
    "too many classes": (
        pictures.class_folders, lambda c: shutil.copytree(c / "train/class_000", c / "train/backup"),
        "train: 11 class folders; the entry says 10; too many: backup$",
    ),
    "too many classes in all parts": (
        pictures.class_folders,
        lambda c: [shutil.copytree(c / part / "class_000", c / part / "zebra") for part in ("train", "test")],
        "train: 11 class folders; the entry says 10; too many: zebra$",
    ),
    "part without class folders": (
        pictures.class_folders, lambda c: [shutil.move(path, c / "test") for path in (c / "test").glob("*/*.png")]
        and [folder.rmdir() for folder in (c / "test").iterdir() if folder.is_dir()],
        "test: has no class folders; accepted: test/<class>/<picture>",
    ),
    "linked folder in a class folder": (
        pictures.class_folders,
        lambda c: [(c / "train/class_003").rename(c / "real"), (c / "train/class_003").mkdir(),
                   (c / "train/class_003/images").symlink_to(c / "real")],
        "train/class_003/images: link to a folder inside a class folder",
    ),
    "class folders without train": (
        pictures.class_folders, lambda c: [shutil.move(path, c) for path in (c / "train").iterdir()]
        and [(c / "train").rmdir(), shutil.rmtree(c / "test")],
        "copy: no known layout; .*must lie as train/<class>/",
    ),
    "animated picture": (
        pictures.class_folders, lambda c: any_png(c / "train").write_bytes(frames("PNG")),
        r"train/class_\d+/\d+.png: holds 2 pictures",
    ),
    "two validation parts": (
        pictures.class_folders, lambda c: [(c / "val").mkdir(), (c / "validation").mkdir()], "holds val and validation",
    ),
    "no class folders": (pictures.class_folders, lambda c: (c / "train").rename(c / "val"), "has no train part"),
    "no picture": (
        pictures.class_folders, lambda c: rewritten(any_png(c / "train"), lambda _: b"GIF"),
        r"train/class_\d+/\d+.png: is no picture",
    ),
    "picture cut short": (
        pictures.class_folders, lambda c: rewritten(any_png(c / "test"), lambda data: data[:-900]),
        r"test/class_\d+/\d+.png: picture cannot be decoded",
    ),
    "picture of another size": (
        pictures.class_folders,
        lambda c: any_png(c / "train").write_bytes(as_png(planted((3, 16, 16))["train"].x[0])),
        r"\d+.png: picture of shape \[3, 16, 16\]; accepted: \[3, 32, 32\], or options resize",
    ),
    "grey among colour": (
        pictures.class_folders,
        lambda c: any_png(c / "train").write_bytes(as_png(planted((1, 32, 32))["train"].x[0])),
        r"\d+.png: picture of colours L; accepted: RGB",
    ),
    "nothing there": (pictures.class_folders, lambda c: c.rename(c.parent / "moved"), "copy: no such folder"),
    "nothing known there": (
        pictures.class_folders, lambda c: [(c / part).rename(c / f"my_{part}") for part in ("train", "test")],
        "copy: no known layout; accepted: class folders, the hub's",
    ),
    "two layouts": (
        pictures.class_folders, lambda c: pictures.binary_batches(c / "cifar-10-batches-bin", planted()),
        "holds several copies .class folders in .*, CIFAR binary batches in .*cifar-10-batches-bin",
    ),
    "two copies": (
        lambda c, parts: pictures.hub_parquet(c / "one", parts), lambda c: pictures.hub_parquet(c / "two", planted()),
        "several copies .*copy/one, .*copy/two",
    ),
    "no picture column": (
        pictures.hub_parquet, lambda c: table_changed(c / TRAIN, lambda t: t.rename_columns(["pixels", "label"])),
        rf"{TRAIN}: has columns \['pixels', 'label'\]; accepted: one of image, img",
    ),
    "no label column": (
        pictures.hub_parquet, lambda c: table_changed(c / TEST, lambda t: t.select(["img"])),
        f"{TEST}: has columns .*accepted: one of label, fine_label",
    ),
    "labels in words": (
        pictures.hub_parquet, lambda c: table_changed(c / TRAIN, replaced("label", lambda v: ["cat"] * len(v))),
        "column 'label' holds string; accepted: whole numbers",
    ),
    "pictures that are none": (
        pictures.hub_parquet, lambda c: table_changed(c / TRAIN, replaced("img", lambda v: [1] * len(v))),
        "column 'img' holds int64; accepted: a struct",
    ),
    "row without label": (
        pictures.hub_parquet, lambda c: table_changed(c / TRAIN, replaced("label", first_becomes(None))),
        f"{TRAIN}: 1 rows have no label",
    ),
    "row without picture": (
        pictures.hub_parquet,
        lambda c: table_changed(c / TRAIN, replaced("img", first_becomes({"bytes": None, "path": "a"}))),
        f"{TRAIN}: row 0: has no bytes",
    ),
    "labels twice": (
        pictures.hub_parquet, lambda c: table_changed(c / TRAIN, lambda t: t.append_column("label", t["label"])),
        f"{TRAIN}: column 'label' is there 2 times; accepted: once",
    ),
    "pictures twice": (
        pictures.hub_parquet, lambda c: table_changed(c / TEST, lambda t: t.append_column("img", t["label"])),
        f"{TEST}: column 'img' is there 2 times; accepted: once",
    ),
    "bytes that are whole numbers": (
        pictures.hub_parquet, lambda c: table_changed(c / TRAIN, replaced("img", lambda v: [{"bytes": 7}] * len(v))),
        f"{TRAIN}: `bytes` of column 'img' are int64; accepted: binary",
    ),
    "bytes that are text": (
        pictures.hub_parquet, lambda c: table_changed(c / TEST, replaced("img", lambda v: [{"bytes": "x"}] * len(v))),
        f"{TEST}: `bytes` of column 'img' are string; accepted: binary",
    ),
    "label above int64": (
        pictures.hub_parquet,
        lambda c: table_changed(
            c / TEST, replaced("label", lambda v: np.array(first_becomes(2**64 - 1)(v), dtype=np.uint64))
        ),
        f"{TEST}: row 0: label 18446744073709551615; accepted: 0 to 9",
    ),
    "first file of two missing": (
        pictures.hub_parquet, lambda c: (c / TRAIN).unlink(), f"{TRAIN}: is not there, but train-00001-of-00002.par",
    ),
    "second file of two missing": (
        pictures.hub_parquet, lambda c: (c / SECOND).unlink(), f"{SECOND}: is not there, but {TRAIN} is; copy all 2",
    ),
    "file twice": (
        pictures.hub_parquet, lambda c: shutil.copy(c / SECOND, c / SECOND.replace(".parquet", "-0123abcd.parquet")),
        f"{SECOND}: not one set with the files beside it; accepted: each of 2 numbers once",
    ),
    "whole file beside its pieces": (
        pictures.hub_parquet, lambda c: shutil.copy(c / SECOND, c / "train.parquet"), "train.parquet: not one set",
    ),
    "bad bytes in a row": (
        pictures.hub_parquet,
        lambda c: table_changed(c / TEST, replaced("img", first_becomes({"bytes": b"x", "path": "a"}))),
        f"{TEST}: row 0: is no picture",
    ),
    "label out of range in the hub's file": (
        pictures.hub_parquet, lambda c: table_changed(c / TEST, replaced("label", first_becomes(-1))),
        f"{TEST}: row 0: label -1; accepted: 0 to 9",
    ),
    "column that cannot be read": (
        pictures.hub_parquet, lambda c: column_damaged(c / TRAIN), f"{TRAIN}: column 'img' cannot be read",
    ),
    "file cut short": (
        pictures.hub_parquet, lambda c: rewritten(c / TRAIN, lambda data: data[:-10]), f"{TRAIN}: not a whole Parquet",
    ),
    "label out of range in a record": (
        pictures.binary_batches, lambda c: rewritten(c / "data_batch_2.bin", lambda data: b"\x0b" + data[1:]),
        "data_batch_2.bin: row 0: label 11; accepted: 0 to 9",
    ),
    "batch cut short": (
        pictures.binary_batches, lambda c: rewritten(c / "test_batch.bin", lambda data: data[:-1]),
        "test_batch.bin: 61459 bytes are not whole records of 3073",
    ),
    "batch that is not there": (
        pictures.binary_batches, lambda c: (c / "test_batch.bin").unlink(), "test_batch.bin is not there; accepted",
    ),
    "a training batch that is not there": (
        pictures.binary_batches, lambda c: (c / "data_batch_3.bin").unlink(), "copy: data_batch_3.bin is not there",
    ),
    "a Python batch that is not there": (
        pictures.python_batches, lambda c: (c / "data_batch_5").unlink(), "copy: data_batch_5 is not there",
    ),
    "a Python test batch that is not there": (
        pictures.python_batches, lambda c: (c / "test_batch").unlink(), "copy: test_batch is not there",
    ),
    "member that is not there": (
        archive, lambda c: members_changed(c / ARCHIVE, lambda ones: [one for one in ones if "_4" not in one[0]]),
        f"{ARCHIVE}: data_batch_4.bin is not there; accepted: each of data_batch_1.bin, ",
    ),
    "member twice": (
        archive, lambda c: members_changed(c / ARCHIVE, lambda ones: [*ones, ones[1]]),
        f"{ARCHIVE}: data_batch_2.bin is there twice",
    ),
    "member twice, in two folders": (
        archive, lambda c: members_changed(c / ARCHIVE, lambda ones: [*ones, ("old/test_batch.bin", ones[-1][1])]),
        f"{ARCHIVE}: test_batch.bin is there twice",
    ),
    "archive cut short": (
        archive, lambda c: rewritten(c / ARCHIVE, lambda data: data[:-5000]), "archive is cut short",
    ),
    "archive that is none": (
        archive, lambda c: rewritten(c / ARCHIVE, lambda _: b"<html>"), "archive is cut short",
    ),
    "member above the folder": (
        archive, lambda c: add_member(c / ARCHIVE, named_member("a/../../data_batch_1.bin")),
        r"member 'a/../../data_batch_1.bin' is a link or leads out",
    ),
    "member at the root": (
        archive, lambda c: add_member(c / ARCHIVE, named_member("/etc/data_batch_1.bin")),
        "member '/etc/data_batch_1.bin' is a link or leads out",
    ),
    "link out of the folder": (
        archive, lambda c: add_member(c / ARCHIVE, linked("/etc/passwd")), "readme.html' is a link",
    ),
    "hard link out of the folder": (
        archive, lambda c: add_member(c / ARCHIVE, linked("../../x", tarfile.LNKTYPE)), "is a link",
    ),
    "pickle without pictures": (
        pictures.python_batches, lambda c: (c / "test_batch").write_bytes(pickle.dumps({"labels": [1]}, protocol=2)),
        "test_batch: `data` is no array",
    ),
    "pickle with other labels": (
        pictures.python_batches,
        lambda c: (c / "test_batch").write_bytes(
            pickle.dumps({"labels": [1], "data": planted()["test"].x.reshape(20, -1)}, protocol=2)
        ),
        "test_batch: `labels` is no list of 20 whole numbers",
    ),
    "pickle cut short": (
        pictures.python_batches, lambda c: rewritten(c / "data_batch_1", lambda data: data[:-40]), "data_batch_1: ",
    ),
}  # fmt: skip
GREY_FAULTS: dict[str, tuple[bool, Callable[[Path], Any], str]] = {
    "packed file cut short": (
        True, lambda c: rewritten(c / f"{IMAGES}.gz", lambda data: data[:-100]), f"{IMAGES}.gz: archive is cut short",
    ),
    "file cut short": (
        False, lambda c: rewritten(c / IMAGES, lambda data: data[:-1]), r"holds 31359 values, not the \[40, 28, 28\]",
    ),
    "not IDX": (False, lambda c: rewritten(c / IMAGES, lambda _: b"<html>"), f"{IMAGES}: not an IDX file"),
    "too many values in the head": (
        False, lambda c: rewritten(c / IMAGES, lambda data: data[:4] + b"\xff" * 12 + data[16:]), "of its head",
    ),
    "no labels": (False, lambda c: (c / LABELS).unlink(), f"has t10k-images-idx3-ubyte, but no {LABELS}"),
    "a label too few": (
        False, lambda c: rewritten(c / LABELS, lambda _: pictures.idx_bytes(np.zeros(19))), "but 19 labels",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_faults_of_colour_copies_are_named(tmp_path: Path, name: str) -> None:
    """Whoever copied or unpacked the set must learn which file is wrong."""
    write, damage, named = FAULTS[name]
    parts = planted()
    write(tmp_path / "copy", parts)
    damage(tmp_path / "copy")
    assert re.search(named, refusal(spec(parts), tmp_path / "copy"))


@pytest.mark.parametrize("name", GREY_FAULTS)
def test_faults_of_grey_copies_are_named(tmp_path: Path, name: str) -> None:
    """As above, for IDX files."""
    packed, damage, named = GREY_FAULTS[name]
    parts = planted(GREY)
    pictures.idx_files(tmp_path / "copy", parts, packed)
    damage(tmp_path / "copy")
    assert re.search(named, refusal(spec(parts), tmp_path / "copy"))


def test_hidden_files_and_folders_are_not_read(tmp_path: Path) -> None:
    """What a desktop, a version control or a packer leaves behind is no class and no picture, wherever it lies;
    folders below a class folder and linked class folders are part of the copy."""
    parts, copy = planted(), tmp_path / "copy"
    pictures.class_folders(copy, parts)
    for place in ("train", "train/class_001", "train/class_002/more"):
        for hidden in (".thumbnails/a", "__MACOSX/a"):
            (copy / place / hidden).mkdir(parents=True)
            (copy / place / hidden / "0000.png").write_bytes(b"damaged")
        (copy / place / "._0000.png").write_bytes(b"damaged")
    for path in list((copy / "train/class_002").glob("00*.png")):
        path.rename(copy / "train/class_002/more" / path.name)
    (copy / "train/class_005").rename(tmp_path / "elsewhere")
    (copy / "train/class_005").symlink_to(tmp_path / "elsewhere")
    drawn = draw_rows(spec(parts), copy)
    assert {name: as_set(part) for name, part in drawn.items()} == {name: as_set(part) for name, part in parts.items()}


def test_a_member_of_no_whole_records_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few kilobytes of archive can hold a member larger than memory."""
    path = tmp_path / ARCHIVE
    pictures.binary_archive(path, planted())
    members_changed(path, lambda ones: [(name, data + b"x" * ("_1" in name)) for name, data in ones])

    def untouched(*_: Any) -> None:
        raise AssertionError("the member was read")

    monkeypatch.setattr(tarfile.ExFileObject, "read", untouched)
    assert re.search(r"data_batch_1.bin: 24585 bytes are not whole records of 3073", refusal(spec(planted()), path))


# Picture files


@pytest.mark.parametrize("form", ["PNG", "WEBP", "TIFF"])
def test_a_file_of_several_pictures_is_refused(form: str) -> None:
    """The first would be taken without a word."""
    with pytest.raises(InputError, match=r"^here: holds 2 pictures \(frames or pages\); accepted: one$"):
        decode(frames(form), "here", spec(planted()))


@pytest.mark.parametrize("mode", ["I;16", "I", "F"])
def test_pictures_of_more_than_8_bits_are_not_converted(mode: str) -> None:
    """Pillow cuts their values off at 255, which leaves a white picture."""
    values = np.full((32, 32), 4000, dtype={"I;16": np.uint16, "I": np.int32, "F": np.float32}[mode])
    buffer = io.BytesIO()
    Image.fromarray(values).save(buffer, format="TIFF")
    for shape in ([1, 32, 32], [3, 32, 32]):
        for options in ({}, {"convert": True}):
            with pytest.raises(InputError, match=f"^here: picture of mode {mode}, more than 8 bits"):
                decode(buffer.getvalue(), "here", {"shape": shape, "options": options})


@pytest.mark.parametrize("factor", [1.5, 2.5])
def test_a_picture_above_pillow_s_limit_ends_in_one_line(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    """Pillow only warns of the smaller ones, in two lines of a log, and goes on."""
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", int(32 * 32 / factor))
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        with pytest.raises(InputError, match=r"^here: picture of more than \d+ pixels; make it smaller$"):
            decode(as_png(planted()["train"].x[0]), "here", spec(planted()))
    assert heard == []


def test_a_thin_picture_is_not_resized_without_bound() -> None:
    """Its short side enlarged to 4,096, a line of 20,000 pixels would have 335 billion values."""
    entry = {"shape": [1, 4096, 4096], "options": {"resize": 4096, "crop": 4096}}
    with pytest.raises(InputError, match=r"^here: picture of 1 x 20000, too long to be resized to 4096$"):
        decode(as_png(np.zeros((1, 1, 20000), dtype=np.uint8)), "here", entry)


def test_a_copy_must_be_named() -> None:
    """The loader has nothing of its own."""
    with pytest.raises(InputError, match="reads a copy; accepted: its folder"):
        draw_rows(spec(planted()))


# Pickles


class Attack:
    """Calls a function with arguments when it is loaded."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self.call


def attacks(mark: Path) -> Iterator[bytes]:
    """Pickles that make the file `mark` if they are loaded by an ordinary unpickler, and others that must not load."""
    write = f"open({str(mark)!r}, 'w').close()"
    for protocol in (0, 2, 4):
        yield pickle.dumps(Attack(os.system, f"touch {mark}"), protocol)
        yield pickle.dumps(Attack(exec, write), protocol)
        yield pickle.dumps({"data": np.array([Attack(exec, write)], dtype=object), "labels": [1]}, protocol)
    yield b"cnumpy\nndarray.tofile\n."
    yield b"\x80\x04\x8c\x05numpy\x8c\x0endarray.tofile\x93."
    yield f"cnumpy\nfromfile\n(S'{mark}'\ntR.".encode()
    yield b"c_codecs\nencode\n(Vx\nVrot13\ntR."
    yield b"cnumpy\ndtype\n(S'O8'\ntR."
    yield b"cnumpy\nndarray\n((I3\ntR."
    yield b"cjumpboard.data.layouts.batch_pickle\npickle\n."


def test_hostile_pickles_do_not_run(tmp_path: Path) -> None:
    """A batch from the web can name any function; each attack here would have made a file, or lets one be reached."""
    mark, path = tmp_path / "mark", tmp_path / "test_batch"
    for content in attacks(mark):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"test_batch: .*CIFAR's batches") as caught:
            read_batch(path, "labels")
        assert "\n" not in str(caught.value)
        assert not mark.exists(), content
    exec(f"open({str(mark)!r}, 'w').close()")
    assert mark.exists(), "the attack would have shown"
