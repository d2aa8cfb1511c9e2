"""All members' parameters as one matrix [members, parameters], its leaves as views.

Optimiser, clipping, snapshots and saved states then are a few operations on one tensor, whatever the net.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from jumpboard.nets.base import Leaves, Net
from jumpboard.streams import WEIGHTS, generator


@dataclass(frozen=True)
class Layout:
    """Where each leaf lies in a member's flat vector: parameters first, then buffers."""

    shapes: Mapping[str, tuple[int, ...]]
    trained: int

    @classmethod
    def of(cls, net: Net) -> "Layout":
        """The layout of a net's leaves."""
        return cls({**net.parameter_shapes(), **net.buffer_shapes()}, net.parameter_count())

    @property
    def size(self) -> int:
        return sum(math.prod(shape) for shape in self.shapes.values())

    def leaves(self, flat: Tensor) -> dict[str, Tensor]:
        """Views of `flat` [G, size] by name, each [G, *shape]."""
        views, start = {}, 0
        for name, shape in self.shapes.items():
            stop = start + math.prod(shape)
            views[name] = flat[:, start:stop].view(flat.shape[0], *shape)
            start = stop
        return views

    def flat(self, leaves: Leaves) -> Tensor:
        """The matrix [G, size] of leaves [G, ...], a copy: the inverse of `leaves`."""
        return torch.cat([leaves[name].flatten(1) for name in self.shapes], dim=1)

    def decayed(self) -> Tensor:
        """1 for each trained entry of a leaf with two or more dimensions, else 0: what weight decay acts on."""
        marks = [torch.full((math.prod(shape),), float(len(shape) > 1)) for shape in list(self.shapes.values())]
        return torch.cat(marks)[: self.trained]


def initial_members(net: Net, seeds: Sequence[int]) -> Tensor:
    """The flat matrix [len(seeds), size] at step 0, float32, each member from its seed's weight stream."""
    layout = Layout.of(net)
    members = []
    for seed in seeds:
        leaves = net.initial_leaves(generator(seed, WEIGHTS))
        members.append(np.concatenate([np.ravel(leaves[name]) for name in layout.shapes]))
    return torch.from_numpy(np.stack(members))
