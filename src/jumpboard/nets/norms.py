"""Normalisations, eps inside the root: RMSNorm `z / rms(z)`, LayerNorm `(z - mean) / sd`.

Statistics are float32 at least, also where autocast hands over half precision; the result has z's type.
"""

import torch
from torch import Tensor
from torch.nn import functional

EPS = 1e-6


def rms_norm(z: Tensor, dim: int = -1, eps: float = EPS) -> Tensor:
    """z divided by the root of its mean square over `dim` plus eps."""
    wide = z.to(torch.promote_types(z.dtype, torch.float32))
    return (wide * torch.rsqrt(wide.square().mean(dim, keepdim=True) + eps)).to(z.dtype)


def layer_norm(z: Tensor, eps: float = EPS) -> Tensor:
    """z [..., N] centred, then divided as in `rms_norm`."""
    return functional.layer_norm(z, z.shape[-1:], eps=eps)
