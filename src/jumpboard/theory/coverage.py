"""Which expanded nets the bounds on a class of weights cover, and why others are not covered.

Covered: `resmlp` whose trained leaves are the weight matrices of its layers, on inputs whose norm has a bound that the
law of the data guarantees. A bound seen in a sample is none. Paper `depth`, certificates.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from jumpboard.expansion.gains import parts
from jumpboard.expansion.insertion import Inserted
from jumpboard.measure.moments import FloatArray
from jumpboard.nets.base import Leaves, Net, forward
from jumpboard.theory.lipschitz import Shape, lambdas
from jumpboard.theory.losses import BoundedLoss
from jumpboard.theory.uniform import Complexity
from jumpboard.theory.weight_class import WeightClass


@dataclass(frozen=True)
class Covered:
    """An expanded net of the class of bounds, on inputs of norm at most `radius`."""

    net: Inserted
    eps: float
    radius: float

    def complexity(self, site: int, weights: WeightClass, loss: BoundedLoss) -> Complexity:
        """Of the nets with their block at `site`."""
        net = self.net
        shape = Shape(net.depth, net.width, site, net.insert_form, self.eps, self.radius)
        found = lambdas(shape, weights.spectral)
        return Complexity(
            parameters=net.parameter_count(),
            layers=len(found),
            radius=weights.frobenius,
            lipschitz=max(found.values()),
            loss_lipschitz=loss.lipschitz,
            bound=loss.bound(net.classes),
        )


def covered(net: Inserted, radius: float | None) -> Covered | str:
    """The net with what its bounds need, or the reason why there are none."""
    base = net.base
    if base.family != "resmlp":
        return not_derived(base)
    if base.layers() is None:
        return "a trained gain or bias is in no layer's norm"
    if radius is None:
        return "the law of the data gives no bound on the norm of inputs"
    return Covered(net, vars(base)["eps"], radius)


def not_derived(base: Net) -> str:
    """Why a net of another family is not covered."""
    if getattr(base, "norm", "") == "batch":
        return "BatchNorm in evaluation mode is affine and caps no norm"
    return f"no constants are derived for nets of family {base.family}"


@torch.no_grad()
def measured_norm_constant(base: Net, eps: float, leaves: Leaves, x: Tensor) -> FloatArray:
    """Of G members the largest 1/sqrt(r^2 + eps) over norms and samples x [n, *input_shape], r the RMS of what the norm
    takes: the Lipschitz constant that it has there. A diagnostic, and no bound for other inputs.

    The norm's output has mean square q = r^2/(r^2 + eps), so that 1/(r^2 + eps) = (1 - q)/eps.
    """
    members = len(next(iter(leaves.values())))
    least = torch.ones(members, dtype=torch.float64)

    def tap(site: int, z: Tensor) -> Tensor:
        torch.minimum(least, z.double().square().mean(-1).amin(1).cpu(), out=least)
        return z

    for part in parts(base, members, len(x)):
        forward(base, leaves, x[part].expand(members, *[-1] * x.dim()), tap=tap)
    constant: FloatArray = ((1 - least).clamp(min=0) / eps).sqrt().numpy()
    return constant
