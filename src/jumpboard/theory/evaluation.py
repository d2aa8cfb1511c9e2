"""What kept nets lose by bounded losses on all samples of each split, and what they gain over the old net.

Samples pass once through all nets. Only sums are kept, in float64: of the losses, and where gains are measured of the
paired differences d = loss(old) - loss(net) and of d^2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from jumpboard.data.samples import Tensors
from jumpboard.expansion.gains import Gain, parts
from jumpboard.measure.moments import FloatArray
from jumpboard.nets.base import Leaves, Net, forward
from jumpboard.theory.expansions import Group
from jumpboard.theory.losses import loss_values


@dataclass(frozen=True)
class Lost:
    """Of one name and loss: by split the mean losses [G], and the gains over the old nets [G]."""

    mean: Mapping[str, FloatArray]
    gain: Mapping[str, Gain]


OLD = "old"
PAIRED = ("test", "fresh")


def evaluate(
    group: Group, net: Net, leaves: Leaves, data: Mapping[str, Tensors], losses: Sequence[str]
) -> dict[str, dict[str, Lost]]:
    """loss -> name -> what all members of a group lose, those of its kept nets and, as `OLD`, the old ones beside each
    site. `leaves` [seeds, ...] are of the old `net`."""
    names = list(group.kept)
    together = {leaf: torch.cat([group.kept[name].leaves[leaf] for name in names]) for leaf in group.leaf_names}
    sums = {split: _sums(group, net, leaves, together, part, losses, split in PAIRED) for split, part in data.items()}
    found: dict[str, dict[str, Lost]] = {loss: {} for loss in losses}
    for loss in losses:
        for place, name in enumerate([OLD, *names]):
            mean, gain = {}, {}
            for split, by_loss in sums.items():
                n, (total, d, square) = len(data[split][1]), by_loss[loss][:, place]
                mean[split] = (total / n).numpy()
                if split in PAIRED:
                    gain[split] = Gain(n, (d / n).numpy(), ((square - d * d / n) / (n - 1)).clamp(min=0).numpy())
            found[loss][name] = Lost(mean, gain)
    return found


@torch.no_grad()
def _sums(
    group: Group, net: Net, leaves: Leaves, together: Leaves, samples: Tensors, losses: Sequence[str], paired: bool
) -> dict[str, Tensor]:
    """By loss, sums [3, names, G] of loss, d and d^2 over the samples x [n, *input_shape], y [n], `OLD` first; the last
    two are 0 where they are not `paired`."""
    x, y = samples
    members, count = len(next(iter(together.values()))), len(group.kept)
    sums = {loss: torch.zeros(3, 1 + count, members // count, dtype=torch.float64) for loss in losses}
    for part in parts(group.net, members, len(x)):
        olds = loss_values(forward(net, leaves, _to_all(leaves, x[part])), y[part], losses)
        news = loss_values(forward(group.net, together, _to_all(together, x[part])), y[part], losses)
        for loss in losses:
            old = olds[loss].repeat(len(group.sites), 1)
            values = news[loss].view(count, *old.shape)
            sums[loss][0] += torch.cat([old.sum(-1)[None], values.sum(-1)]).cpu()
            if paired:
                d = old - values
                sums[loss][1:, 1:] += torch.stack([d.sum(-1), d.square_().sum(-1)]).cpu()
    return sums


def _to_all(leaves: Leaves, x: Tensor) -> Tensor:
    return x.expand(len(next(iter(leaves.values()))), *[-1] * x.dim())
