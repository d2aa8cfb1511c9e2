"""`resmlp`, the reference post-normalised net.

    z_0 = Norm(W_in x)      z_l = Norm(z_{l-1} + W2 relu(W1 z_{l-1}))      logits = W_head z_L

Hidden width N. Norm is RMSNorm without gain and without shift; `norm`, `gain`, `bias` and `eps` are switches. With
bias-free blocks no trained shift feeds the stream, which keeps the bias signal meaningful after training. A norm's
Lipschitz constant is 1/sqrt(eps): a large eps keeps bounds on the net finite, but such a norm changes what it has
normalised.
W_in ~ N(0, 1/fan_in), W1 ~ N(0, 2/N), W2 ~ N(0, 1/(N L)), W_head ~ N(0, 0.01) (variances); gains 1, biases 0.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from jumpboard.errors import InputError
from jumpboard.nets.base import Leaves, Net, Site
from jumpboard.nets.norms import EPS, layer_norm, rms_norm

NORMS: dict[str, Callable[..., Tensor]] = {"rms": rms_norm, "layer": layer_norm}


@dataclass(frozen=True)
class ResMLP(Net):
    """Stream layout [G, B, N]. `bias` adds a trained shift to every product; `gain` a trained gain to every norm;
    `eps` stands in the norms' root."""

    norm: str = "rms"
    gain: bool = False
    bias: bool = False
    eps: float = EPS
    family: ClassVar[str] = "resmlp"

    def __post_init__(self) -> None:
        if self.norm not in NORMS:
            raise InputError(f"resmlp: norm '{self.norm}' is not known; accepted: {', '.join(NORMS)}")
        if self.depth < 1 or self.width < 1:
            raise InputError(f"resmlp: depth {self.depth} and width {self.width} must be at least 1")
        if not self.eps > 0:
            raise InputError(f"resmlp: eps {self.eps} must be more than 0")

    @property
    def inputs(self) -> int:
        return math.prod(self.input_shape)

    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        n = self.width
        shapes: dict[str, tuple[int, ...]] = {"stem.weight": (n, self.inputs)}
        shapes |= {"stem.bias": (n,)} if self.bias else {}
        shapes |= {"stem.gain": (n,)} if self.gain else {}
        for index in range(self.depth):
            block = f"blocks.{index}"
            shapes |= {f"{block}.w1": (n, n), f"{block}.w2": (n, n)}
            shapes |= {f"{block}.b1": (n,), f"{block}.b2": (n,)} if self.bias else {}
            shapes |= {f"{block}.gain": (n,)} if self.gain else {}
        shapes["head.weight"] = (self.classes, n)
        shapes |= {"head.bias": (self.classes,)} if self.bias else {}
        return shapes

    def initial_leaves(self, generator: np.random.Generator) -> dict[str, np.ndarray]:
        n = self.width
        variances = {"stem.weight": 1 / self.inputs, "w1": 2 / n, "w2": 1 / (n * self.depth), "head.weight": 0.01}
        leaves = {}
        for name, shape in self.parameter_shapes().items():
            variance = variances.get(name, variances.get(name.rsplit(".", 1)[-1]))
            if variance is not None:
                leaves[name] = (generator.standard_normal(shape) * math.sqrt(variance)).astype(np.float32)
            else:
                leaves[name] = np.full(shape, 1.0 if name.endswith("gain") else 0.0, dtype=np.float32)
        return leaves

    def _normalised(self, leaves: Leaves, place: str, z: Tensor) -> Tensor:
        z = NORMS[self.norm](z, eps=self.eps)
        return z * leaves[f"{place}.gain"].unsqueeze(1) if self.gain else z

    def _product(self, leaves: Leaves, weight: str, bias: str, z: Tensor) -> Tensor:
        product = torch.bmm(z, leaves[weight].mT)
        return product + leaves[bias].unsqueeze(1) if self.bias else product

    def stem(self, leaves: Leaves, x: Tensor, train: bool) -> Tensor:
        return self._normalised(leaves, "stem", self._product(leaves, "stem.weight", "stem.bias", x.flatten(2)))

    def block(self, leaves: Leaves, index: int, z: Tensor, train: bool) -> Tensor:
        place = f"blocks.{index}"
        hidden = torch.relu(self._product(leaves, f"{place}.w1", f"{place}.b1", z))
        return self._normalised(leaves, place, z + self._product(leaves, f"{place}.w2", f"{place}.b2", hidden))

    def head(self, leaves: Leaves, z: Tensor, train: bool = False) -> Tensor:
        return self._product(leaves, "head.weight", "head.bias", z)

    def positions(self, z: Tensor, members: int) -> Tensor:
        return z.unsqueeze(2)

    def from_positions(self, p: Tensor, z: Tensor) -> Tensor:
        return p.squeeze(2)

    @property
    def stream_norm(self) -> Callable[[Tensor], Tensor] | None:
        return None if self.gain or self.eps > EPS else partial(NORMS[self.norm], eps=self.eps)

    def layers(self) -> dict[str, tuple[str, ...]] | None:
        if self.gain or self.bias:
            return None
        blocks = {f"block_{index}": (f"blocks.{index}.w1", f"blocks.{index}.w2") for index in range(self.depth)}
        return {"input": ("stem.weight",), **blocks, "head": ("head.weight",)}

    def sites(self) -> tuple[Site, ...]:
        return tuple(Site(index, self.width, 1, shifted=self.bias) for index in range(self.depth + 1))

    def forward_flops(self) -> int:
        n = self.width
        return 2 * (n * self.inputs + 2 * n * n * self.depth + n * self.classes)


build = ResMLP
