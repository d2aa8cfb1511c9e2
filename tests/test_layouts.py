"""Local copies of picture sets: one set in every layout gives the same rows, split as its entry says."""

import gzip
import io
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from PIL import Image

import pictures
from jumpboard.data.draw import draw_rows
from jumpboard.data.layouts.decode import decode
from jumpboard.data.rows import Rows
from jumpboard.errors import InputError
from pictures import as_set, planted, spec

GREY = (1, 28, 28)
INVENTORY = yaml.safe_load((Path(__file__).parents[1] / "config" / "datasets.yaml").read_text())
FASHION = Path("/usr/share/datasets/fashion-mnist")

COLOUR_LAYOUTS: dict[str, Callable[[Path, pictures.Parts], None]] = {
    "python": pictures.python_batches,
    "python, torchvision root": lambda root, parts: pictures.python_batches(root / "cifar-10-batches-py", parts),
    "binary": pictures.binary_batches,
    "binary, folder as published": lambda root, parts: pictures.binary_batches(root / "cifar-10-batches-bin", parts),
    "archive": lambda root, parts: pictures.binary_archive(root / "cifar-10-binary.tar.gz", parts),
    "hub": pictures.hub_parquet,
    "hub, a folder below": lambda root, parts: pictures.hub_parquet(root / "plain_text", parts, image="image"),
    "class folders": pictures.class_folders,
    "class folders, val": partial(pictures.class_folders, test="val"),
}
FINE_LAYOUTS: dict[str, Callable[[Path, pictures.Parts], None]] = {
    "python": lambda root, parts: pictures.python_batches_100(root / "cifar-100-python", parts),
    "binary": lambda root, parts: pictures.binary_batches(root / "cifar-100-binary", parts, coarse=True),
    "archive": lambda root, parts: pictures.binary_archive(root / "cifar-100-binary.tar.gz", parts, coarse=True),
    "hub": partial(pictures.hub_parquet, label="fine_label", group=1000),
    "class folders": pictures.class_folders,
}
GREY_LAYOUTS: dict[str, Callable[[Path, pictures.Parts], None]] = {
    "idx": pictures.idx_files,
    "idx, packed": partial(pictures.idx_files, packed=True),
    "idx, torchvision root": lambda root, parts: pictures.idx_files(root / "MNIST" / "raw", parts),
    "hub": partial(pictures.hub_parquet, image="image"),
    "class folders": pictures.class_folders,
}


@pytest.mark.parametrize(
    ("write", "shape", "classes"),
    [
        *(pytest.param(write, (3, 32, 32), 10, id=f"colour, {name}") for name, write in COLOUR_LAYOUTS.items()),
        *(pytest.param(write, (3, 32, 32), 100, id=f"fine labels, {name}") for name, write in FINE_LAYOUTS.items()),
        *(pytest.param(write, GREY, 10, id=f"grey, {name}") for name, write in GREY_LAYOUTS.items()),
    ],
)
def test_every_layout_gives_the_same_rows(
    tmp_path: Path, write: Callable[[Path, pictures.Parts], None], shape: tuple[int, ...], classes: int
) -> None:
    """Channels, axes, labels and parts: a copy in another layout must be the same data set, up to the order of rows. A
    smaller split is the first rows of a larger one, though other pictures are decoded then."""
    parts = planted(shape, classes, {"train": 2 * max(classes, 20), "test": 20})
    write(tmp_path / "copy", parts)
    drawn = draw_rows(spec(parts, classes), tmp_path / "copy", tmp_path / "scratch")
    assert list(drawn) == ["train", "test"]
    for name, part in parts.items():
        assert (drawn[name].x.dtype, drawn[name].x.shape) == (np.uint8, part.x.shape)
        assert as_set(drawn[name]) == as_set(part)
        assert not np.array_equal(drawn[name].y, part.y), "the order is drawn from the seed"
    few = draw_rows(spec(parts, classes, splits={"train": 15, "test": 5}), tmp_path / "copy")
    for name, part in few.items():
        np.testing.assert_array_equal(part.x, drawn[name].x[: len(part)])
        np.testing.assert_array_equal(part.y, drawn[name].y[: len(part)])
    again = draw_rows(spec(parts, classes), tmp_path / "copy")
    other = draw_rows(spec(parts, classes, seed=6), tmp_path / "copy")
    for name in parts:
        np.testing.assert_array_equal(again[name].x, drawn[name].x)
        np.testing.assert_array_equal(again[name].y, drawn[name].y)
        assert not np.array_equal(other[name].x, drawn[name].x)


