"""A timm model cut into stem, residual blocks and head, each a function of the stream and of the model's own tensors.

    model(x) = head(block_L(... block_1(stem(x))))

Where the blocks are is read off the model's attributes (`LAYOUTS`): in `layer1` to `layer4` or `s1` to `s4`, in each of
`stages`, or in `blocks`. What a stage does ahead of its first block (downsampling) belongs to that block. With the
blocks taken out, the model's own `forward_features` is the stem, and its `forward_head` the head. That this is the
whole model is not taken on trust: both are traced on the meta device, in the mode they will run in, and must be the
same list of operations on the same tensors. Each block must add a nonlinear branch to its input
(`tracing.Shortcut`). All else is refused.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from jumpboard.errors import InputError
from jumpboard.nets.tracing import Shortcut, Trace

BATCH = 2
LARGER = 64  # times the picture's sides, so that every map grows, also one of a single position
LAYOUTS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("layer1", "layer2", "layer3", "layer4"), ()),
    (("s1", "s2", "s3", "s4"), ("final_conv",)),
    (("stages",), ("norm_pre", "norm", "final_conv", "final_act")),
    (("blocks",), ("norm",)),
)
"""Attributes that hold the blocks, and those that `forward_features` applies after the blocks, in order."""
SUPPORTED = (
    "supported are models that are a stem, residual blocks in layer1 to layer4, s1 to s4, stages or blocks, and a head:"
    " ResNet, ResNetV2, RegNet, ConvNeXt, ViT, DeiT and the like"
)
NO_CHAIN = "its forward pass is not stem, blocks and head one after the other"


@dataclass(frozen=True)
class Part:
    """A module and the tensors that it reads: their names in it -> their names in the model."""

    module: nn.Module
    names: Mapping[str, str]


@dataclass(frozen=True)
class Parts:
    """`parts` are stem, blocks 1..L and head; `streams` the shape of one sample's stream at sites 0..L, positions
    first or channels first; `flops` those of one sample's forward pass."""

    parts: tuple[Part, ...]
    streams: tuple[tuple[int, ...], ...]
    flops: int


