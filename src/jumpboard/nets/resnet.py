"""`resnet`, the CIFAR-style ResNet-(6n+2): L = 3n blocks in three stages of `width`, 2 `width` and 4 `width` channels.

    z_0 = relu(Norm(conv x))      z_l = relu(shortcut(z_{l-1}) + Norm(conv2 relu(Norm(conv1 z_{l-1}))))
    post_norm:   z_0 = Norm(conv x)      z_l = Norm(shortcut(z_{l-1}) + conv2 relu(conv1 z_{l-1}))
    logits = W_head mean_positions(z_L) + b_head

3x3 convolutions without bias. A stage begins with stride 2 in conv1 and the parameter-free shortcut (He et al. 2015,
option A): every second position, new channels zero. Norm is one of
    batch   BatchNorm with gain and shift; running statistics with momentum 0.1, their variance unbiased, as in torch
    group   GroupNorm with gain and shift; as many groups as divide the channels, at most 8, of at least 2 channels
    rms     RMSNorm over the channels of each position, without gain and without shift
Convolutions ~ N(0, 2 / fan_out), fan_out = 9 x output channels; with post_norm conv2 ~ N(0, 2 / (fan_out L)), so that
L branches together add as much as one would. W_head ~ N(0, 1 / (3 fan_in)), the variance of torch's default.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from jumpboard.errors import InputError
from jumpboard.nets.base import Leaves, Net, Site
from jumpboard.nets.norms import rms_norm

NORMS = ("batch", "group", "rms")
EPS = 1e-5
MOMENTUM = 0.1
MOST_GROUPS = 8
MOST_FOLDED = 2**15  # channels^2 x positions of the first stage: up to here folding 4 members is 1.2 to 3 times as fast


@dataclass(frozen=True)
class ResNet(Net):
    """Stream layout [B, G C, H, W]: members folded into channels, each its own group. `stem_stride` 2 is for larger
    pictures. A channels-last input keeps its memory format with one member."""

    norm: str = "batch"
    post_norm: bool = False
    stem_stride: int = 1
    family: ClassVar[str] = "resnet"

    def __post_init__(self) -> None:
        if self.norm not in NORMS:
            raise InputError(f"resnet: norm '{self.norm}' is not known; accepted: {', '.join(NORMS)}")
        if self.depth < 3 or self.depth % 3:
            raise InputError(f"resnet: depth {self.depth} must be a positive multiple of 3 (three stages of blocks)")
        least = 2 if self.norm == "group" else 1
        if self.width < least:
            raise InputError(f"resnet: width {self.width} must be at least {least} with norm '{self.norm}'")
        if self.stem_stride not in (1, 2):
            raise InputError(f"resnet: stem_stride {self.stem_stride} is not possible; accepted: 1, 2")
        if len(self.input_shape) != 3:
            raise InputError(f"resnet: input shape {self.input_shape} must be (channels, height, width)")

    @property
    def batches_members(self) -> bool:
        return self.width**2 * self._positions(0) <= MOST_FOLDED

    def _stage(self, site: int) -> int:
        return max(site - 1, 0) // (self.depth // 3)

    def _channels(self, site: int) -> int:
        return self.width << self._stage(site)

    def _positions(self, site: int) -> int:
        stride = self.stem_stride << self._stage(site)
        return math.prod(-(-size // stride) for size in self.input_shape[1:])

    def _norm_places(self) -> dict[str, int]:
        """Channels of every norm, by its name."""
        names = ("norm",) if self.post_norm else ("norm1", "norm2")
        blocks = range(self.depth)
        return {"stem.norm": self.width} | {
            f"blocks.{index}.{name}": self._channels(index + 1) for index in blocks for name in names
        }

    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        shapes: dict[str, tuple[int, ...]] = {"stem.weight": (self.width, self.input_shape[0], 3, 3)}
        for index in range(self.depth):
            before, after = self._channels(index), self._channels(index + 1)
            shapes[f"blocks.{index}.conv1"] = (after, before, 3, 3)
            shapes[f"blocks.{index}.conv2"] = (after, after, 3, 3)
        if self.norm != "rms":
            for place, channels in self._norm_places().items():
                shapes |= {f"{place}.gain": (channels,), f"{place}.shift": (channels,)}
        return shapes | {"head.weight": (self.classes, self._channels(self.depth)), "head.bias": (self.classes,)}

    def buffer_shapes(self) -> dict[str, tuple[int, ...]]:
        shapes: dict[str, tuple[int, ...]] = {}
        if self.norm == "batch":
            for place, channels in self._norm_places().items():
                shapes |= {f"{place}.mean": (channels,), f"{place}.variance": (channels,)}
        return shapes

    def initial_leaves(self, generator: np.random.Generator) -> dict[str, np.ndarray]:
        leaves = {}
        for name, shape in (self.parameter_shapes() | self.buffer_shapes()).items():
            if len(shape) == 1:
                leaves[name] = np.full(shape, float(name.endswith(("gain", "variance"))), dtype=np.float32)
                continue
            variance = 2 / (9 * shape[0]) if len(shape) == 4 else 1 / (3 * shape[1])
            if self.post_norm and name.endswith("conv2"):
                variance /= self.depth
            leaves[name] = (generator.standard_normal(shape) * math.sqrt(variance)).astype(np.float32)
        return leaves

    def _convolved(self, leaves: Leaves, name: str, z: Tensor, stride: int = 1) -> Tensor:
        weight = leaves[name]
        return functional.conv2d(z, weight.flatten(0, 1), stride=stride, padding=1, groups=len(weight))

    def _normalised(self, leaves: Leaves, place: str, z: Tensor, train: bool) -> Tensor:
        members = len(leaves["stem.weight"])
        if self.norm == "rms":
            return rms_norm(torch.unflatten(z, 1, (members, -1)), dim=2).flatten(1, 2)
        gain, shift = leaves[f"{place}.gain"].flatten(), leaves[f"{place}.shift"].flatten()
        if self.norm == "group":
            return functional.group_norm(z, members * groups(z.shape[1] // members), gain, shift, EPS)
        # `data`: written without autograd's notice, which may keep parameters that are views of the same vector
        running = [leaves[f"{place}.{name}"].data for name in ("mean", "variance")]
        mean, variance = (leaf.flatten().clone() for leaf in running)  # autograd keeps what it is given unchanged
        z = functional.batch_norm(z, mean, variance, gain, shift, train, MOMENTUM, EPS)
        if train:
            running[0].copy_(mean.view_as(running[0]))
            running[1].copy_(variance.view_as(running[1]))
        return z

    def stem(self, leaves: Leaves, x: Tensor, train: bool) -> Tensor:
        z = self._convolved(leaves, "stem.weight", x.transpose(0, 1).flatten(1, 2), self.stem_stride)
        if self.norm == "batch" and z.is_cpu:  # channels last in memory: 10-25 % faster, not with other norms
            z = z.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
        z = self._normalised(leaves, "stem.norm", z, train)
        return z if self.post_norm else torch.relu_(z)

    def block(self, leaves: Leaves, index: int, z: Tensor, train: bool) -> Tensor:
        place = f"blocks.{index}"
        stride = self._channels(index + 1) // self._channels(index)
        shortcut = z if stride == 1 else subsampled(z, len(leaves["stem.weight"]))
        z = self._convolved(leaves, f"{place}.conv1", z, stride)
        if self.post_norm:
            z = self._convolved(leaves, f"{place}.conv2", torch.relu_(z))
            return self._normalised(leaves, f"{place}.norm", z + shortcut, train)
        z = torch.relu_(self._normalised(leaves, f"{place}.norm1", z, train))
        z = self._normalised(leaves, f"{place}.norm2", self._convolved(leaves, f"{place}.conv2", z), train)
        return torch.relu_(z + shortcut)

    def head(self, leaves: Leaves, z: Tensor, train: bool = False) -> Tensor:
        pooled = torch.unflatten(z.mean((2, 3)), 1, (len(leaves["head.weight"]), -1)).transpose(0, 1)
        return torch.baddbmm(leaves["head.bias"].unsqueeze(1), pooled, leaves["head.weight"].mT)

    def positions(self, z: Tensor, members: int) -> Tensor:
        return z.reshape(z.shape[0], members, -1, z.shape[2] * z.shape[3]).permute(1, 0, 3, 2)

    def from_positions(self, p: Tensor, z: Tensor) -> Tensor:
        return p.permute(1, 0, 3, 2).reshape(z.shape)

    def sites(self) -> tuple[Site, ...]:
        shifted = self.norm != "rms"
        return tuple(
            Site(index, self._channels(index), self._positions(index), shifted) for index in range(self.depth + 1)
        )

    def forward_flops(self) -> int:
        places = {"stem.weight": 0} | {
            f"blocks.{index}.{name}": index + 1 for index in range(self.depth) for name in ("conv1", "conv2")
        }
        shapes = self.parameter_shapes()
        convolutions = sum(self._positions(site) * math.prod(shapes[name]) for name, site in places.items())
        return 2 * (convolutions + math.prod(shapes["head.weight"]))


def groups(channels: int) -> int:
    """Groups of a GroupNorm: the largest divisor of the channels up to 8 that leaves at least 2 channels to a group."""
    return max(count for count in range(1, MOST_GROUPS + 1) if channels % count == 0 and channels >= 2 * count)


def subsampled(z: Tensor, members: int) -> Tensor:
    """The shortcut between stages: z [B, G C, H, W] at every second position, with C zero channels for each member."""
    z = torch.unflatten(z[:, :, ::2, ::2], 1, (members, -1))
    return functional.pad(z, (0, 0, 0, 0, 0, z.shape[2])).flatten(1, 2)


build = ResNet
