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

EXPANSION = 4


def draw_features(units: int, generator: np.random.Generator) -> Tensor:
    """W1 [4N, N], float32."""
    weights = generator.standard_normal((EXPANSION * units, units)) * math.sqrt(2 / units)
    return torch.from_numpy(weights.astype(np.float32))


def hidden_units(weights: Tensor, z: Tensor) -> Tensor:
    """z [B, P, N] -> relu(W1 z) [B, P, 4N], phi without its constant."""
    hidden: Tensor = (z @ weights.mT).relu_()
    return hidden


def _squares(values: Tensor) -> Tensor:
    """Squared norm of each sample [B], float64."""
    norms: Tensor = torch.linalg.vector_norm(values, dim=(1, 2))
    return norms.double().square()


@dataclass(frozen=True)
class FeatureSums:
    """Sums over n rows: `total` [N, 4N + 1] their sum, `squares` the sum of |row|^2, `phi_squares` that of |phi|^2
    (summed over positions). Sums of disjoint sets of rows add and subtract."""

    n: int
    total: Tensor
    squares: float
    phi_squares: float

    @classmethod
    def of(cls, zeta: Tensor, hidden: Tensor) -> "FeatureSums":
        """The sums of a batch, zeta [B, P, N] and hidden [B, P, F - 1]; phi is [hidden, 1]."""
        shifts = over_positions(zeta)
        phi_squares = _squares(hidden) + hidden.shape[1]
        if hidden.shape[1] == 1:
            total, squares = shifts.mT @ hidden[:, 0], _squares(zeta) * phi_squares
        else:
            rows = zeta.mT @ hidden
            total, squares = rows.sum(0), _squares(rows) + _squares(shifts[:, None])
        total = torch.cat([total, shifts.sum(0)[:, None]], dim=1)
        return cls(len(zeta), total.double(), float(squares.sum()), float(phi_squares.sum()))

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
    def plug_in(self) -> float:
        """|mean row|^2, biased upward by R/n."""
        return float(torch.linalg.vector_norm(self.total) / self.n) ** 2

    @property
    def unbiased(self) -> float:
        """The U-statistic of |E row|^2; negative where the signal is not resolved. NaN below 2 rows."""
        if self.n < 2:
            return math.nan
        return (self.plug_in * self.n - self.squares / self.n) / (self.n - 1)

    @property
    def phi_mean_square(self) -> float:
        """E |phi|^2, summed over positions."""
        return self.phi_squares / self.n
