"""Random crop and horizontal flip of a batch of images, on any device.

    out[b, c, i, j] = padded[b, c, i + dy_b, k + dx_b],   k = W - 1 - j where b is flipped, else j

`padded` has `crop` zeros on each side, and the offsets (dy, dx) lie in 0..2 crop. The images are normalised already,
so a zero is the channel's training mean. Offsets and flips are drawn for a whole epoch at once from a generator of
(seed, stream, epoch): they are functions of the step and a resumed run needs no state of them.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from jumpboard.errors import InputError


@dataclass(frozen=True)
class Augmentation:
    """One epoch's decisions, a row per sample, on the CPU: `offsets` [n, 2] int64 (down, right), `flips` [n] bool."""

    offsets: Tensor
    flips: Tensor


def draw_augmentation(generator: np.random.Generator, count: int, crop: int, flip: bool) -> Augmentation:
    """Offsets uniform over (2 crop + 1)^2 and flips with probability 1/2, or none where `flip` is false."""
    if crop < 0:
        raise InputError(f"augmentation: crop is {crop} pixels; accepted: 0 or more")
    offsets = generator.integers(0, 2 * crop + 1, size=(count, 2))
    flips = generator.random(count) < 0.5 if flip else np.zeros(count, dtype=bool)
    return Augmentation(torch.from_numpy(offsets), torch.from_numpy(flips))


def augment(x: Tensor, offsets: Tensor, flips: Tensor, crop: int) -> Tensor:
    """Crop and flip normalised images x [B, C, H, W] by offsets [B, 2] and flips [B] on x's device: same shape."""
    if x.ndim != 4:
        raise InputError(f"augmentation: takes images [B, C, H, W], not a batch of shape {list(x.shape)}")
    batch, channels, height, width = x.shape
    j = torch.arange(width, device=x.device)
    down = offsets[:, :1] + torch.arange(height, device=x.device)
    right = offsets[:, 1:] + torch.where(flips[:, None], width - 1 - j, j)
    index = down[:, :, None] * (width + 2 * crop) + right[:, None, :]
    padded = torch.nn.functional.pad(x, (crop,) * 4).flatten(2)
    return padded.gather(2, index.view(batch, 1, -1).expand(-1, channels, -1)).view_as(x)
