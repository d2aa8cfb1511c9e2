"""Activation gradients at all sites of a net, in one forward and one backward pass per batch.

    zeta_l = d loss / d z_l        for each sample alone, l = 0..L

The loss is summed over samples, which do not meet in evaluation mode, so that the gradient of the sum with respect to
the streams holds each sample's own. Nothing below site 0 and no weight is differentiated. Paper `depth`, notation.
"""

import torch
from torch import Tensor

from jumpboard.errors import InputError
from jumpboard.nets.base import Leaves, Net, forward
from jumpboard.training.evaluation import cross_entropy


def site_gradients(net: Net, leaves: Leaves, x: Tensor, y: Tensor, train: bool = False) -> list[tuple[Tensor, Tensor]]:
    """Per site the stream z and its gradient zeta, each [G, B, P, N]; x [G, B, *input_shape], y [G, B].

    Raises InputError for `train` where the net has running statistics: BatchNorm then mixes the samples of a batch, and
    no sample has a gradient of its own.
    """
    if train and net.buffer_shapes():
        raise InputError(
            "gradients of single samples do not exist in train mode: BatchNorm mixes the samples of a batch;"
            " accepted: evaluation mode"
        )
    streams: list[Tensor] = []

    def tap(site: int, z: Tensor) -> Tensor:
        streams.append(z.detach().requires_grad_() if site == 0 else z)
        return streams[-1]

    with torch.enable_grad():
        loss = cross_entropy(forward(net, leaves, x, train, tap), y).sum()
        gradients = torch.autograd.grad(loss, streams)
    members = x.shape[0]
    return [
        (net.positions(z.detach(), members), net.positions(zeta, members))
        for z, zeta in zip(streams, gradients, strict=True)
    ]


def over_positions(zeta: Tensor) -> Tensor:
    """zeta [..., P, N] summed over positions, [..., N]; the same memory where there is one."""
    return zeta[..., 0, :] if zeta.shape[-2] == 1 else zeta.sum(-2)
