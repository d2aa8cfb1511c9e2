"""Rows of the table `card` from the rows of a data set: count, moments, range and SHA-256 of each split."""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from jumpboard.data.rows import Rows, mean_and_sd


def sha256_of_rows(rows: Rows) -> str:
    """Hex SHA-256 of the samples' bytes followed by the labels' bytes, both in C order and little-endian."""
    digest = hashlib.sha256()
    for array in (rows.x, rows.y):
        digest.update(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).data)
    return digest.hexdigest()


def card_rows(
    dataset: str, rows: Mapping[str, Rows], spec: Mapping[str, Any], package_version: str
) -> list[dict[str, Any]]:
    """One row per split of the inventory entry `spec`, named `dataset`; `package_version` is that of its package."""
    card = []
    for split, part in rows.items():
        mean, sd = mean_and_sd(part.x)
        card.append(
            {
                "dataset": dataset,
                "split": split,
                "count": len(part),
                "classes": spec["classes"],
                "shape": "x".join(map(str, spec["shape"])),
                "mean": mean,
                "sd": sd,
                "minimum": float(part.x.min()),
                "maximum": float(part.x.max()),
                "sha256": sha256_of_rows(part),
                "licence": spec["licence"],
                "source": spec["source"],
                "package": spec["package"],
                "package_version": package_version,
            }
        )
    return card
