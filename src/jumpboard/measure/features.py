"""The first-order signal that a zero-output random-feature block sees at a site.

    signal_feature = |E[zeta phi(z)']|_F        phi(z) = [relu(W1 z), 1],  W1 ~ N(0, 2/N) of 4N x N, fixed

It is the steepest slope of the block `h = A phi` at A = 0. Rows `sum_p zeta_p phi_p'` have N (4N + 1) entries, of which
only the sum and the sum of squared norms are kept:

    R^ = (sum |row|^2 - |sum row|^2 / n)/(n - 1)        signal_feature_sq = |sum row / n|^2 - R^/n, unbiased

Paper `depth`, first-order signals; the estimator is derived.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from jumpboard.measure.gradients import over_positions
from jumpboard.measure.moments import Value

EXPANSION = 4


def draw_features(units: int, generator: np.random.Generator) -> Tensor:
    """W1 [4N, N], float32."""
    weights = generator.standard_normal((EXPANSION * units, units)) * math.sqrt(2 / units)
    return torch.from_numpy(weights.astype(np.float32))


def hidden_units(weights: Tensor, z: Tensor) -> Tensor:
    """z [..., B, P, N], W1 [..., 4N, N] -> relu(W1 z) [..., B, P, 4N], phi without its constant."""
    hidden: Tensor = (z.flatten(-3, -2) @ weights.mT).relu_()
    return hidden.view(*z.shape[:-1], -1)


def _squares(values: Tensor) -> Tensor:
    """Squared norm of each sample [..., B], float64, of values [..., B, P, N]."""
    norms: Tensor = torch.linalg.vector_norm(values, dim=(-2, -1))
    return norms.double().square()


@dataclass(frozen=True)
class FeatureSums:
    """Sums over n rows, float64: `total` [..., N, 4N + 1] their sum, `squares` [...] the sum of |row|^2, `phi_squares`
    [...] that of |phi|^2 (summed over positions); leading axes hold several sites side by side. Sums of disjoint sets
    of rows add and subtract."""

    n: int
    total: Tensor
    squares: Tensor
    phi_squares: Tensor

    @classmethod
    def of(cls, zeta: Tensor, hidden: Tensor) -> "FeatureSums":
        """The sums of a batch, zeta [..., B, P, N] and hidden [..., B, P, F - 1]; phi is [hidden, 1]."""
        positions = hidden.shape[-2]
        shifts = over_positions(zeta)
        phi_squares = _squares(hidden) + positions
        if positions == 1:
            total, squares = shifts.mT @ hidden[..., 0, :], _squares(zeta) * phi_squares
        else:
            rows = zeta.mT @ hidden
            total, squares = rows.sum(-3), _squares(rows) + _squares(shifts.unsqueeze(-2))
        total = torch.cat([total, shifts.sum(-2).unsqueeze(-1)], dim=-1)
        return cls(shifts.shape[-2], total.double(), squares.sum(-1), phi_squares.sum(-1))

    def __add__(self, other: "FeatureSums") -> "FeatureSums":
        return FeatureSums(
            self.n + other.n,
            self.total + other.total,
            self.squares + other.squares,
            self.phi_squares + other.phi_squares,
        )

    def __sub__(self, other: "FeatureSums") -> "FeatureSums":
        return FeatureSums(
            self.n - other.n,
            self.total - other.total,
            self.squares - other.squares,
            self.phi_squares - other.phi_squares,
        )

    @property
    def plug_in(self) -> Value:
        """|mean row|^2 [...], biased upward by R/n."""
        norms = torch.linalg.vector_norm(self.total, dim=(-2, -1)).cpu().numpy()
        squares: Value = (norms / self.n)[()] ** 2
        return squares

    @property
    def unbiased(self) -> Value:
        """The U-statistic of |E row|^2 [...]; negative where the signal is not resolved. NaN below 2 rows."""
        if self.n < 2:
            return math.nan * self.plug_in
        return (self.plug_in * self.n - self.squares.cpu().numpy()[()] / self.n) / (self.n - 1)

    @property
    def phi_mean_square(self) -> Value:
        """E |phi|^2 [...], summed over positions."""
        mean: Value = self.phi_squares.cpu().numpy()[()] / self.n
        return mean
