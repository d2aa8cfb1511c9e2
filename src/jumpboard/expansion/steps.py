"""Losses of many steps along one direction, without a pass through the whole net for each of them.

    z -> joined(z - eta v)      v = D phi(z)

v does not depend on the step, so that for each batch the net below a member's site and the features of its block are
computed once, and what lies above the site once for every step.
"""

import numpy as np
import torch
from torch import Tensor

from jumpboard.expansion.gains import parts
from jumpboard.expansion.insertion import Inserted, branch
from jumpboard.measure.moments import FloatArray
from jumpboard.nets.base import Leaves, run_from, run_to
from jumpboard.training.evaluation import cross_entropy


@torch.no_grad()
def step_losses(net: Inserted, leaves: Leaves, unit: Tensor, steps: Tensor, x: Tensor, y: Tensor) -> FloatArray:
    """Cross-entropy [steps, G, n] in nats of every sample with A = -eta unit, for each eta of `steps` [steps, G]: what
    `sample_losses` gives for each. unit [G, N, 4N + 1], x [n, *input_shape], y [n]."""
    losses: FloatArray = np.empty((len(steps), len(unit), len(x)))
    sites = leaves[f"{net.name}.site"].flatten()
    for site in sorted(set(sites.tolist())):
        own = (sites == site).nonzero().flatten()
        members = {name: leaf.index_select(0, own) for name, leaf in leaves.items()}
        at_site = unit.index_select(0, own), steps.index_select(1, own)
        losses[:, own.cpu().numpy()] = _losses_at(net, members, int(site), *at_site, x, y)
    return losses


def _losses_at(
    net: Inserted, leaves: Leaves, site: int, unit: Tensor, steps: Tensor, x: Tensor, y: Tensor
) -> FloatArray:
    members, base = len(unit), net.base
    losses: FloatArray = np.empty((len(steps), members, len(x)))
    for part in parts(base, members, len(x)):
        inputs, labels = x[part].expand(members, *[-1] * x.dim()), y[part].expand(members, -1)
        z = run_to(base, leaves, inputs, site)
        p = base.positions(z, members)
        v = branch(p, leaves[f"{net.name}.w1"], unit.to(p))
        for index, eta in enumerate(steps.to(p)):
            moved = net.joined(p - eta.view(-1, 1, 1, 1) * v)
            logits = run_from(base, leaves, base.from_positions(moved, z), site).double()
            losses[index][:, part] = cross_entropy(logits, labels).cpu().numpy()
    return losses
