"""One little picture set, and writers of it in every layout that a local copy may have."""

import gzip
import io
import pickle
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from jumpboard.data.rows import Rows

SIZES = {"train": 40, "test": 20}
Parts = dict[str, Rows]
Writer = Callable[[Path, Parts], None]


def planted(shape: tuple[int, ...] = (3, 32, 32), classes: int = 10, sizes: dict[str, int] = SIZES) -> Parts:
    """Noise pictures, every one another, in a mixed order of labels; every class occurs in every part of its size."""
    parts = {}
    for number, (name, size) in enumerate(sizes.items()):
        generator = np.random.default_rng([7, number])
        x = generator.integers(0, 256, (size, *shape), dtype=np.uint8)
        parts[name] = Rows(x, generator.permutation(np.arange(size, dtype=np.int64) % classes))
    return parts


def spec(parts: Parts, classes: int = 10, **changes: Any) -> dict[str, Any]:
    """An inventory entry that takes all rows of all parts."""
    sizes = {name: len(part) for name, part in parts.items()}
    shape = list(parts["train"].x.shape[1:])
    return {"loader": "local", "seed": 5, "shape": shape, "classes": classes, "splits": sizes, **changes}


def as_set(rows: Rows) -> list[bytes]:
    """Pixels and label of each row, sorted."""
    return sorted(int(label).to_bytes() + picture.tobytes() for picture, label in zip(rows.x, rows.y, strict=True))


def as_png(picture: np.ndarray) -> bytes:
    """A picture [C, H, W] as a PNG file."""
    buffer = io.BytesIO()
    Image.fromarray(np.squeeze(picture.transpose(1, 2, 0))).save(buffer, format="PNG")
    return buffer.getvalue()


def _batches(rows: Rows, name: str) -> dict[str, Rows]:
    """The training part in five files, the test part in one."""
    if name == "test":
        return {"test_batch": rows}
    ends = [len(rows) * number // 5 for number in range(6)]
    return {f"data_batch_{n}": rows.slice(ends[n - 1], ends[n]) for n in range(1, 6)}


def python_batches(folder: Path, parts: Parts) -> None:
    """CIFAR-10's pickles, of the protocol that the real ones have."""
    folder.mkdir(parents=True)
    (folder / "batches.meta").write_bytes(b"")
    for part, rows in parts.items():
        for name, batch in _batches(rows, part).items():
            content = {"batch_label": name, "labels": batch.y.tolist(), "data": batch.x.reshape(len(batch), -1)}
            (folder / name).write_bytes(pickle.dumps(content, protocol=2))


def python_batches_100(folder: Path, parts: Parts) -> None:
    """CIFAR-100's pickles; the coarse label must not be taken for the fine one."""
    folder.mkdir(parents=True)
    (folder / "meta").write_bytes(b"")
    for part, rows in parts.items():
        labels = {"fine_labels": rows.y.tolist(), "coarse_labels": [3] * len(rows)}
        content = {**labels, "filenames": [b"a.png"] * len(rows), "data": rows.x.reshape(len(rows), -1)}
        (folder / part).write_bytes(pickle.dumps(content, protocol=2))


def _records(rows: Rows, coarse: bool) -> bytes:
    label = rows.y[:, None].astype(np.uint8)
    head = [np.full_like(label, 3), label] if coarse else [label]
    return np.concatenate([*head, rows.x.reshape(len(rows), -1)], axis=1).tobytes()


def binary_files(parts: Parts, coarse: bool = False) -> dict[str, bytes]:
    """CIFAR's binary batches by file name."""
    if coarse:
        return {f"{part}.bin": _records(rows, True) for part, rows in parts.items()}
    return {
        f"{name}.bin": _records(batch, False)
        for part, rows in parts.items()
        for name, batch in _batches(rows, part).items()
    }


def binary_batches(folder: Path, parts: Parts, coarse: bool = False) -> None:
    """CIFAR's binary batches in a folder."""
    folder.mkdir(parents=True)
    for name, content in binary_files(parts, coarse).items():
        (folder / name).write_bytes(content)


def binary_archive(path: Path, parts: Parts, coarse: bool = False) -> None:
    """CIFAR's binary batches in their archive, in a folder of its own as published."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as tar:
        for name, content in binary_files(parts, coarse).items():
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


def class_folders(folder: Path, parts: Parts, test: str = "test") -> None:
    """A PNG for each row in the folder of its class."""
    for part, rows in parts.items():
        for row, (picture, label) in enumerate(zip(rows.x, rows.y, strict=True)):
            place = folder / (test if part == "test" else part) / f"class_{label:03d}"
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{row:04d}.png").write_bytes(as_png(picture))


def hub_table(rows: Rows, image: str = "img", label: str = "label") -> pa.Table:
    """A part as a table of the hub."""
    pictures = [{"bytes": as_png(picture), "path": None} for picture in rows.x]
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    return pa.table({image: pa.array(pictures, type=kind), label: pa.array(rows.y)})


def hub_parquet(folder: Path, parts: Parts, image: str = "img", label: str = "label", group: int = 6) -> None:
    """Two files for the training part and one for the test part, in row groups of so many rows."""
    folder.mkdir(parents=True)
    for part, rows in parts.items():
        half = len(rows) // 2 if part == "train" else len(rows)
        pieces = [piece for piece in (rows.slice(0, half), rows.slice(half, len(rows))) if len(piece)]
        for number, piece in enumerate(pieces):
            path = folder / f"{part}-{number:05d}-of-{len(pieces):05d}.parquet"
            pq.write_table(hub_table(piece, image, label), path, row_group_size=group)


def idx_bytes(values: np.ndarray) -> bytes:
    """An array of unsigned bytes as an IDX file."""
    head = bytes([0, 0, 8, values.ndim]) + np.array(values.shape, dtype=">u4").tobytes()
    return head + values.astype(np.uint8).tobytes()


def idx_files(folder: Path, parts: Parts, packed: bool = False) -> None:
    """The four IDX files of grey pictures."""
    folder.mkdir(parents=True)
    for part, rows in parts.items():
        prefix = "train" if part == "train" else "t10k"
        for name, values in ((f"{prefix}-images-idx3-ubyte", rows.x[:, 0]), (f"{prefix}-labels-idx1-ubyte", rows.y)):
            content = idx_bytes(values)
            (folder / (name + ".gz" * packed)).write_bytes(gzip.compress(content) if packed else content)
