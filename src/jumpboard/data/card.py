"""Rows of the table `card` from the rows of a data set: count, moments, range and SHA-256 of each split."""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from jumpboard.data.registry import loader
from jumpboard.data.rows import Rows, mean_and_sd
from jumpboard.data.splits import Splits


def sha256_of_rows(rows: Rows) -> str:
    """Hex SHA-256 of the samples' bytes followed by the labels' bytes, both in C order and little-endian."""
    digest = hashlib.sha256()
    for array in (*(part.x for part in rows.chunks()), rows.y):
        digest.update(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).data)
    return digest.hexdigest()


LAW = ("bayes_risk", "bayes_risk_se", "bayes_risk_brier", "input_radius")


def known_law(params: Mapping[str, Any]) -> dict[str, float]:
    """What is known of the law of a data set whose rows are drawn from one, by the names of `LAW`; else nothing."""
    return loader(params["law"]).population(params["law"]) if "law" in params else {}


def card_rows(
    dataset: str, splits: Splits, words: Mapping[str, Any], package_version: str, law: Mapping[str, float]
) -> list[dict[str, Any]]:
    """One row per split, described by `words`; `package_version` is that of its package when the rows were made; `law`
    holds what is known of the law, by the names of `LAW`."""
    card = []
    for split, part in splits.parts.items():
        mean, sd = mean_and_sd(part.x)
        card.append(
            {
                "dataset": dataset,
                "split": split,
                "count": len(part),
                "classes": splits.classes,
                "shape": "x".join(map(str, splits.shape)),
                "mean": mean,
                "sd": sd,
                "minimum": float(part.x.min()),
                "maximum": float(part.x.max()),
                "sha256": sha256_of_rows(part),
                **{word: words[word] for word in ("version", "licence", "source", "checksum", "offline", "package")},
                "package_version": package_version,
                **{name: law.get(name) for name in LAW},
            }
        )
    return card
