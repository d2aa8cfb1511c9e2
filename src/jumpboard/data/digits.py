"""Digits: 1,797 real 8x8 images of handwritten digits, pixel values 0..16, as packaged with scikit-learn."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from jumpboard.data.rows import Rows, shuffled

SAMPLER = False
OPTIONS: tuple[str, ...] = ()


def draw(spec: Mapping[str, Any], count: int, seed: int) -> Rows:
    """`count` rows without replacement, x [count, 1, 8, 8] uint8; the seed sets their order."""
    images, labels = load_digits(return_X_y=True)
    rows = Rows(images.astype(np.uint8).reshape(-1, 1, 8, 8), labels.astype(np.int64))
    return shuffled(rows, count, seed, "digits (scikit-learn)")
