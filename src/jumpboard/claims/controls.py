"""The control of a rule: the same rule on permuted labels, which must come out null.

Labels are permuted within each seed, so that what seeds share stays. Validation and test loss of a run stay together.
`share` counts how often the rule gives such a table the same verdict; above `TOLERATED` it would have said so anyway.
The permutations are drawn from a generator seeded by the claim's name: the same ones in every evaluation.
"""

import hashlib
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from jumpboard.claims.base import Rule
from jumpboard.claims.observations import Observations

PERMUTATIONS = 200
TOLERATED = 0.10


def permute_cells(seen: Observations, generator: np.random.Generator) -> Observations:
    """Depth and width labels permuted together within each seed, at one sample size."""
    shape = (len(seen.seeds), len(seen.depths), len(seen.widths), len(seen.samples))
    order = _orders((shape[0], shape[1] * shape[2]), generator)[..., None]
    columns = {
        name: np.take_along_axis(values.reshape(shape[0], -1, shape[3]), order, axis=1).reshape(shape)
        for name, values in seen.columns.items()
    }
    return replace(seen, columns=columns)


def permute_sample_sizes(seen: Observations, generator: np.random.Generator) -> Observations:
    """Sample-size labels permuted within each seed and width: whole curves over depth change places."""
    order = _orders((len(seen.seeds), len(seen.widths), len(seen.samples)), generator)[:, None]
    columns = {name: np.take_along_axis(values, order, axis=3) for name, values in seen.columns.items()}
    return replace(seen, columns=columns)


def share(rule: Rule, seen: Observations, claim: str, verdict: str) -> float:
    """Share of permuted tables to which `rule` gives `verdict`."""
    digest = hashlib.sha256(claim.encode()).digest()
    generator = np.random.default_rng(int.from_bytes(digest))
    called = [rule.judge(rule.permuted(seen, generator)).verdict == verdict for _ in range(PERMUTATIONS)]
    return sum(called) / PERMUTATIONS


def _orders(shape: tuple[int, ...], generator: np.random.Generator) -> NDArray[np.intp]:
    """Independent random orders along the last axis."""
    return generator.permuted(np.broadcast_to(np.arange(shape[-1]), shape), axis=-1)