class _Stem(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model: Any = model

    def forward(self, x: Tensor) -> Any:
        return self.model.forward_features(x)


class _Head(nn.Module):
    def __init__(self, model: nn.Module, tail: list[nn.Module]) -> None:
        super().__init__()
        self.model: Any = model
        self.tail = nn.Sequential(*tail)

    def forward(self, z: Tensor) -> Any:
        return self.model.forward_head(self.tail(z))


def named_tensors(module: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name, tied ones under each of their names."""
    parameters = dict(module.named_parameters(remove_duplicate=False))
    return {**parameters, **dict(module.named_buffers(remove_duplicate=False))}


def cut(model: nn.Module, name: str, input_shape: tuple[int, ...], classes: int) -> Parts:
    """The parts of a model on the meta device, which is taken apart.

    Raises InputError, with the reason and what is supported, for a model that is not such a chain, whose stream is not
    positions x units or units x map, that changes a stream in place, that draws random numbers, or with a block that
    adds no nonlinear branch to its input.
    """
    try:
        return _cut(model, input_shape, classes)
    except _NotAChainError as error:
        reason = str(error)
    except Exception as error:  # models written by others raise whatever they like
        reason = str(error).partition("\n")[0] or type(error).__name__
    raise InputError(f"timm: {name} on inputs of shape {input_shape} cannot be used: {reason}; {SUPPORTED}") from None


class _NotAChainError(Exception):
    pass


def _cut(model: nn.Module, input_shape: tuple[int, ...], classes: int) -> Parts:
    model.requires_grad_(False)
    x = torch.empty(BATCH, *input_shape, device="meta")
    tensors = named_tensors(model)
    names = {id(tensor): name for name, tensor in tensors.items()} | {id(x): "input"}
    whole, pieces, counter = Trace(names), Trace(names), FlopCounterMode(display=False)
    with torch.no_grad(), counter, whole:
        logits = model(x)
    if not isinstance(logits, Tensor) or logits.shape != (BATCH, classes):
        raise _NotAChainError(f"its output is not one row of {classes} logits for each sample")
    if whole.random is not None:
        raise _NotAChainError(f"it draws random numbers ({whole.random}: dropout or stochastic depth)")
    modules = _taken_apart(model)
    streams, ends, plain = [x], [0], []
    with torch.no_grad(), pieces:
        for index, module in enumerate(modules):
            z = streams[-1]
            version = z._version
            with Shortcut(z) as shortcut:
                streams.append(_run(module, z))
            ends.append(len(pieces.entries))
            if z._version != version:
                raise _NotAChainError("it changes its stream in place")
            if 0 < index < len(modules) - 1 and not shortcut.adds(streams[-1]):
                plain.append(index)
    if pieces.entries != whole.entries:
        raise _NotAChainError(NO_CHAIN)
    _check_streams(model, modules, streams[1:-1], input_shape)
    if plain:
        raise _NotAChainError(f"its block {plain[0]} adds no nonlinear branch to its input")
    parts = []
    for module, start, stop in zip(modules, ends, ends[1:], strict=False):
        read = {label for _, labels in pieces.entries[start:stop] for label in labels}
        own = {inner: names[id(tensor)] for inner, tensor in named_tensors(module).items()}
        parts.append(Part(module, {inner: outer for inner, outer in own.items() if outer in read}))
    shapes = tuple(tuple(stream.shape[1:]) for stream in streams[1:-1])
    return Parts(tuple(parts), shapes, counter.get_total_flops() // BATCH)


def _run(module: nn.Module, z: Tensor) -> Tensor:
    """A part alone. The whole has run, so that a part that fails is fed what the model does not feed it."""
    try:
        out: Tensor = module(z)
    except Exception as error:  # models written by others raise whatever they like
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise _NotAChainError(f"{NO_CHAIN} (a part alone fails: {reason})") from None
    return out


def _taken_apart(model: Any) -> list[nn.Module]:
    """Stem, blocks and head; of the model, only what is neither block nor tail is left in place."""
    fitting = [one for one in LAYOUTS if all(isinstance(getattr(model, name, None), nn.Module) for name in one[0])]
    if not fitting:
        raise _NotAChainError("it has no residual blocks where they are looked for")
    attributes, after = fitting[0]
    holders = [getattr(model, attribute) for attribute in attributes]
    stages = list(holders[0].children()) if attributes == ("stages",) else holders
    blocks = [block for stage in stages for block in _blocks_of(stage)]
    tail = [getattr(model, attribute) for attribute in after if hasattr(model, attribute)]
    for attribute in (*attributes, *(one for one in after if hasattr(model, one))):
        setattr(model, attribute, nn.Sequential())
    return [_Stem(model), *blocks, _Head(model, tail)]


def _blocks_of(stage: Any) -> Iterator[nn.Module]:
    """The blocks of a stage; the first with what the stage does ahead of it."""
    if not hasattr(stage, "blocks"):
        yield from stage.children()
        return
    first, *others = stage.blocks.children()
    stage.blocks = nn.Sequential()
    yield nn.Sequential(stage, first)
    yield from others


def _check_streams(model: Any, modules: list[nn.Module], streams: list[Tensor], input_shape: tuple[int, ...]) -> None:
    """Tokens must be positions x units; maps must have their channels in front: the side that does not grow with the
    picture."""
    if {stream.dim() for stream in streams} == {3}:
        if {stream.shape[-1] for stream in streams} != {model.num_features}:
            raise _NotAChainError("its stream is no sequence of tokens")
        return
    channels, height, width = input_shape
    z = torch.empty(BATCH, channels, LARGER * height, LARGER * width, device="meta")
    for module, stream in zip(modules, streams, strict=False):
        with torch.no_grad():
            z = module(z)
        if z.dim() != 4 or z.shape[1] != stream.shape[1] or z.shape[2] == stream.shape[2]:
            raise _NotAChainError("its stream is no map with the channels in front")
