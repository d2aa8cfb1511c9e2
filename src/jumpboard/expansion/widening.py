"""Function-preserving widening of nets whose blocks are homogeneous behind an RMSNorm without gain: N -> N' = s^2 N.

    new coordinates of the stream      zero weights into them, drawn weights out of them
    new hidden units                   drawn weights into them, zero weights out of them
    head                               old columns divided by s
    stem of `resnet`                   old rows times s

RMSNorm averages over N' coordinates of which N' - N are 0, so the old ones come out s times as large. Blocks are
homogeneous and the next norm takes s^2 out and puts it in again, so the whole stream is (s z, 0), and the head divides
by s. eps weighs s^2 times as much in the stem's norm only. In `resmlp` the next norm takes a sample's scale out; in
`resnet` positions of different scale meet in the next convolution, hence the stem's factor, with which eps is right
everywhere. Zero channels of the shortcut between stages stay behind the old ones of their own stage.
New weights are drawn from the wider net's initial law. Zero weights sit next to drawn ones only: they learn at once,
and the drawn ones from the second step on.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from jumpboard.errors import InputError
from jumpboard.expansion.widenable import ACCEPTED, refusal
from jumpboard.measure.moments import FloatArray
from jumpboard.measure.sites import batch_size
from jumpboard.nets.base import Leaves, Net, forward
from jumpboard.training.parameters import Layout

Axis = Tensor | None


@dataclass(frozen=True)
class Leaf:
    """Where an old leaf lies in the new one: `rows` and `columns` of its first two axes (None: all), its factor, and
    whether the new entries are drawn or zero."""

    rows: Axis
    columns: Axis
    factor: float = 1.0
    drawn: bool = False


@dataclass(frozen=True)
class Widening:
    """The map of flat parameter vectors [.., P] -> [.., P']: new[index] = factor old. `drawn` [P'] marks the new
    entries that are drawn."""

    net: Net
    index: Tensor
    factor: Tensor
    drawn: Tensor

    def parameters(self, flat: Tensor, drawn: Tensor) -> Tensor:
        """The wider members [G, P'] of members [G, P], their new entries from `drawn` [G, P']."""
        wide = drawn * self.drawn.to(drawn)
        wide[:, self.index] = flat * self.factor.to(flat)
        return wide


def widening(net: Net, width: int) -> Widening:
    """The map from a net to the same net of a larger width.

    Raises InputError, with the reason, for nets that cannot be widened without a change of their function.
    """
    reason = refusal(net.family or type(net).__name__, vars(net))
    if reason is not None:
        raise InputError(f"widening keeps no function of this net: {reason}; accepted: {ACCEPTED}")
    if width <= net.width:
        raise InputError(f"width {width} does not widen a net of width {net.width}; accepted: more than {net.width}")
    wider = replace(net, width=width)
    new = Layout.of(wider)
    entries = new.leaves(torch.arange(new.size)[None])
    drawn = torch.zeros(1, new.size, dtype=torch.bool)
    index, factor = [], []
    for name, leaf in _leaves(net, width).items():
        new.leaves(drawn)[name].fill_(leaf.drawn)
        place = entries[name][0]
        place = place if leaf.rows is None else place.index_select(0, leaf.rows)
        place = place if leaf.columns is None else place.index_select(1, leaf.columns)
        index.append(place.flatten())
        factor.append(torch.full((place.numel(),), leaf.factor, dtype=torch.float64))
    return Widening(wider, torch.cat(index), torch.cat(factor), drawn[0])


def widen(
    net: Net, leaves: Leaves, width: int, generators: Sequence[np.random.Generator]
) -> tuple[Net, dict[str, Tensor]]:
    """The net and its members [G, ...] at a larger width, with the same outputs; one generator per member draws the
    new weights. Raises InputError as `widening` does."""
    wide = widening(net, width)
    new = Layout.of(wide.net)
    fresh = [wide.net.initial_leaves(generator) for generator in generators]
    drawn = torch.stack([torch.cat([torch.from_numpy(one[name]).flatten() for name in new.shapes]) for one in fresh])
    flat = torch.cat([leaves[name].flatten(1) for name in net.parameter_shapes()], dim=1)
    return wide.net, new.leaves(wide.parameters(flat, drawn.to(flat)))


@torch.no_grad()
def largest_change(net: Net, leaves: Leaves, wider: Net, more: Leaves, x: Tensor) -> FloatArray:
    """The largest change of a logit between members of two nets, relative to the member's largest logit, [G], over
    x [n, *input_shape], n >= 1."""
    members = next(iter(leaves.values())).shape[0]
    step = max(1, batch_size(wider) // members)
    most = torch.zeros(2, members, dtype=torch.float64)
    for start in range(0, len(x), step):
        inputs = x[start : start + step].expand(members, *[-1] * x.dim())
        old, new = forward(net, leaves, inputs).double(), forward(wider, more, inputs).double()
        found = torch.stack([values.abs().flatten(1).amax(1) for values in (new - old, old)]).cpu()
        most = torch.maximum(most, found)
    change: FloatArray = (most[0] / most[1]).numpy()
    return change


def _leaves(net: Net, width: int) -> dict[str, Leaf]:
    """Every leaf of a net that can be widened, in the order of the flat vector."""
    s = math.sqrt(width / net.width)
    if net.family == "resnet":
        first, last, stem = _channels(net, width, 0), _channels(net, width, net.depth), s
    else:
        first, last, stem = torch.arange(net.width), torch.arange(net.width), 1.0
    places = {}
    for name in net.parameter_shapes():
        if name == "stem.weight":
            places[name] = Leaf(first, None, stem)
        elif name == "head.weight":
            places[name] = Leaf(None, last, 1 / s, drawn=True)
        elif name == "head.bias":
            places[name] = Leaf(None, None)
        elif net.family == "resnet":
            site, into = int(name.split(".")[1]), name.endswith("conv1")
            after = _channels(net, width, site + 1)
            places[name] = Leaf(after, _channels(net, width, site) if into else after, drawn=into)
        else:
            places[name] = Leaf(first, first, drawn=name.endswith("w1"))
    return places


def _channels(net: Net, width: int, site: int) -> Tensor:
    """Where the old channels of a site lie among the new ones: each stage puts its new channels behind the last's."""
    places, most = torch.arange(net.width), width
    while len(places) < net.sites()[site].units:
        places, most = torch.cat([places, most + places]), 2 * most
    return places
