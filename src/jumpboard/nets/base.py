"""What every net is here: a pure function of its parameters, for G members at once, cut at its insertion sites.

A net is an immutable description (depth, width, input, classes, switches). Its parameters are leaves: a mapping from
name to tensor with a leading member dimension G. `f = head . block_L ... block_1 . stem`; site l lies after l blocks,
so there are sites 0..L. Because the forward pass is a walk over blocks, a net can be run up to a site and on from one.

Shapes: x is [G, B, *input_shape], the stream's layout is the net's own, logits are [G, B, classes].
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from torch import Tensor

from jumpboard.errors import InputError

Leaves = Mapping[str, Tensor]
Shaped = Tensor | np.ndarray
Tap = Callable[[int, Tensor], Tensor]


@dataclass(frozen=True)
class Site:
    """An insertion site: its index 0..L, the dimension N of the stream there, the number of positions (1 unless the
    stream is a map or a sequence), and whether a trained additive shift feeds it."""

    index: int
    units: int
    positions: int
    shifted: bool


@dataclass(frozen=True)
class Net(ABC):
    """A residual net of `depth` blocks. Sub-classes add their switches as fields with defaults.

    Raises InputError on construction where depth, width or a switch is not one the net can have.
    """

    depth: int
    width: int
    input_shape: tuple[int, ...]
    classes: int
    family: ClassVar[str] = ""
    """Its name in the config; empty for nets that are made of others."""

    @abstractmethod
    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of one member's trained leaves, in the order of the flat parameter vector."""

    def buffer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of one member's untrained state (running statistics)."""
        return {}

    @abstractmethod
    def initial_leaves(self, generator: np.random.Generator) -> dict[str, np.ndarray]:
        """One member's parameters and buffers at step 0, float32."""

    @abstractmethod
    def stem(self, leaves: Leaves, x: Tensor, train: bool) -> Tensor:
        """x [G, B, *input_shape] -> the stream at site 0."""

    @abstractmethod
    def block(self, leaves: Leaves, index: int, z: Tensor, train: bool) -> Tensor:
        """The stream at site `index` -> the stream at site `index + 1`, 0 <= index < depth."""

    @abstractmethod
    def head(self, leaves: Leaves, z: Tensor, train: bool = False) -> Tensor:
        """The stream at site L -> logits [G, B, classes]."""

    @abstractmethod
    def positions(self, z: Tensor, members: int) -> Tensor:
        """A stream tensor in the net's own layout -> [G, B, P, N]: per sample, P positions of N units."""

    @abstractmethod
    def from_positions(self, p: Tensor, z: Tensor) -> Tensor:
        """The inverse of `positions`: p [G, B, P, N] in the layout of the stream tensor z."""

    @property
    def stream_norm(self) -> Callable[[Tensor], Tensor] | None:
        """The norm over the last dimension of [..., N] that leaves the stream at every site as it is, to 1e-6 of it, or
        None: after a gain there is none, nor where a position's mean square may come near eps, as on a flat part of a
        picture (changes of 1e-5 seen)."""
        return None

    @abstractmethod
    def sites(self) -> tuple[Site, ...]:
        """All insertion sites in order."""

    @abstractmethod
    def forward_flops(self) -> int:
        """FLOPs of one sample's forward pass: 2 per multiply-add of matrix products and convolutions, nothing else."""

    def layers(self) -> dict[str, tuple[str, ...]] | None:
        """Layers in the order of the stream, each with the names of its weight matrices: `input`, `block_0`, ...,
        `head`. None where bounds from norms of layers do not cover the net: other trained leaves, or no norm."""
        return None

    @property
    def batches_members(self) -> bool:
        """Whether a CPU is faster with members side by side in each operation than with one after the other."""
        return True

    @property
    def packages(self) -> tuple[str, ...]:
        """Packages beside torch that define the net: their versions belong to where a result comes from."""
        return ()

    def parameter_count(self) -> int:
        """Number of trained parameters of one member."""
        return sum(int(np.prod(shape)) for shape in self.parameter_shapes().values())


def check_leaves(net: Net, leaves: Mapping[str, Shaped], source: str) -> None:
    """Raise InputError, naming `source` and the leaf, unless `leaves` are those of one member of the net."""
    expected = {**net.parameter_shapes(), **net.buffer_shapes()}
    for name, shape in expected.items():
        if name not in leaves:
            raise InputError(f"{source}: lacks the leaf '{name}' of the net, of shape {list(shape)}")
        if tuple(leaves[name].shape) != shape:
            raise InputError(f"{source}: leaf '{name}' has shape {list(leaves[name].shape)}, in the net {list(shape)}")
    unknown = [name for name in leaves if name not in expected]
    if unknown:
        raise InputError(f"{source}: holds the leaf '{unknown[0]}', which the net does not have")


def run_to(net: Net, leaves: Leaves, x: Tensor, site: int, train: bool = False) -> Tensor:
    """The stream at `site`, from the input."""
    z = net.stem(leaves, x, train)
    for index in range(site):
        z = net.block(leaves, index, z, train)
    return z


def run_from(net: Net, leaves: Leaves, z: Tensor, site: int, train: bool = False, tap: Tap | None = None) -> Tensor:
    """Logits [G, B, classes] from the stream at `site` on. `tap(site, z) -> z` is called at each site passed."""
    for index in range(site, net.depth + 1):
        if tap is not None:
            z = tap(index, z)
        if index < net.depth:
            z = net.block(leaves, index, z, train)
    return net.head(leaves, z, train)


def forward(net: Net, leaves: Leaves, x: Tensor, train: bool = False, tap: Tap | None = None) -> Tensor:
    """Logits [G, B, classes] from the input x [G, B, *input_shape]."""
    return run_from(net, leaves, run_to(net, leaves, x, 0, train), 0, train, tap)
