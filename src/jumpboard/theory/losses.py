"""Losses with a range and a Lipschitz constant in the logits that are known beforehand.

    brier             sum_k (p_k - [k = y])^2      range [0, 2]
    cross_entropy     min(-ln p_y, B)              range [0, B],  B = ln(classes) + 2

Gradients in the logits are 2 (diag p - p p')(p - e_y), with |diag p - p p'| <= 1/2, and p - e_y; |p - e_y| < sqrt 2, so
that sqrt 2 is a Lipschitz constant of both, in Euclidean norm. Paper `depth`, certificates.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from jumpboard.expansion.gains import loss_bound


@dataclass(frozen=True)
class BoundedLoss:
    """`values(log p [classes, ...], log p_y [...])` lie in [0, B], B = `bound(classes)`."""

    values: Callable[[Tensor, Tensor], Tensor]
    bound: Callable[[int], float]
    lipschitz: float = math.sqrt(2)


def brier(log_p: Tensor, own: Tensor) -> Tensor:
    return log_p.exp().square().sum(0) - 2 * own.exp() + 1


def clipped_cross_entropy(log_p: Tensor, own: Tensor) -> Tensor:
    return (-own).clamp(max=loss_bound(len(log_p)))


LOSSES = {
    "brier": BoundedLoss(brier, lambda classes: 2.0),
    "cross_entropy": BoundedLoss(clipped_cross_entropy, loss_bound),
}


def loss_values(logits: Tensor, labels: Tensor, names: Sequence[str]) -> dict[str, Tensor]:
    """By loss, its values [..., n] in float64 of logits [..., n, classes] and labels [n]."""
    log_p = torch.log_softmax(logits.double().movedim(-1, 0).contiguous(), 0)  # few classes: sums of whole rows
    own = log_p.gather(0, labels.expand(log_p.shape[1:]).unsqueeze(0)).squeeze(0)
    return {name: LOSSES[name].values(log_p, own) for name in names}
