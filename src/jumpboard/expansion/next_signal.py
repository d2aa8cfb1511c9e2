"""The squared signal that a next block at a site would see, on as few samples as resolve it.

    signal_feature_sq = |E[zeta_+ phi(z)']|_F^2        z = signal_feature_sq / its standard error
    n = first, 2 first, 4 first, ...                   until z > enough, or until there are no more samples

phi has features of its own, not the next block's: along a chain they stay the same, where other draws differ by 10 to
25 % (mnist1d, width 16). The sums of rows are kept block by block as n grows, and neighbours are joined, so that there
are at most `BLOCKS` blocks and no sample is passed twice; the standard error leaves out one block at a time
(`measure.intervals`). Every member grows by itself. Without a signal the jackknife doubles the variance, so that z is
too small rather than too large. An estimate that stops just above `enough` is too high by selection, by a part of its
standard error, which is a fifth of it. Paper `depth`, Appendix M; when to stop is derived.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
from torch import Tensor

from jumpboard.expansion.jumpboard import before_norm
from jumpboard.measure.features import FeatureSums, hidden_units
from jumpboard.measure.gradients import site_gradients
from jumpboard.measure.intervals import Estimate, block_variance, student_limits
from jumpboard.measure.sites import batch_size, blocks_of_batch, feature_signal
from jumpboard.nets.base import Leaves, Net

FIRST, ENOUGH, BLOCKS = 1000, 5.0, 20


@dataclass(frozen=True)
class NextSignal:
    """The unbiased estimate with its limits, the plug-in value, the samples used, and z (0 where nothing varies)."""

    interval: Estimate
    plug_in: float
    n: int
    z: float


def next_signals(
    net: Net,
    leaves: Leaves,
    site: int,
    weights: Tensor,
    x: Tensor,
    y: Tensor,
    first: int = FIRST,
    enough: float = ENOUGH,
) -> list[NextSignal]:
    """One signal for each of G members; weights W1 [G, 4N, N], x [n, *input_shape], y [n], n >= 1."""
    growing, n, rows = list(range(len(weights))), 0, math.ceil(min(first, len(x)) / BLOCKS)
    blocks: list[list[FeatureSums]] = [[] for _ in growing]
    found: dict[int, NextSignal] = {}
    while growing:
        part = slice(n, max(first, 2 * n))
        own = {name: leaf[growing] for name, leaf in leaves.items()}
        new = _block_sums(net, own, site, weights[growing], x[part], y[part], rows)
        for member, sums in zip(growing, new, strict=True):
            blocks[member] = _joined(blocks[member] + sums)
            found[member] = _signal(blocks[member])
        rows, n = blocks[growing[0]][0].n, min(part.stop, len(x))
        growing = [member for member in growing if n < len(x) and not found[member].z > enough]
    return [found[member] for member in range(len(weights))]


def _block_sums(
    net: Net, leaves: Leaves, site: int, weights: Tensor, x: Tensor, y: Tensor, rows: int
) -> list[list[FeatureSums]]:
    """Of each member, the sums of blocks of `rows` neighbouring samples, the last of what is left."""
    members, edges = len(weights), np.array([*range(0, len(x), rows), len(x)])
    step = max(1, batch_size(net) // members)
    sums: list[list[FeatureSums]] = [[] for _ in range(members)]
    for start in range(0, len(x), step):
        batch = slice(start, start + step)
        inputs, labels = x[batch].expand(members, *[-1] * x.dim()), y[batch].expand(members, -1)
        z, zeta = site_gradients(net, leaves, inputs, labels)[site]
        zeta, hidden = before_norm(net, z, zeta), hidden_units(weights, z)
        for block, part in blocks_of_batch(edges, start, labels.shape[1]):
            for member, own in enumerate(sums):
                more = FeatureSums.of(zeta[member, part], hidden[member, part])
                own[block:] = [own[block] + more if block < len(own) else more]
    return sums


def _joined(blocks: list[FeatureSums]) -> list[FeatureSums]:
    """Neighbours added in pairs where there are more than `BLOCKS`."""
    if len(blocks) <= BLOCKS:
        return blocks
    return [reduce(add, blocks[start : start + 2]) for start in range(0, len(blocks), 2)]


def _signal(blocks: Sequence[FeatureSums]) -> NextSignal:
    total, estimate, left = feature_signal(blocks)
    sizes = np.array([block.n for block in blocks], dtype=np.float64)
    variance = block_variance(float(estimate), left, sizes)
    interval = student_limits(float(estimate), variance, [sizes])
    return NextSignal(interval, float(total.plug_in), total.n, float(estimate) / variance**0.5 if variance else 0.0)
