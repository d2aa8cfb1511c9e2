"""Uniform deviation of test from training loss over a class of nets, from its parameters' Lipschitz constants.

    Rad <= B sqrt(2 d ln(2 b l L_loss Lambda_max / e0 + 1) / n) + e0        e0 = 1/sqrt n
    eps_n = 2 Rad + 3 B sqrt(ln(4/delta) / (2n))        two-sided: |L - L_n| <= eps_n for the whole class at once

with probability at least 1 - delta over n independent samples. Layer by layer the class lies in a ball of radius b,
which (1 + 2b/r)^d_l points of the class cover to r = e0/(l L_loss Lambda_l); together they cover the losses to e0, and
Massart's lemma bounds the rest. The draft has ln(2/delta), which is one-sided: its own column. A ratio eps_n/B of 1 or
more says nothing. Paper `depth`, certificates [draft, corrected].
"""

import math
from dataclasses import dataclass

TWO_SIDED, DRAFT = 4, 2


@dataclass(frozen=True)
class Complexity:
    """`parameters` d and `layers` l of the net, `radius` b of each layer's parameters, `lipschitz` Lambda_max of the
    logits; `loss_lipschitz` L_loss of the loss in the logits, in Euclidean norm, and its `bound` B."""

    parameters: int
    layers: int
    radius: float
    lipschitz: float
    loss_lipschitz: float
    bound: float

    def rademacher(self, n: int) -> float:
        """The bound of the class's Rademacher average on any n samples."""
        e0 = 1 / math.sqrt(n)
        points = math.log1p(2 * self.radius * self.layers * self.loss_lipschitz * self.lipschitz / e0)
        return self.bound * math.sqrt(2 * self.parameters * points / n) + e0

    def deviation(self, n: int, delta: float, tails: int = TWO_SIDED) -> float:
        """eps_n; `tails` stands before 1/delta in the logarithm."""
        return 2 * self.rademacher(n) + 3 * self.bound * math.sqrt(math.log(tails / delta) / (2 * n))
