"""All that is measured of one net on one set of samples, site by site, in one pass over the samples.

The samples are cut into blocks of neighbours. Each block has a state of its own, so that the jackknife can leave it
out; memory grows with the number of blocks, never with the number of samples. Batches are cut for speed alone and may
end within a block. The first `pool` rows of every site are kept for what needs rows: correlations, their null, heat
maps.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
from torch import Tensor

from jumpboard.measure.features import FeatureSums, hidden_units
from jumpboard.measure.gradients import over_positions, site_gradients
from jumpboard.measure.intervals import Estimate, Replicates, jackknife, moment_intervals
from jumpboard.measure.jackknife import delete_state_sums
from jumpboard.measure.moments import FloatArray, Moments, Rows, centre, plug_in, unbiased
from jumpboard.measure.streaming import MomentState
from jumpboard.nets.base import Leaves, Net

BATCH = 1000
NUMBERS = 2**20


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


def batch_size(net: Net) -> int:
    """Samples that pass through a net at once: at most `BATCH`, and `NUMBERS` numbers in the largest stream."""
    largest = max(site.units * site.positions for site in net.sites())
    return max(1, min(BATCH, NUMBERS // largest))


def measure_sites(
    net: Net, leaves: Leaves, x: Tensor, y: Tensor, *, weights: Sequence[Tensor] = (), blocks: int = 20, pool: int = 0
) -> list[SiteSums]:
    """Sums of every site over x [n, *input_shape], y [n], for a net of one member.

    `weights` holds W1 of each site; without them `signal_feature` is not measured. `blocks` are cut to whole samples.
    """
    sums = [SiteSums([], [], []) for _ in range(net.depth + 1)]
    edges = np.linspace(0, len(x), min(blocks, len(x)) + 1).astype(int)
    step = batch_size(net)
    for start in range(0, len(x), step):
        batch = slice(start, start + step)
        for site, (z, zeta) in enumerate(site_gradients(net, leaves, x[None, batch], y[None, batch])):
            rows = over_positions(zeta[0]).cpu().numpy()
            hidden = hidden_units(weights[site], z[0]) if weights else None
            for block, part in _parts(edges, start, len(rows)):
                _add_rows(sums[site], block, rows[part], pool)
                if hidden is not None:
                    _add_features(sums[site], block, FeatureSums.of(zeta[0, part], hidden[part]))
    return sums


def _parts(edges: np.ndarray, start: int, count: int) -> Iterator[tuple[int, slice]]:
    """The blocks that a batch of `count` samples from `start` on touches, and where they lie in it."""
    cuts = np.clip(edges - start, 0, count)
    return ((block, slice(low, high)) for block, (low, high) in enumerate(pairwise(cuts)) if low < high)


def _add_rows(sums: SiteSums, block: int, rows: Rows, pool: int) -> None:
    if block == len(sums.moments):  # all about the first block's pilot, so that none has to be moved
        pilot = sums.moments[0].pilot if sums.moments else centre(rows)[0]
        sums.moments.append(MomentState.about(pilot))
    sums.moments[block].update(rows)
    kept = sum(map(len, sums.pool))
    if kept < pool:
        sums.pool.append(rows[: pool - kept].copy())


def _add_features(sums: SiteSums, block: int, part: FeatureSums) -> None:
    if block == len(sums.features):
        sums.features.append(part)
    else:
        sums.features[block] += part


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
