"""Function-preserving insertion: one new residual block per member behind the stream of a site.

    z -> Norm(z + h(z))    h(z) = A phi(z)    phi(z) = [relu(W1 z), 1],  W1 [4N, N] ~ N(0, 2/N),  A [N, 4N + 1] = 0

at each position of the stream, where the net has a norm that leaves its stream as it is (`normed`); elsewhere the bare
z + h(z) (`bare`). Where the stream ends in a ReLU the block lies behind it. Only A is zero: the outputs do not change,
dA = E[zeta phi'] does not vanish, and W1 learns from the second step on. A zero W1 beside a zero A would never learn,
but for the constant.

Sites keep the numbers they have in the base net; the stream at a member's own site is then the one behind its block.
Paper `depth`, insertion of a zero-initialised block; the form of the block is derived.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
import torch
from torch import Tensor

from jumpboard.errors import InputError
from jumpboard.expansion.capped import held
from jumpboard.measure.features import EXPANSION, draw_features
from jumpboard.nets.base import Leaves, Net, Site
from jumpboard.streams import BLOCK, generator
from jumpboard.training.parameters import Layout
from jumpboard.training.recipe import Caps


@dataclass(frozen=True)
class Inserted(Net):
    """`base` with one block per member; itself a net, so that it trains, measures, saves and can be expanded again.

    The site of a member is its leaf `<name>.site`, a buffer of one number: members of one batch may differ in it as
    long as their sites have the units and positions of `place`, the first of them. Made by `insert` and `insert_at`.
    """

    base: Net
    place: Site

    @property
    def name(self) -> str:
        """`insert.<k>`, which the names of the new leaves begin with; k counts the blocks inserted before."""
        return f"insert.{insertions(self.base)}"

    @property
    def insert_form(self) -> str:
        """`normed` or `bare`."""
        return "bare" if self.stream_norm is None else "normed"

    @property
    def stream_norm(self) -> Callable[[Tensor], Tensor] | None:
        return self.base.stream_norm

    @property
    def batches_members(self) -> bool:
        return self.base.batches_members

    def block_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of one member's leaves of the new block."""
        n, hidden = self.place.units, EXPANSION * self.place.units
        return {f"{self.name}.w1": (hidden, n), f"{self.name}.a": (n, hidden + 1)}

    def layers(self) -> dict[str, tuple[str, ...]] | None:
        """The base's, and `insert_<k>` where it lies in the stream of members at `place`."""
        base = self.base.layers()
        if base is None:
            return None
        behind = f"block_{self.place.index}" if self.place.index < self.depth else "head"
        new = (f"insert_{insertions(self.base)}", tuple(self.block_shapes()))
        order = list(base.items())
        order.insert(list(base).index(behind), new)
        return dict(order)

    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        return self.base.parameter_shapes() | self.block_shapes()

    def buffer_shapes(self) -> dict[str, tuple[int, ...]]:
        return self.base.buffer_shapes() | {f"{self.name}.site": (1,)}

    def initial_leaves(self, generator: np.random.Generator) -> dict[str, np.ndarray]:
        """The base's, and a block behind `place`."""
        leaves = self.base.initial_leaves(generator)
        w1 = draw_features(self.place.units, generator).numpy()
        block = {name: np.zeros(shape, dtype=np.float32) for name, shape in self.block_shapes().items()}
        block |= {f"{self.name}.w1": w1, f"{self.name}.site": np.array([self.place.index], dtype=np.float32)}
        return {name: (leaves | block)[name] for name in [*self.parameter_shapes(), *self.buffer_shapes()]}

    def stem(self, leaves: Leaves, x: Tensor, train: bool) -> Tensor:
        return self._behind(leaves, 0, self.base.stem(leaves, x, train))

    def block(self, leaves: Leaves, index: int, z: Tensor, train: bool) -> Tensor:
        return self._behind(leaves, index + 1, self.base.block(leaves, index, z, train))

    def head(self, leaves: Leaves, z: Tensor, train: bool = False) -> Tensor:
        return self.base.head(leaves, z, train)

    @property
    def packages(self) -> tuple[str, ...]:
        return self.base.packages

    def _behind(self, leaves: Leaves, site: int, z: Tensor) -> Tensor:
        """The stream behind the blocks of those members whose site this is; the others pay nothing."""
        members = leaves[f"{self.name}.site"].flatten()
        own = (members == site).nonzero().flatten()
        if len(own) == 0:
            return z
        p = self.positions(z, len(members))
        w1, a = (leaves[name].index_select(0, own) for name in self.block_shapes())
        before = p.index_select(0, own)
        return self.from_positions(p.index_copy(0, own, self.joined(before + branch(before, w1, a))), z)

    def joined(self, moved: Tensor) -> Tensor:
        """The stream behind a block, from z + h(z)."""
        return moved if self.stream_norm is None else self.stream_norm(moved)

    def positions(self, z: Tensor, members: int) -> Tensor:
        return self.base.positions(z, members)

    def from_positions(self, p: Tensor, z: Tensor) -> Tensor:
        return self.base.from_positions(p, z)

    def sites(self) -> tuple[Site, ...]:
        """The base's; the block's constant is a trained shift, which feeds its own site and all behind it."""
        return tuple(replace(one, shifted=one.shifted or one.index >= self.place.index) for one in self.base.sites())

    def forward_flops(self) -> int:
        return self.base.forward_flops() + 4 * EXPANSION * self.place.units**2 * self.place.positions


