"""Norm caps: a class of nets that is fixed before training, kept by projection.

    |W|_2 <= spectral    for each weight matrix W    |theta_l|_F <= frobenius    for all matrices of a layer together

Singular values above the cap are clipped, then layers above theirs are scaled. What is within the caps keeps its
bytes. Values are taken in float64, and what is too large is set just below its cap (`BELOW` of it), so that the float32
that is stored obeys it too. Paper `depth`, the class of its norm-based bounds; projection is derived.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from jumpboard.errors import InputError
from jumpboard.nets.base import Net
from jumpboard.training.parameters import Layout
from jumpboard.training.recipe import Caps

BELOW = 1 - 1e-5  # rounding to float32 moves a norm of r x r by less than 6e-8 sqrt(r) of it


def clipped(matrices: Tensor, cap: float) -> Tensor:
    """Matrices [..., r, c], float64, with no singular value above `cap`; those that have none, and those that are not
    finite, as they are."""
    large = matrices.square().sum((-2, -1)) > cap**2  # |W|_2 <= |W|_F
    large &= matrices.isfinite().all(-1).all(-1)
    if not large.any():
        return matrices
    u, s, v = torch.linalg.svd(matrices[large], full_matrices=False)
    within = (u * s.clamp(max=BELOW * cap).unsqueeze(-2)) @ v
    result = matrices.clone()
    result[large] = torch.where((s[:, 0] > cap).view(-1, 1, 1), within, matrices[large])
    return result


@dataclass(frozen=True)
class Projection:
    """The projection of a net's members onto its caps. `alike` holds, for each shape [r, c], the places [k, r c] of its
    k matrices in the flat vector; `member_of` [parameters, layers] holds 1 where an entry belongs to a layer."""

    caps: Caps
    alike: dict[tuple[int, ...], Tensor]
    member_of: Tensor

    @classmethod
    def of(cls, net: Net, caps: Caps, device: torch.device) -> "Projection":
        """Raises InputError for a net whose trained leaves are not all weights of layers."""
        layers = net.layers()
        if layers is None:
            name = net.family or type(net).__name__
            raise InputError(f"caps do not cover this net, '{name}'; accepted: resmlp without gain and bias")
        layout = Layout.of(net)
        places = layout.leaves(torch.arange(layout.size)[None])
        alike: dict[tuple[int, ...], list[Tensor]] = {}
        member_of = torch.zeros(layout.trained, len(layers), dtype=torch.float64)
        for index, names in enumerate(layers.values()):
            for name in names:
                alike.setdefault(layout.shapes[name], []).append(places[name].flatten())
                member_of[places[name].flatten(), index] = 1.0
        return cls(caps, {shape: torch.stack(own).to(device) for shape, own in alike.items()}, member_of.to(device))

    @torch.no_grad()
    def apply(self, flat: Tensor) -> None:
        """Project the members `flat` [G, size] in place."""
        parameters = flat[:, : len(self.member_of)]
        values = parameters.double()
        for shape, own in self.alike.items():
            values[:, own] = clipped(values[:, own].view(len(flat), len(own), *shape), self.caps.spectral).flatten(-2)
        norms = (values.square() @ self.member_of).sqrt()
        scales = torch.where(norms > self.caps.frobenius, BELOW * self.caps.frobenius / norms, 1.0)
        parameters.copy_(values * (scales @ self.member_of.T))
