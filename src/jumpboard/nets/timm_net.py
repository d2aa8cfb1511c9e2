"""`timm`: a model of the package timm as a net of this project, randomly initialised or from a local file of weights.

    logits = head(block_L(... block_1(stem(x))))        site l lies after l blocks

Any model that `cutting` can take apart and prove to be such a chain of residual blocks: ResNets and their kin, RegNet,
ConvNeXt, ViT. Its blocks and the units of its stream are what they are: depth and width must be the model's own.
Classes, channels and picture size come from the data set. Leaves have timm's names. Positions are those of the map, or
the tokens, class token included. Of distilled ViTs the logits are the mean of both heads, as timm gives them.

In train mode a model that draws random numbers (dropout, stochastic depth) is refused. BatchNorm's count of batches is
no leaf: with a fixed momentum, as timm has it, it changes nothing.

There is no further switch: what else a timm model takes is part of its name, and two nets of one name stay comparable.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call

from jumpboard.errors import InputError
from jumpboard.nets.base import Leaves, Net, Site, check_leaves
from jumpboard.nets.cutting import Part, Parts, cut, named_tensors
from jumpboard.nets.timm_models import create
from jumpboard.nets.weights import check_numbers, read_weights

COUNT = "num_batches_tracked"
MULTIPLIERS = ("weight", "gamma")
"""Last names of leaves that multiply; any other leaf counts as a trained shift."""


@dataclass(frozen=True)
class Skeleton:
    """What is known of a model without weights. `ignored` are entries of its weights that are no leaves;
    `constants` belong to the model's definition and are in none."""

    parameters: Mapping[str, tuple[int, ...]]
    buffers: Mapping[str, tuple[int, ...]]
    ignored: frozenset[str]
    classifier: frozenset[str]
    constants: Mapping[str, Tensor]
    parts: Parts


@cache
def skeleton(model: str, input_shape: tuple[int, ...], classes: int, train: bool) -> Skeleton:
    """The skeleton of a timm model in one mode. Raises InputError for a model that cannot be used."""
    with torch.device("meta"):
        module: Any = create(model, input_shape, classes).train(train)
    trained = {name: tuple(one.shape) for name, one in module.named_parameters() if one.requires_grad}
    stored: dict[str, Tensor] = module.state_dict()
    buffers = {
        name: tuple(one.shape) for name, one in stored.items() if name not in trained and one.is_floating_point()
    }
    heads = module.get_classifier()
    last = {id(one) for head in (heads if isinstance(heads, tuple) else (heads,)) for one in head.parameters()}
    classifier = frozenset(name for name, one in module.named_parameters() if id(one) in last)
    parts = cut(module, model, input_shape, classes)
    leaves = {**trained, **buffers}
    read = {name for part in parts.parts for name in part.names.values()}
    fixed = {name for name in read if name not in leaves and not name.endswith(COUNT)}
    constants = {}
    if fixed:
        with torch.random.fork_rng(devices=[]):
            known = named_tensors(create(model, input_shape, classes))
        constants = {name: known[name].detach() for name in fixed}
    return Skeleton(trained, buffers, frozenset(stored) - frozenset(leaves), classifier, constants, parts)


