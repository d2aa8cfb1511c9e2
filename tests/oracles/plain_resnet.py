"""The CIFAR-style ResNet of one member as an ordinary torch module, after He et al. (2015), option A."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from jumpboard.nets.resnet import ResNet

GROUPS = {2: 1, 3: 1, 4: 2, 6: 3, 8: 4, 12: 6, 16: 8}
"""Groups of a GroupNorm by channels, written out by hand."""


class ChannelRMS(nn.Module):
    """RMSNorm over the channels of each position."""

    def forward(self, z: Tensor) -> Tensor:
        return functional.rms_norm(z.movedim(1, -1), (z.shape[1],), eps=1e-6).movedim(-1, 1)


def norm_of(kind: str, channels: int) -> nn.Module:
    if kind == "batch":
        return nn.BatchNorm2d(channels)
    return nn.GroupNorm(GROUPS[channels], channels) if kind == "group" else ChannelRMS()


class Block(nn.Module):
    def __init__(self, kind: str, post_norm: bool, before: int, after: int) -> None:
        super().__init__()
        self.post_norm, self.new = post_norm, after - before
        self.conv1 = nn.Conv2d(before, after, 3, 2 if self.new else 1, 1, bias=False)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        for name in ("norm",) if post_norm else ("norm1", "norm2"):
            self.add_module(name, norm_of(kind, after))

    def forward(self, z: Tensor) -> Tensor:
        shortcut = z
        if self.new:
            shortcut = functional.pad(functional.max_pool2d(z, 1, 2), (0, 0, 0, 0, 0, self.new))
        if self.post_norm:
            return self.norm(shortcut + self.conv2(functional.relu(self.conv1(z))))
        return functional.relu(shortcut + self.norm2(self.conv2(functional.relu(self.norm1(self.conv1(z))))))


class PlainResNet(nn.Module):
    """The same net as `net`, with torch's own initial values."""

    def __init__(self, net: ResNet) -> None:
        super().__init__()
        self.post_norm = net.post_norm
        self.conv = nn.Conv2d(net.input_shape[0], net.width, 3, net.stem_stride, 1, bias=False)
        self.norm = norm_of(net.norm, net.width)
        stages = (
            [net.width] * (net.depth // 3) + [2 * net.width] * (net.depth // 3) + [4 * net.width] * (net.depth // 3)
        )
        widths = zip([net.width, *stages], stages, strict=False)
        self.blocks = nn.Sequential(*(Block(net.norm, net.post_norm, *pair) for pair in widths))
        self.head = nn.Linear(4 * net.width, net.classes)

    def forward(self, x: Tensor) -> Tensor:
        z = self.norm(self.conv(x))
        z = self.blocks(z if self.post_norm else functional.relu(z))
        return self.head(nn.AdaptiveAvgPool2d(1)(z).flatten(1))


NAMES = {"gain": "weight", "shift": "bias", "mean": "running_mean", "variance": "running_var"}


def own_name(name: str) -> str:
    """The module's name of a leaf."""
    place, _, last = name.rpartition(".")
    if place.startswith("stem"):
        return f"conv.{last}" if place == "stem" else f"norm.{NAMES[last]}"
    return f"{place}.{last}.weight" if last.startswith("conv") else f"{place}.{NAMES.get(last, last)}"


def plain_resnet(net: ResNet, leaves: Mapping[str, Tensor]) -> PlainResNet:
    """The module with the weights of one member: leaves without member dimension."""
    module = PlainResNet(net).to(next(iter(leaves.values())).dtype)
    state = {own_name(name): leaf for name, leaf in leaves.items()}
    counters = {name: torch.tensor(0) for name in module.state_dict() if name.endswith("num_batches_tracked")}
    module.load_state_dict(state | counters)
    return module