def branch(p: Tensor, w1: Tensor, a: Tensor) -> Tensor:
    """h(z) = A phi(z) of the stream p [G, B, P, N], with W1 [G, 4N, N] and A [G, N, 4N + 1]."""
    weight, constant = torch.split(a, [w1.shape[1], 1], dim=2)
    hidden = torch.bmm(p.flatten(1, 2), w1.mT).relu_()
    return torch.baddbmm(constant.mT, hidden, weight.mT).view(p.shape)


def insertions(net: Net) -> int:
    """Blocks that have been inserted into each member of a net."""
    return 1 + insertions(net.base) if isinstance(net, Inserted) else 0


def site_groups(net: Net) -> list[list[int]]:
    """All sites of a net, in groups of equal units and positions: members at sites of one group can be stacked."""
    groups = groupby(net.sites(), key=lambda site: (site.units, site.positions))
    return [[site.index for site in group] for _, group in groups]


def insert(
    net: Net, leaves: Leaves, sites: Sequence[int], seeds: Sequence[int], caps: Caps | None = None
) -> tuple[Inserted, dict[str, Tensor]]:
    """Every member of a net with a new block behind every one of `sites`: a net of len(sites) x G members.

    leaves [G, ...], one seed per member. Member s G + g of the result is member g with its block behind sites[s].
    Raises InputError as `insert_at` does.
    """
    repeated = {name: leaf.repeat(len(sites), *[1] * (leaf.dim() - 1)) for name, leaf in leaves.items()}
    return insert_at(net, repeated, [site for site in sites for _ in seeds], [*seeds] * len(sites), caps)


def insert_at(
    net: Net, leaves: Leaves, sites: Sequence[int], seeds: Sequence[int], caps: Caps | None = None
) -> tuple[Inserted, dict[str, Tensor]]:
    """Each member of a net with a new block behind its own site: one site and one seed per member, leaves [G, ...].

    W1 is drawn from the seed's stream of inserted blocks, keyed by the site and the blocks inserted before, and brought
    within the caps of the training that follows. Raises InputError for a site that the net does not have, and for sites
    of different shapes.
    """
    known, count = net.sites(), insertions(net)
    for site in sites:
        if not 0 <= site < len(known):
            raise InputError(f"insertion site {site} does not exist; accepted: 0 to {net.depth}")
    chosen = sorted({known[site] for site in sites}, key=lambda one: one.index)
    for one in chosen:
        if (one.units, one.positions) != (chosen[0].units, chosen[0].positions):
            raise InputError(
                f"insertion sites {chosen[0].index} and {one.index} differ in shape ({chosen[0].units} x"
                f" {chosen[0].positions} and {one.units} x {one.positions}) and cannot share a batch;"
                f" accepted: sites of one of {site_groups(net)}"
            )
    expanded = Inserted(net.depth, net.width, net.input_shape, net.classes, net, chosen[0])
    like = next(iter(leaves.values()))
    draws = [
        draw_features(expanded.place.units, generator(seed, BLOCK, site, count))
        for site, seed in zip(sites, seeds, strict=True)
    ]
    block = {
        name: torch.zeros(len(sites), *shape, dtype=like.dtype, device=like.device)
        for name, shape in expanded.block_shapes().items()
    }
    block |= {
        f"{expanded.name}.w1": held(torch.stack(draws), caps).to(like),
        f"{expanded.name}.site": like.new_tensor([*sites]).view(-1, 1),
    }
    together = {**leaves, **block}
    return expanded, {name: together[name] for name in Layout.of(expanded).shapes}


def block_entries(net: Inserted) -> Tensor:
    """1 for each trained entry of the newest block, else 0, as [parameters] of the flat vector: what `block only`
    trains."""
    new = net.block_shapes()
    shapes = net.parameter_shapes()
    return torch.cat([torch.full((int(np.prod(shape)),), float(name in new)) for name, shape in shapes.items()])


def with_step(net: Inserted, leaves: Leaves, direction: Tensor, eta: Tensor) -> dict[str, Tensor]:
    """The leaves with A = -eta direction in the newest block; direction [G, N, 4N + 1] of Frobenius norm 1, eta [G] or
    one number for all. -direction = -E[zeta_+ phi']/|.| is the way of steepest descent."""
    place = f"{net.name}.a"
    return {**leaves, place: (-eta.view(-1, 1, 1) * direction).to(leaves[place])}
