"""Gains of one net over another from per-sample losses of the same samples, and a lower limit that holds at every n.

    d_i = loss_old(i) - loss_new(i)      gain = mean d      t = gain/sqrt(Var d/n)
    limit = gain - sqrt(2 Var d ln(2 G/delta)/n) - 7 range ln(2 G/delta)/(3 (n - 1))

The limit is the empirical Bernstein bound (Maurer and Pontil 2009, theorem 4) for any law of d within `range`: it lies
above the true gain with probability at most delta, over all G steps examined on these samples together (G = 1 where the
step was chosen on others). The range is known beforehand: losses clipped at B differ by at most B either way, a range
of 2B; never the range seen in the sample. Paper `depth`, section on the jumpboard; the limit is derived.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from jumpboard.measure.moments import FloatArray
from jumpboard.measure.sites import BATCH, NUMBERS
from jumpboard.nets.base import Leaves, Net, forward
from jumpboard.theory.limits import bernstein_slack
from jumpboard.training.evaluation import cross_entropy

DELTA = 0.05


@torch.no_grad()
def sample_losses(net: Net, leaves: Leaves, x: Tensor, y: Tensor, bound: float = math.inf) -> FloatArray:
    """Cross-entropy [G, n] in nats of every sample of x [n, *input_shape], y [n], in evaluation mode; float64 from the
    logits on, clipped at `bound`."""
    members = next(iter(leaves.values())).shape[0]
    losses = np.empty((members, len(x)))
    for part in parts(net, members, len(x)):
        inputs, labels = x[part].expand(members, *[-1] * x.dim()), y[part].expand(members, -1)
        logits = forward(net, leaves, inputs).double()
        losses[:, part] = cross_entropy(logits, labels).clamp(max=bound).cpu().numpy()
    return losses


def parts(net: Net, members: int, samples: int) -> Iterator[slice]:
    """The batches that samples pass through all members in: at most `BATCH`, and `NUMBERS` numbers in the largest
    stream."""
    largest = max(site.units * site.positions for site in net.sites())
    step = max(1, min(BATCH, NUMBERS // (members * largest)))
    return (slice(start, start + step) for start in range(0, samples, step))


@dataclass(frozen=True)
class Gain:
    """Paired gains of G members over n samples, in nats: mean, unbiased variance of d, and t, each [G]; t is 0 where
    all d are equal."""

    n: int
    mean: FloatArray
    variance: FloatArray

    @property
    def error(self) -> FloatArray:
        """The standard error of the mean [G]."""
        error: FloatArray = np.sqrt(self.variance / self.n)
        return error

    @property
    def t(self) -> FloatArray:
        error = self.error
        t: FloatArray = np.divide(self.mean, error, out=np.zeros_like(error), where=error > 0)
        return t

    def lower_limit(self, span: float, steps: int = 1, delta: float = DELTA) -> FloatArray:
        """The empirical Bernstein limit [G] for d of a range `span`, with `steps` examined on these samples."""
        limit: FloatArray = self.mean - bernstein_slack(self.variance, span, self.n, delta, steps)
        return limit


def paired_gain(before: FloatArray, after: FloatArray) -> Gain:
    """The gain of `after` over `before`, losses [G, n] of the same samples, n >= 2."""
    d = before - after
    return Gain(d.shape[1], d.mean(axis=1), d.var(axis=1, ddof=1))


def loss_bound(classes: int) -> float:
    """B = ln(classes) + 2, at which losses are clipped."""
    return math.log(classes) + 2
