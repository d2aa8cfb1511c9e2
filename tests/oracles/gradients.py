"""Slow and obvious: the gradient of one sample at one site, by running that sample alone from the site on."""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from jumpboard.nets.base import Leaves, Net, run_from, run_to


def _positions(z: Tensor) -> Tensor:
    """One sample's stream, [1, 1, N] or [1, C, H, W], as positions x units."""
    return z[0].flatten(1).T if z.dim() == 4 else z[0]


def loop_gradients(net: Net, leaves: Leaves, x: Tensor, y: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Per site z and zeta, each [n, P, N], of one member's samples x [n, *input_shape], y [n]."""
    sites = []
    for site in range(net.depth + 1):
        pairs = []
        for i in range(len(x)):
            z = run_to(net, leaves, x[None, i : i + 1], site).detach().clone().requires_grad_()
            loss = functional.cross_entropy(run_from(net, leaves, z, site)[0], y[i : i + 1])
            (zeta,) = torch.autograd.grad(loss, z)
            pairs.append((_positions(z.detach()), _positions(zeta)))
        z, zeta = zip(*pairs, strict=True)
        sites.append((torch.stack(z), torch.stack(zeta)))
    return sites


def loop_rows(net: Net, leaves: Leaves, x: Tensor, y: Tensor) -> list[np.ndarray]:
    """Per site the rows [n, N] that are measured: zeta summed over positions."""
    return [zeta.sum(1).numpy() for _, zeta in loop_gradients(net, leaves, x, y)]


def feature_rows(weights: Tensor, z: Tensor, zeta: Tensor) -> np.ndarray:
    """The rows [n, N (4N + 1)] of the random-feature block, sample by sample and position by position."""
    rows = []
    for stream, gradient in zip(z, zeta, strict=True):
        row = torch.zeros(zeta.shape[2], len(weights) + 1, dtype=zeta.dtype)
        for position, slope in zip(stream, gradient, strict=True):
            phi = torch.tensor([*torch.clamp(weights @ position, min=0), 1.0], dtype=zeta.dtype)
            row += torch.outer(slope, phi)
        rows.append(row.flatten())
    return torch.stack(rows).numpy()