@dataclass(frozen=True)
class TimmNet(Net):
    """Stream layout [G, B, C, H, W] for maps, [G, B, P, N] for tokens. Members run one after another."""

    model: str
    weights: str | None = None
    family: ClassVar[str] = "timm"

    def __post_init__(self) -> None:
        own = (len(self._skeleton(False).parts.streams) - 1, self.sites()[0].units)
        if (self.depth, self.width) != own:
            raise InputError(
                f"timm: depth {self.depth} and width {self.width} do not fit; depth {own[0]} and width {own[1]} are"
                f" {self.model}'s"
            )

    def _skeleton(self, train: bool) -> Skeleton:
        return skeleton(self.model, self.input_shape, self.classes, train)

    @property
    def batches_members(self) -> bool:
        return False

    @property
    def packages(self) -> tuple[str, ...]:
        return ("timm",)

    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        return dict(self._skeleton(False).parameters)

    def buffer_shapes(self) -> dict[str, tuple[int, ...]]:
        return dict(self._skeleton(False).buffers)

    def initial_leaves(self, generator: np.random.Generator) -> dict[str, np.ndarray]:
        """timm's own initial weights, from a torch seed drawn from `generator`; or those of the file, whatever the
        generator.

        Raises InputError where the file's tensors are not those of the model, or are no usable numbers.
        """
        tensors = self._drawn(generator) if self.weights is None else self._read(Path(self.weights))
        return {name: tensors[name].float().numpy() for name in {**self.parameter_shapes(), **self.buffer_shapes()}}

    def _drawn(self, generator: np.random.Generator) -> Mapping[str, Tensor]:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(int(generator.integers(2**63)))
            return create(self.model, self.input_shape, self.classes).state_dict()

    def _read(self, path: Path) -> Mapping[str, Tensor]:
        own = self._skeleton(False)
        tensors = {name: tensor for name, tensor in read_weights(path).items() if name not in own.ignored}
        for name in own.classifier & tensors.keys():
            found = tensors[name].shape[:1]
            if found != (self.classes,):
                raise InputError(
                    f"{path}: '{name}' is the head of {', '.join(map(str, found))} classes, but the data set has"
                    f" {self.classes}; accepted: weights for the data set's own classes"
                )
        check_leaves(self, tensors, str(path))
        check_numbers(path, tensors)
        return tensors

    def _run(self, place: int, leaves: Leaves, z: Tensor, train: bool) -> Tensor:
        known = self._skeleton(train)
        part = known.parts.parts[place]
        outputs = [_run_member(known, part, leaves, member, z[member], train) for member in range(len(z))]
        return outputs[0].unsqueeze(0) if len(outputs) == 1 else torch.stack(outputs)

    def stem(self, leaves: Leaves, x: Tensor, train: bool) -> Tensor:
        return self._run(0, leaves, x, train)

    def block(self, leaves: Leaves, index: int, z: Tensor, train: bool) -> Tensor:
        return self._run(index + 1, leaves, z, train)

    def head(self, leaves: Leaves, z: Tensor, train: bool = False) -> Tensor:
        return self._run(self.depth + 1, leaves, z, train)

    def positions(self, z: Tensor, members: int) -> Tensor:
        return z if z.dim() == 4 else z.flatten(3).mT

    def from_positions(self, p: Tensor, z: Tensor) -> Tensor:
        return p if z.dim() == 4 else p.mT.reshape(z.shape)

    def sites(self) -> tuple[Site, ...]:
        known = self._skeleton(False)
        found, shifted = [], False
        for index, (shape, part) in enumerate(zip(known.parts.streams, known.parts.parts, strict=False)):
            trained = known.parameters.keys() & part.names.values()
            shifted = shifted or any(name.rsplit(".", 1)[-1] not in MULTIPLIERS for name in trained)
            units, positions = (shape[1], shape[0]) if len(shape) == 2 else (shape[0], shape[1] * shape[2])
            found.append(Site(index, units, positions, shifted))
        return tuple(found)

    def forward_flops(self) -> int:
        return self._skeleton(False).parts.flops


def _run_member(known: Skeleton, part: Part, leaves: Leaves, member: int, z: Tensor, train: bool) -> Tensor:
    """One member's pass through a part. In train mode running statistics are moved in a copy and then written back
    without autograd's notice, which may keep parameters that are views of the same vector."""
    moved = {inner: outer for inner, outer in part.names.items() if train and outer in known.buffers}
    tensors = {}
    for inner, outer in part.names.items():
        if inner in moved:
            tensors[inner] = leaves[outer].data[member].clone()
        elif outer in leaves:
            tensors[inner] = leaves[outer][member]
        elif outer in known.constants:
            constant = known.constants[outer]
            tensors[inner] = constant.to(z.device, z.dtype if constant.is_floating_point() else constant.dtype)
    out: Tensor = functional_call(part.module, tensors, (z,), tie_weights=False)
    for inner, outer in moved.items():
        leaves[outer].data[member].copy_(tensors[inner])
    return out


build = TimmNet