def test_splits_come_from_their_parts(tmp_path: Path) -> None:
    """A test picture that was trained on makes test loss too small. Validation rows leave the others as they are,
    whatever their number and wherever they are cut from."""
    parts = planted()
    copy = tmp_path / "copy"
    pictures.binary_batches(copy, parts)
    sources = {name: set(as_set(part)) for name, part in parts.items()}
    plain = draw_rows(spec(parts, splits={"train": 30, "test": 10}), copy)
    for origin in ("train", "test"):
        for count in (3, 10):
            sizes = {"train": 30, "validation": count, "test": 10}
            drawn = draw_rows(spec(parts, splits=sizes, validation_from=origin), copy)
            assert {name: len(part) for name, part in drawn.items()} == sizes
            assert set(as_set(drawn["validation"])) <= sources[origin]
            seen = [one for part in drawn.values() for one in as_set(part)]
            assert len(set(seen)) == len(seen) == sum(sizes.values())
            for name in ("train", "test"):
                np.testing.assert_array_equal(drawn[name].x, plain[name].x)
    small = draw_rows(spec(parts, splits={"train": 7, "test": 10}), copy)
    np.testing.assert_array_equal(small["train"].x, plain["train"].x[:7])
    default = draw_rows(spec(parts, splits={"train": 30, "validation": 5, "test": 10}), copy)
    assert set(as_set(default["validation"])) <= sources["train"]


def test_a_validation_part_of_its_own_can_be_taken(tmp_path: Path) -> None:
    """Hub sets come with one; it must not be taken for the test part where there is a test part."""
    parts = planted(sizes={"train": 40, "validation": 20, "test": 20})
    for layout, write in (("hub", pictures.hub_parquet), ("folders", pictures.class_folders)):
        write(tmp_path / layout, parts)
        drawn = draw_rows(spec(parts, validation_from="validation"), tmp_path / layout)
        assert {name: as_set(part) for name, part in drawn.items()} == {n: as_set(part) for n, part in parts.items()}
    only = planted(sizes={"train": 40})
    pictures.hub_parquet(tmp_path / "train only", only)
    entry = spec(only, splits={"train": 30, "validation": 5}, validation_from="validation")
    with pytest.raises(InputError, match="has no validation part, only train"):
        draw_rows(entry, tmp_path / "train only")


def test_a_folder_is_taken_before_its_archive_and_a_plain_file_before_a_packed_one(tmp_path: Path) -> None:
    """Unpacked beside what it was unpacked from is how most copies lie around: that is one copy, not two."""
    parts, other = planted(), planted(sizes={"train": 60, "test": 20})
    pictures.binary_archive(tmp_path / "c" / "cifar-10-binary.tar.gz", other)
    pictures.binary_batches(tmp_path / "c" / "cifar-10-batches-bin", parts)
    assert as_set(draw_rows(spec(parts), tmp_path / "c")["train"]) == as_set(parts["train"])
    grey = planted(GREY)
    pictures.idx_files(tmp_path / "g", grey)
    for path in list((tmp_path / "g").iterdir()):
        path.with_name(path.name + ".gz").write_bytes(b"damaged")
    assert as_set(draw_rows(spec(grey), tmp_path / "g")["train"]) == as_set(grey["train"])


def test_an_archive_can_be_named_itself(tmp_path: Path) -> None:
    """`paths: {cifar10: .../cifar-10-binary.tar.gz}` is what a user tries first."""
    parts = planted()
    pictures.binary_archive(tmp_path / "cifar-10-binary.tar.gz", parts)
    drawn = draw_rows(spec(parts), tmp_path / "cifar-10-binary.tar.gz")
    assert as_set(drawn["test"]) == as_set(parts["test"])


# Picture files


