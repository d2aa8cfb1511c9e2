"""Read one of CIFAR's Python batches, which are pickles, without running anything that it names.

A pickle may name any function and have it called. Here it may name only what such a batch is made of: an array of
unsigned bytes and its type, and text that stands for bytes; numbers, text, lists and mappings need no name. Anything
else is refused before it is looked up.
"""

import pickle
from pathlib import Path
from typing import Any

import numpy as np

from jumpboard.errors import InputError


def _empty_array(*_: Any) -> np.ndarray:
    """Stands for numpy's own constructor; the content follows as the array's state."""
    return np.empty(0, dtype=np.uint8)


def _bytes_type(code: Any, *_: Any) -> np.dtype[Any]:
    if code != "u1":
        raise pickle.UnpicklingError(f"array of type {code!r}")
    return np.dtype(np.uint8)


def _bytes_of(text: str, encoding: str) -> bytes:
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"text in {encoding!r}")
    return text.encode("latin1")


ADMITTED = {
    ("numpy.core.multiarray", "_reconstruct"): _empty_array,
    ("numpy._core.multiarray", "_reconstruct"): _empty_array,
    ("numpy", "ndarray"): "ndarray",  # only ever an argument of the above
    ("numpy", "dtype"): _bytes_type,
    ("_codecs", "encode"): _bytes_of,
}


class BatchUnpickler(pickle.Unpickler):
    """An unpickler to which nothing exists but `ADMITTED`."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ADMITTED:
            raise pickle.UnpicklingError(f"it names {module}.{name}")
        return ADMITTED[module, name]


def read_batch(path: Path, label_key: str) -> tuple[np.ndarray, np.ndarray]:
    """Labels [n] int64 and pictures [n, 3, 32, 32] uint8 of a batch.

    Raises InputError, naming the file, for one that is damaged, names anything else, or holds anything else.
    """
    try:
        with open(path, "rb") as file:
            batch = BatchUnpickler(file, encoding="latin1").load()
    except pickle.UnpicklingError as error:
        raise InputError(f"{path}: not one of CIFAR's batches ({error}); it was not loaded") from None
    except OSError:
        raise
    except Exception as error:  # a damaged pickle can raise nearly any
        raise InputError(f"{path}: damaged or not one of CIFAR's batches ({type(error).__name__})") from None
    data, labels = (batch.get("data"), batch.get(label_key)) if isinstance(batch, dict) else (None, None)
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.ndim != 2 or data.shape[1] != 3072:
        raise InputError(f"{path}: `data` is no array of n x 3072 bytes; accepted: one of CIFAR's batches")
    if not isinstance(labels, list) or not all(type(one) is int for one in labels) or len(labels) != len(data):
        raise InputError(f"{path}: `{label_key}` is no list of {len(data)} whole numbers, one for each picture")
    return np.array(labels, dtype=np.int64), data.reshape(-1, 3, 32, 32)
