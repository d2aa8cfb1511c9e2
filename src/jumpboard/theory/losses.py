"""Losses with a range and a Lipschitz constant in the logits that are known beforehand.

    brier             sum_k (p_k - [k = y])^2      range [0, 2]
    cross_entropy     min(-ln p_y, B)              range [0, B],  B = ln(classes) + 2

Gradients in the logits are 2 (diag p - p p')(p - e_y), with |diag p - p p'| <= 1/2, and p - e_y; |p - e_y| < sqrt 2, so
that sqrt 2 is a Lipschitz constant of both, in Euclidean norm. Paper `depth`, certificates.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from jumpboard.data.samples import Tensors
from jumpboard.expansion.choice import loss_bound
from jumpboard.expansion.gains import batches
from jumpboard.measure.moments import FloatArray
from jumpboard.nets.base import Leaves, Net
from jumpboard.training.evaluation import cross_entropy


@dataclass(frozen=True)
class BoundedLoss:
    """`values(logits [..., classes], labels [...])` lie in [0, B], B = `bound(classes)`."""

    values: Callable[[Tensor, Tensor], Tensor]
    bound: Callable[[int], float]
    lipschitz: float = math.sqrt(2)


def brier(logits: Tensor, labels: Tensor) -> Tensor:
    """|p - e_y|^2 for p = softmax(logits)."""
    p = torch.softmax(logits, -1)
    own = p.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    return p.square().sum(-1) - 2 * own + 1


def clipped_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    return cross_entropy(logits, labels).clamp(max=loss_bound(logits.shape[-1]))


LOSSES = {
    "brier": BoundedLoss(brier, lambda classes: 2.0),
    "cross_entropy": BoundedLoss(clipped_cross_entropy, loss_bound),
}


@torch.no_grad()
def batch_losses(
    net: Net, leaves: Leaves, samples: Tensors, names: Sequence[str]
) -> Iterator[tuple[slice, dict[str, FloatArray]]]:
    """Batch by batch of the samples x [n, *input_shape], y [n]: which they are, and by loss their values [G, B]."""
    for part, logits, labels in batches(net, leaves, *samples):
        yield part, {name: LOSSES[name].values(logits, labels).cpu().numpy() for name in names}
