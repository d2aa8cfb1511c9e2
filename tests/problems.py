"""Small nets that cover every switch of every family, with matching inputs: the one list that tests of nets share."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jumpboard.nets.base import Net
from jumpboard.nets.registry import build_net

CLASSES = 3


@dataclass(frozen=True)
class Problem:
    """A net by its config entry, small enough for a per-sample loop."""

    name: str
    spec: Mapping[str, Any]
    depth: int
    width: int
    input_shape: tuple[int, ...]

    def net(self) -> Net:
        return build_net(self.spec, self.depth, self.width, self.input_shape, CLASSES)


def _resmlp(name: str, depth: int = 3, input_shape: tuple[int, ...] = (5,), **switches: Any) -> Problem:
    return Problem(f"resmlp_{name}", {"family": "resmlp", **switches}, depth, 6, input_shape)


def _resnet(name: str, depth: int = 3, width: int = 4, **switches: Any) -> Problem:
    return Problem(f"resnet_{name}", {"family": "resnet", **switches}, depth, width, (2, 9, 6))


PROBLEMS = (
    _resmlp("rms"),
    _resmlp("one_block", depth=1),
    _resmlp("picture", input_shape=(2, 3, 3)),
    _resmlp("layer", norm="layer"),
    _resmlp("eps", eps=0.01),
    _resmlp("gain", gain=True),
    _resmlp("bias", bias=True),
    _resmlp("layer_gain_bias", norm="layer", gain=True, bias=True),
    _resnet("batch"),
    _resnet("batch_deeper", depth=6, width=2),
    _resnet("batch_strided", stem_stride=2),
    _resnet("batch_post", post_norm=True),
    _resnet("group", norm="group"),
    _resnet("group_post", norm="group", post_norm=True, width=3),
    _resnet("rms", norm="rms"),
    _resnet("rms_post", norm="rms", post_norm=True),
)
"""Picture sizes are odd or unequal on purpose; width 3 has no even group."""


def initial_leaves(net: Net, members: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> dict[str, Tensor]:
    """Leaves [G, ...] of independent members at step 0."""
    each = [net.initial_leaves(np.random.default_rng([seed, member])) for member in range(members)]
    return {name: torch.tensor(np.stack([one[name] for one in each])).to(dtype) for name in each[0]}


def trained_leaves(net: Net, members: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> dict[str, Tensor]:
    """As `initial_leaves`, but gains, shifts and running statistics have left 1 and 0: forgetting one shows."""
    generator = torch.Generator().manual_seed(seed)
    leaves = initial_leaves(net, members, seed, dtype)
    for name, leaf in leaves.items():
        if leaf.dim() == 2:
            noise = 0.3 * torch.randn(leaf.shape, generator=generator, dtype=torch.float64).to(dtype)
            leaves[name] = leaf * noise.exp() if name.endswith("variance") else leaf + noise
    return leaves


def inputs(net: Net, members: int, batch: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """Gaussian inputs [G, B, *input_shape], other samples for each member."""
    generator = torch.Generator().manual_seed(seed + 1)
    shape = (members, batch, *net.input_shape)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def labels(net: Net, members: int, batch: int, seed: int = 0) -> Tensor:
    """Uniform labels [G, B]."""
    return torch.randint(net.classes, (members, batch), generator=torch.Generator().manual_seed(seed + 2))
