"""New blocks within the caps of their training, so that it takes them over as they are.

    |W1|_2 <= spectral    |W1|_F <= frobenius/sqrt(2)    |A|_2 <= spectral    |W1|_F^2 + |A|_F^2 <= frobenius^2

The drawn W1 is projected onto the first two, which leaves room for A = -eta D: the last two hold for
eta <= min(spectral/|D|_2, sqrt(frobenius^2 - |W1|_F^2)), and longer steps are cut to that. Derived.
"""

import math

import torch
from torch import Tensor

from jumpboard.training.caps import BELOW, clipped
from jumpboard.training.recipe import Caps


def held(w1: Tensor, caps: Caps | None) -> Tensor:
    """The matrices W1 [G, 4N, N] within `caps`; as they are where there are none."""
    if caps is None:
        return w1
    matrices, most = clipped(w1.double(), caps.spectral), BELOW * caps.frobenius / math.sqrt(2)
    norms = torch.linalg.vector_norm(matrices, dim=(1, 2), keepdim=True)
    within: Tensor = matrices * (most / norms).clamp(max=1.0)
    return within.to(w1.dtype)


def cut_steps(steps: Tensor, unit: Tensor, w1: Tensor, caps: Caps | None) -> Tensor:
    """The steps [count, G] along unit [G, N, 4N + 1], of Frobenius norm 1, that keep the block of W1 [G, 4N, N] within
    `caps`: longer ones at the longest, all of them where there are no caps."""
    if caps is None:
        return steps
    by_spectrum = caps.spectral / torch.linalg.matrix_norm(unit, ord=2)
    by_layer = (caps.frobenius**2 - w1.double().square().sum((1, 2))).sqrt()
    return torch.minimum(steps, BELOW * torch.minimum(by_spectrum, by_layer))
