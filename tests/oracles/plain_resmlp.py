"""The reference MLP of one member, layer after layer with torch's own operations, with its inserted blocks."""

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional

from jumpboard.expansion.insertion import Inserted
from jumpboard.nets.base import Net
from jumpboard.nets.resmlp import ResMLP


def plain_logits(net: Net, leaves: Mapping[str, Tensor], x: Tensor) -> Tensor:
    """Logits [B, classes] of one member: leaves without member dimension, x [B, *input_shape]."""
    inserted: list[str] = []
    while isinstance(net, Inserted):
        inserted.insert(0, net.name)
        net = net.base
    assert isinstance(net, ResMLP)
    norm = {"rms": functional.rms_norm, "layer": functional.layer_norm}[net.norm]

    def normalised(z: Tensor, place: str) -> Tensor:
        return norm(z, (net.width,), weight=leaves.get(f"{place}.gain"), eps=net.eps)

    def behind(z: Tensor, site: int) -> Tensor:
        for block in inserted:
            if leaves[f"{block}.site"].item() == site:
                phi = torch.cat([functional.relu(z @ leaves[f"{block}.w1"].T), torch.ones_like(z[:, :1])], dim=1)
                z = z + phi @ leaves[f"{block}.a"].T
                z = z if net.gain or net.eps > 1e-6 else norm(z, (net.width,), eps=net.eps)
        return z

    z = normalised(functional.linear(x.flatten(1), leaves["stem.weight"], leaves.get("stem.bias")), "stem")
    z = behind(z, 0)
    for index in range(net.depth):
        place = f"blocks.{index}"
        hidden = functional.relu(functional.linear(z, leaves[f"{place}.w1"], leaves.get(f"{place}.b1")))
        z = normalised(z + functional.linear(hidden, leaves[f"{place}.w2"], leaves.get(f"{place}.b2")), place)
        z = behind(z, index + 1)
    return functional.linear(z, leaves["head.weight"], leaves.get("head.bias"))
