"""Controls of rules: what a rule says where there is nothing to say, which must come out null.

By permutation: the same rule on permuted labels. Labels are permuted within each seed, so that what seeds share stays.
All columns of a run stay together. The share counts how often the rule gives such a table the same verdict. The
permutations are drawn from a generator seeded by the claim's name: the same ones in every evaluation.
Above what the control tolerates the rule would have said so anyway.
"""

import hashlib
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from jumpboard.claims.base import Null, Ruling
from jumpboard.claims.observations import Observations

PERMUTATIONS = 200


def permute_cells(seen: Observations, generator: np.random.Generator) -> Observations:
    """Depth and width labels permuted together within each seed, at one sample size."""
    shape = (len(seen.seeds), len(seen.depths), len(seen.widths), len(seen.samples))
    order = _orders((shape[0], shape[1] * shape[2]), generator)[..., None]
    columns = {
        name: np.take_along_axis(values.reshape(shape[0], -1, shape[3]), order, axis=1).reshape(shape)
        for name, values in seen.columns.items()
    }
    return replace(seen, columns=columns)


def permute_depths(seen: Observations, generator: np.random.Generator) -> Observations:
    """Depth labels permuted within each seed and width, at one sample size."""
    order = _orders((len(seen.seeds), len(seen.widths), len(seen.depths)), generator).swapaxes(1, 2)[..., None]
    columns = {name: np.take_along_axis(values, order, axis=1) for name, values in seen.columns.items()}
    return replace(seen, columns=columns)


def permute_widths(seen: Observations, generator: np.random.Generator) -> Observations:
    """Width labels permuted within each seed and depth, at one sample size."""
    order = _orders((len(seen.seeds), len(seen.depths), len(seen.widths)), generator)[..., None]
    columns = {name: np.take_along_axis(values, order, axis=2) for name, values in seen.columns.items()}
    return replace(seen, columns=columns)


def permute_sample_sizes(seen: Observations, generator: np.random.Generator) -> Observations:
    """Sample-size labels permuted within each seed and width: whole curves over depth change places."""
    order = _orders((len(seen.seeds), len(seen.widths), len(seen.samples)), generator)[:, None]
    columns = {name: np.take_along_axis(values, order, axis=3) for name, values in seen.columns.items()}
    return replace(seen, columns=columns)


def by_permutation(
    judge: Callable[[Observations], Ruling], permuted: Callable[[Observations, np.random.Generator], Observations]
) -> Callable[[Observations, str, str], Null]:
    """The control of a rule: the share of permuted tables to which it gives the same verdict."""

    def null(seen: Observations, claim: str, verdict: str) -> Null:
        digest = hashlib.sha256(claim.encode()).digest()
        generator = np.random.default_rng(int.from_bytes(digest))
        called = [judge(permuted(seen, generator)).verdict == verdict for _ in range(PERMUTATIONS)]
        return Null(sum(called) / PERMUTATIONS, f"of {PERMUTATIONS} permutations are called {verdict}")

    return null


def _orders(shape: tuple[int, ...], generator: np.random.Generator) -> NDArray[np.intp]:
    """Independent random orders along the last axis."""
    return generator.permuted(np.broadcast_to(np.arange(shape[-1]), shape), axis=-1)
