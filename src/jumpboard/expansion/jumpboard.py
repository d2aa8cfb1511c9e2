"""The jumpboard: the inserted block h = A phi with A one step down the steepest unit direction.

    D = E[zeta_+ phi']/|.|_F      A = -eta D      d loss/d eta = -|E[zeta_+ phi']|_F at eta = 0

zeta_+ = J_Norm(z)' zeta is the gradient before the block's own norm, zeta itself where the block is bare. Direction and
step come from the training samples alone: the step is the one of a geometric grid with the lowest training loss.
`scale` = RMS |z| / RMS |phi| gives steps their unit, as eta = scale moves the stream by up to its own size.

Controls take another direction through the same search: a random one, a random one orthogonal to D, and D of shuffled
labels (`directions` with permuted y). A random direction's slope is that of D over the root of the number of entries.
Paper `depth`, section on the jumpboard; zeta_+ is derived.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jumpboard.expansion.insertion import Inserted, with_step
from jumpboard.expansion.steps import step_losses
from jumpboard.measure.features import FeatureSums, hidden_units
from jumpboard.measure.gradients import site_gradients
from jumpboard.measure.moments import FloatArray
from jumpboard.measure.sites import batch_size
from jumpboard.nets.base import Leaves, Net


@dataclass(frozen=True)
class Direction:
    """Steepest directions of G members: D `unit` [G, N, 4N + 1], float64, its plug-in slope [G], the unbiased square of
    that slope [G] (negative where it is not resolved), and `scale` [G]."""

    unit: Tensor
    slope: Tensor
    slope_sq: Tensor
    scale: Tensor

    @property
    def mean(self) -> Tensor:
        """E[zeta_+ phi'] [G, N, 4N + 1]."""
        return self.slope.view(-1, 1, 1) * self.unit

    def slope_along(self, unit: Tensor) -> Tensor:
        """<E[zeta_+ phi'], unit> [G]: how fast the loss of these samples falls along A = -eta unit."""
        return (self.mean * unit).sum((1, 2))


def directions(net: Net, leaves: Leaves, weights: Mapping[int, Tensor], x: Tensor, y: Tensor) -> dict[int, Direction]:
    """By site, the steepest directions of the G members of a net that is not yet expanded, in one pass for all sites.

    `weights` holds W1 [G, 4N, N] of each site wanted; x [n, *input_shape], y [n], or [G, n] where members have labels
    of their own.
    """
    members = next(iter(leaves.values())).shape[0]
    labels, step = y.expand(members, -1), max(1, batch_size(net) // members)
    sums: dict[int, FeatureSums] = {}
    squares = {site: torch.zeros(members, dtype=torch.float64) for site in weights}
    for start in range(0, len(x), step):
        part = slice(start, start + step)
        streams = site_gradients(net, leaves, x[part].expand(members, *[-1] * x.dim()), labels[:, part])
        for site, layers in weights.items():
            z, zeta = streams[site]
            zeta = before_norm(net, z, zeta)
            squares[site] += z.double().square().sum((1, 2, 3)).cpu()
            batch = FeatureSums.of(zeta, hidden_units(layers, z))
            sums[site] = sums[site] + batch if site in sums else batch
    return {site: _direction(sums[site], squares[site]) for site in weights}


def before_norm(net: Net, z: Tensor, zeta: Tensor) -> Tensor:
    """zeta_+ [G, B, P, N] of an inserted block: zeta taken back through the norm that follows it, if one does."""
    if net.stream_norm is None:
        return zeta
    with torch.enable_grad():
        point = z.detach().requires_grad_()
        # a scalar: for grad_outputs torch imports its symbolic shapes first, which takes a second
        before: Tensor = torch.autograd.grad((net.stream_norm(point) * zeta).sum(), point)[0]
    return before


def _direction(sums: FeatureSums, squares: Tensor) -> Direction:
    mean = sums.total / sums.n
    slope = mean.flatten(1).norm(dim=1)
    unit = mean / slope.clamp(min=torch.finfo(slope.dtype).tiny).view(-1, 1, 1)
    unbiased, phi = (torch.as_tensor(value).to(slope) for value in (sums.unbiased, sums.phi_mean_square))
    return Direction(unit, slope, unbiased, (squares.to(phi) / sums.n / phi).sqrt())


def random_directions(direction: Direction, generators: Sequence[np.random.Generator], orthogonal: bool) -> Tensor:
    """Unit directions [G, N, 4N + 1] without a preference, or without a part along `direction`; one generator each."""
    unit = direction.unit
    draws = torch.stack([torch.from_numpy(one.standard_normal(unit.shape[1:])) for one in generators]).to(unit)
    if orthogonal:
        draws = draws - (draws * unit).sum((1, 2), keepdim=True) * unit
    norms: Tensor = torch.linalg.vector_norm(draws, dim=(1, 2), keepdim=True)
    return draws / norms


def geometric_steps(scale: Tensor, lowest: float, highest: float, count: int) -> Tensor:
    """`count` steps [count, G] from lowest to highest, in units of each member's scale [G]."""
    return (
        torch.logspace(np.log10(lowest), np.log10(highest), count, dtype=scale.dtype, device=scale.device)[:, None]
        * scale
    )


@dataclass(frozen=True)
class Jumpboard:
    """The leaves with each member's step taken, the steps [G], and the training losses [steps, G] they were chosen
    by."""

    leaves: Mapping[str, Tensor]
    eta: Tensor
    losses: FloatArray


def jumpboard(net: Inserted, leaves: Leaves, unit: Tensor, steps: Tensor, x: Tensor, y: Tensor) -> Jumpboard:
    """The best step of each member along its unit direction [G, N, 4N + 1], of `steps` [count, G], on the training
    samples x [n, *input_shape], y [n]."""
    losses = step_losses(net, leaves, unit, steps, x, y).mean(axis=2)
    best = torch.from_numpy(best_steps(losses)).to(steps.device)
    eta = steps.gather(0, best[None])[0]
    return Jumpboard(with_step(net, leaves, unit, eta), eta, losses)


def best_steps(losses: FloatArray) -> NDArray[np.int64]:
    """The index [G] of each member's step of lowest mean loss [steps, G]; never one that is not a number."""
    best: NDArray[np.int64] = np.where(np.isfinite(losses), losses, np.inf).argmin(axis=0)
    return best
