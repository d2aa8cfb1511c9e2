"""All that is measured of one net on one set of samples, site by site, in one pass over the samples.

The samples are cut into blocks of neighbours. Each block has a state of its own, so that the jackknife can leave it
out; memory grows with the number of blocks, never with the number of samples. Batches are cut for speed alone and may
end within a block. Narrow sites of one shape are summed side by side, which costs one call instead of many. The first
`pool` rows of every site are kept for what needs rows: correlations, their null, heat maps.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
import torch
from torch import Tensor

from jumpboard.measure.features import FeatureSums, hidden_units
from jumpboard.measure.gradients import over_positions, site_gradients
from jumpboard.measure.intervals import Estimate, Replicates, jackknife, moment_intervals
from jumpboard.measure.jackknife import delete_state_sums
from jumpboard.measure.moments import FloatArray, Moments, Value, centre, plug_in, unbiased
from jumpboard.measure.streaming import MomentState
from jumpboard.nets.base import Leaves, Net, Site

BATCH = 4000
NUMBERS = 2**20


@dataclass(frozen=True)
class FeatureSignal:
    """`signal_feature` squared with its limits, the plug-in value beside it, and E |phi|^2."""

    interval: Estimate
    plug_in: float
    phi_mean_square: float


@dataclass(frozen=True)
class SiteMeasures:
    """What was measured at one site: unbiased and plug-in moments, their limits, the feature signal where its weights
    were given, and the pooled rows [pool, N] in the net's precision."""

    moments: Moments
    plug_in: Moments
    intervals: dict[str, Estimate]
    feature: FeatureSignal | None
    rows: np.ndarray


@dataclass
class SumsTogether:
    """The sums of some sites of one shape, one entry per block, and their pooled rows [K, b, N] batch by batch."""

    sites: tuple[int, ...]
    moments: list[MomentState] = field(default_factory=list)
    features: list[FeatureSums] = field(default_factory=list)
    pool: list[np.ndarray] = field(default_factory=list)


def batch_size(net: Net) -> int:
    """Samples that pass through a net at once: at most `BATCH`, and `NUMBERS` numbers in the largest stream."""
    largest = max(site.units * site.positions for site in net.sites())
    return max(1, min(BATCH, NUMBERS // largest))


def sites_together(sites: Sequence[Site], batch: int) -> list[tuple[int, ...]]:
    """Neighbouring sites of one shape, as many as keep their streams of a batch within `NUMBERS` numbers."""
    groups: list[list[Site]] = []
    for site in sites:
        most = max(1, NUMBERS // (batch * site.units * site.positions))
        before = groups[-1] if groups else []
        same = [(one.units, one.positions) for one in before[:1]] == [(site.units, site.positions)]
        if same and len(before) < most:
            before.append(site)
        else:
            groups.append([site])
    return [tuple(site.index for site in group) for group in groups]


def measure_sites(
    net: Net, leaves: Leaves, x: Tensor, y: Tensor, *, weights: Sequence[Tensor] = (), blocks: int = 20, pool: int = 0
) -> list[SiteMeasures]:
    """Every site's measures over x [n, *input_shape], y [n], for a net of one member.

    `weights` holds W1 of each site; without them `signal_feature` is not measured. `blocks` are cut to whole samples.
    """
    edges = np.linspace(0, len(x), min(blocks, len(x)) + 1).astype(int)
    step = batch_size(net)
    together = [SumsTogether(sites) for sites in sites_together(net.sites(), min(step, len(x)))]
    stacked = [torch.stack([weights[site] for site in one.sites]) for one in together if weights]
    for start in range(0, len(x), step):
        batch = slice(start, start + step)
        gradients = site_gradients(net, leaves, x[None, batch], y[None, batch])
        parts = list(blocks_of_batch(edges, start, len(gradients[0][0][0])))
        for index, sums in enumerate(together):
            zeta = torch.cat([gradients[site][1] for site in sums.sites])
            _add_rows(sums, over_positions(zeta).cpu().numpy(), parts, pool)
            if weights:
                z = torch.cat([gradients[site][0] for site in sums.sites])
                _add_features(sums, zeta, hidden_units(stacked[index], z), parts)
    return [measures for sums in together for measures in _finished(sums)]


def blocks_of_batch(edges: np.ndarray, start: int, count: int) -> Iterator[tuple[int, slice]]:
    """The blocks that a batch of `count` samples from `start` on touches, and where they lie in it."""
    cuts = np.clip(edges - start, 0, count)
    return ((block, slice(low, high)) for block, (low, high) in enumerate(pairwise(cuts)) if low < high)


def _add_rows(sums: SumsTogether, rows: np.ndarray, parts: Sequence[tuple[int, slice]], pool: int) -> None:
    for block, part in parts:
        if block == len(sums.moments):  # all about the first block's pilot, so that none has to be moved
            pilot = sums.moments[0].pilot if sums.moments else centre(rows[:, part])[0]
            sums.moments.append(MomentState.about(pilot))
        sums.moments[block].update(rows[:, part])
    kept = sum(batch.shape[1] for batch in sums.pool)
    if kept < pool or not sums.pool:
        sums.pool.append(rows[:, : pool - kept].copy())


def _add_features(sums: SumsTogether, zeta: Tensor, hidden: Tensor, parts: Sequence[tuple[int, slice]]) -> None:
    for block, part in parts:
        new = FeatureSums.of(zeta[:, part], hidden[:, part])
        if block == len(sums.features):
            sums.features.append(new)
        else:
            sums.features[block] += new


def feature_signal(blocks: Sequence[FeatureSums]) -> tuple[FeatureSums, Value, FloatArray]:
    """The sums of all rows; the unbiased squared signal [...]; and that without each block [blocks, ...]."""
    total = reduce(add, blocks)
    return total, total.unbiased, np.array([(total - block).unbiased for block in blocks])


def _finished(sums: SumsTogether) -> Iterator[SiteMeasures]:
    """Unbiased moments, plug-in moments, and the jackknife limits over blocks, site by site."""
    every, without = delete_state_sums(sums.moments)
    moments, biased, left = unbiased(every), plug_in(every), unbiased(without)
    sizes: FloatArray = np.array([state.n for state in sums.moments], dtype=np.float64)
    rows = np.concatenate(sums.pool, axis=1)
    signals = list(_signals(sums.features, sizes)) if sums.features else [None] * len(sums.sites)
    for k in range(len(sums.sites)):
        one = moments.at(k)
        intervals = dict(moment_intervals(one, [Replicates(left.at(k), sizes)]))
        yield SiteMeasures(one, biased.at(k), intervals, signals[k], rows[k])


def _signals(blocks: Sequence[FeatureSums], sizes: FloatArray) -> Iterator[FeatureSignal]:
    total, signal, left = feature_signal(blocks)
    plugged, phi = np.atleast_1d(total.plug_in), np.atleast_1d(total.phi_mean_square)
    for k, estimate in enumerate(np.atleast_1d(signal)):
        interval = jackknife(float(estimate), [left[:, k]], [sizes])
        yield FeatureSignal(interval, float(plugged[k]), float(phi[k]))
