"""The reference MLP of one member, layer after layer with torch's own operations."""

from collections.abc import Mapping

from torch import Tensor
from torch.nn import functional

from jumpboard.nets.norms import EPS
from jumpboard.nets.resmlp import ResMLP


def plain_logits(net: ResMLP, leaves: Mapping[str, Tensor], x: Tensor) -> Tensor:
    """Logits [B, classes] of one member: leaves without member dimension, x [B, *input_shape]."""

    def normalised(z: Tensor, place: str) -> Tensor:
        norm = {"rms": functional.rms_norm, "layer": functional.layer_norm}[net.norm]
        return norm(z, (net.width,), weight=leaves.get(f"{place}.gain"), eps=EPS)

    z = normalised(functional.linear(x.flatten(1), leaves["stem.weight"], leaves.get("stem.bias")), "stem")
    for index in range(net.depth):
        place = f"blocks.{index}"
        hidden = functional.relu(functional.linear(z, leaves[f"{place}.w1"], leaves.get(f"{place}.b1")))
        z = normalised(z + functional.linear(hidden, leaves[f"{place}.w2"], leaves.get(f"{place}.b2")), place)
    return functional.linear(z, leaves["head.weight"], leaves.get("head.bias"))