def test_pictures_are_resized_and_cut_as_pretrained_nets_are_evaluated(tmp_path: Path) -> None:
    """Short side resized, centre cut out, pixel for pixel as Pillow does it; a stretched or shifted picture would look
    like a worse net."""
    for width, height, resized in ((60, 40, (48, 32)), (40, 60, (32, 48)), (20, 20, (32, 32))):
        image = Image.fromarray(np.random.default_rng(width).integers(0, 256, (height, width, 3), dtype=np.uint8))
        buffer = io.BytesIO()
        image.save(buffer, format="PNG")
        entry = {"shape": [3, 24, 24], "options": {"resize": 32, "crop": 24}}
        left, top = (resized[0] - 24) // 2, (resized[1] - 24) // 2
        oracle = image.resize(resized, Image.Resampling.BILINEAR).crop((left, top, left + 24, top + 24))
        np.testing.assert_array_equal(decode(buffer.getvalue(), "a", entry), np.asarray(oracle).transpose(2, 0, 1))


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "CMYK", "1"])
def test_other_colours_are_converted_only_on_demand(mode: str) -> None:
    """ImageNet holds grey and CMYK pictures; in a set that should have none they are a mistake."""
    colour = Image.fromarray(planted()["train"].x[0].transpose(1, 2, 0))
    image, buffer = colour.convert(mode), io.BytesIO()
    image.save(buffer, format="TIFF")
    entry: dict[str, Any] = {"shape": [3, 32, 32]}
    with pytest.raises(InputError, match=rf"^here: picture of colours {mode}; accepted: RGB, .*convert true$"):
        decode(buffer.getvalue(), "here", entry)
    converted = decode(buffer.getvalue(), "here", entry | {"options": {"convert": True}})
    np.testing.assert_array_equal(converted, np.asarray(image.convert("RGB")).transpose(2, 0, 1))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"shape": [3072]}, r"shape is \[3072\]"),
        ({"shape": [4, 32, 32]}, r"shape is \[4, 32, 32\]"),
        ({"options": {"resize": 40}}, "resize and crop together"),
        ({"options": {"crop": 32}}, "resize and crop together"),
        ({"options": {"resize": 40, "crop": 24}}, "crop is 24"),
        ({"options": {"resize": 31, "crop": 32}}, "resize 31"),
        ({"options": {"shear_scale": 1.0}}, r"'local' does not know options \['shear_scale'\]"),
        ({"splits": {"train": 41, "test": 20}}, "its train part holds 40 samples; the splits ask for 41"),
        ({"splits": {"train": 20, "validation": 21, "test": 5}}, "train part holds 40 samples.*ask for 41"),
        ({"splits": {"test": 10, "validation": 11}, "validation_from": "test"}, "test part holds 20.*ask for 21"),
        ({"seed": 2**32}, "seed 4294967296"),
        ({"classes": 9}, "label 9; accepted: 0 to 8"),
    ],
)
def test_bad_entries_are_refused(tmp_path: Path, changes: dict[str, Any], named: str) -> None:
    """What an entry asks of a good copy that it cannot have."""
    parts = planted()
    pictures.binary_batches(tmp_path / "copy", parts)
    with pytest.raises(InputError, match=named) as caught:
        draw_rows({**spec(parts), **changes}, tmp_path / "copy")
    assert "\n" not in str(caught.value)


# The real thing


@pytest.mark.skipif(not FASHION.is_dir(), reason=f"no {FASHION}: needs Debian's package dataset-fashion-mnist")
def test_all_of_fashion_mnist_is_read(tmp_path: Path) -> None:
    """The whole real set through its inventory entry: 7,000 pictures a class, row for row those that torchvision
    reads, no row in two splits, the pixel mean that is published for it."""
    from torchvision.datasets import mnist

    drawn = draw_rows(INVENTORY["fashion_mnist"], FASHION, tmp_path)
    assert {name: len(part) for name, part in drawn.items()} == {"train": 55000, "validation": 5000, "test": 10000}
    packed = {"train": "train", "test": "t10k"}
    oracle = {}
    for name, prefix in packed.items():
        for kind in ("images-idx3", "labels-idx1"):
            content = gzip.decompress((FASHION / f"{prefix}-{kind}-ubyte.gz").read_bytes())
            (tmp_path / f"{prefix}-{kind}-ubyte").write_bytes(content)
        x = mnist.read_image_file(str(tmp_path / f"{prefix}-images-idx3-ubyte")).numpy()
        oracle[name] = Rows(x, mnist.read_label_file(str(tmp_path / f"{prefix}-labels-idx1-ubyte")).numpy())
    both = (drawn["train"], drawn["validation"])
    train = Rows(*(np.concatenate([getattr(part, field) for part in both]) for field in ("x", "y")))
    assert as_set(train) == as_set(oracle["train"])
    assert as_set(drawn["test"]) == as_set(oracle["test"])
    assert np.bincount(train.y).tolist() == [6000] * 10
    assert train.x.mean() / 255 == pytest.approx(0.2860, abs=5e-5)
