"""Loss and accuracy of all members on a set of samples, in evaluation mode."""

import torch
from torch import Tensor

from jumpboard.nets.base import Leaves, Net, forward

EVALUATION_BATCH = 1000


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Per-sample cross-entropy [G, B] in nats of logits [G, B, classes] and labels [G, B]."""
    return torch.logsumexp(logits, -1) - logits.gather(-1, labels.unsqueeze(-1)).squeeze(-1)


@torch.no_grad()
def evaluate(net: Net, leaves: Leaves, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Mean loss [G] (nats) and accuracy [G] over x [n, *input_shape], y [n]; float64 sums."""
    members = next(iter(leaves.values())).shape[0]
    losses = torch.zeros(members, dtype=torch.float64, device=x.device)
    correct = torch.zeros_like(losses)
    for start in range(0, len(x), EVALUATION_BATCH):
        inputs = x[start : start + EVALUATION_BATCH].expand(members, *[-1] * x.dim())
        labels = y[start : start + EVALUATION_BATCH].expand(members, -1)
        logits = forward(net, leaves, inputs)
        losses += cross_entropy(logits, labels).double().sum(-1)
        correct += (logits.argmax(-1) == labels).sum(-1)
    return losses / len(x), correct / len(x)
