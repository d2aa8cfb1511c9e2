"""All that is measured of one net on one set of samples, site by site, in one pass over the samples.

The samples are cut into blocks of neighbours. Each block has a state of its own, so that the jackknife can leave it
out; memory grows with the number of blocks, never with the number of samples. The first `pool` rows of every site are
kept for what needs rows: correlations, their null, heat maps.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
from torch import Tensor

from jumpboard.measure.features import FeatureSums, features
from jumpboard.measure.gradients import site_gradients
from jumpboard.measure.intervals import Estimate, Replicates, jackknife, moment_intervals
from jumpboard.measure.jackknife import delete_state_sums
from jumpboard.measure.moments import FloatArray, Moments, plug_in, unbiased
from jumpboard.measure.streaming import MomentState
from jumpboard.nets.base import Leaves, Net

BATCH = 1000


@dataclass
class SiteSums:
    """One site's states, one entry per block, and the pooled rows [pool, N], float32."""

    moments: list[MomentState]
    features: list[FeatureSums]
    pool: list[np.ndarray]

    @property
    def rows(self) -> np.ndarray:
        """The pooled rows."""
        return np.concatenate(self.pool)


def measure_sites(
    net: Net, leaves: Leaves, x: Tensor, y: Tensor, *, weights: Sequence[Tensor] = (), blocks: int = 20, pool: int = 0
) -> list[SiteSums]:
    """Sums of every site over x [n, *input_shape], y [n], for a net of one member.

    `weights` holds W1 of each site; without them `signal_feature` is not measured. `blocks` are cut to whole samples.
    """
    sums = [SiteSums([], [], []) for _ in range(net.depth + 1)]
    edges = np.linspace(0, len(x), min(blocks, len(x)) + 1).astype(int)
    for low, high in pairwise(edges):
        for start in range(low, high, BATCH):
            part = slice(start, min(start + BATCH, high))
            gradients = site_gradients(net, leaves, x[None, part], y[None, part])
            for site, (z, zeta) in enumerate(gradients):
                _add(sums[site], z[0], zeta[0], weights[site] if weights else None, start == low, pool)
    return sums


def _add(sums: SiteSums, z: Tensor, zeta: Tensor, weights: Tensor | None, new: bool, pool: int) -> None:
    rows = zeta.sum(1).cpu().numpy()
    if new:
        state = MomentState.start(rows) if not sums.moments else MomentState.about(sums.moments[0].pilot)
        if sums.moments:
            state.update(rows)
        sums.moments.append(state)
    else:
        sums.moments[-1].update(rows)
    kept = sum(map(len, sums.pool))
    if kept < pool:
        sums.pool.append(rows[: pool - kept].copy())
    if weights is not None:
        batch = FeatureSums.of(zeta, features(weights, z))
        if new:
            sums.features.append(batch)
        else:
            sums.features[-1] = sums.features[-1] + batch


SiteMoments = tuple[Moments, Moments, dict[str, Estimate]]


def site_moments(states: Sequence[MomentState]) -> SiteMoments:
    """Unbiased moments, plug-in moments, and the jackknife limits over blocks, from the states of the blocks."""
    sums, without = delete_state_sums(states)
    sizes: FloatArray = np.array([state.n for state in states], dtype=np.float64)
    moments = unbiased(sums)
    return moments, plug_in(sums), dict(moment_intervals(moments, [Replicates(unbiased(without), sizes)]))


def site_feature_signal(blocks: Sequence[FeatureSums]) -> tuple[FeatureSums, Estimate]:
    """The sums of all rows, and the unbiased squared signal with its jackknife limits over blocks."""
    total = reduce(add, blocks)
    left: FloatArray = np.array([(total - block).unbiased for block in blocks])
    sizes: FloatArray = np.array([block.n for block in blocks], dtype=np.float64)
    return total, jackknife(total.unbiased, [left], [sizes])
