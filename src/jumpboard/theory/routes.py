"""The two routes by which the paper bounds the test loss of an expanded net before it is tested.

    A    L_test(f+) <= L_test(f) - Delta_R/2 - Delta_ERM + 2 eps_M
         failure <= delta + 6 exp(-K Delta_R^2/(8 B^2)), and delta more for the lower limit that stands for Delta_R
    B    L_test(f+) <= L_test(f) - Delta_R^test - Delta_ERM + 2 (eps_M + eps_K)         failure <= 2 delta

f: the old net; Delta_R = L(f) - L(f~): gain of the jumpboard, for A over the population, whose lower limit comes from
samples that neither f~ nor training has seen; Delta_ERM = L_train(f~) - L_train(f+) >= 0; M training, K test samples.
A lower Delta_R makes the right-hand side and the failure of A larger, so that a limit is safe in both. Where the limit
is not above 0, A's failure is at least 1.

A route whose stated failure is above 3 delta promises nothing (`void`). Else it `holds`, or is `violated`; it is
informative where its right-hand side is below L_test(f). Paper `depth`, Routes A and B [draft, corrected].
"""

import math
from dataclasses import dataclass

HOLDS, VIOLATED, VOID, NOT_APPLICABLE = "holds", "violated", "void", "not applicable"
PROMISED = 3.0  # deltas


@dataclass(frozen=True)
class Route:
    """What is taken off L_test(f), what is added, and the stated failure probability, at most 1."""

    gain: float
    slack: float
    failure: float

    def right_hand_side(self, old_test: float) -> float:
        return old_test - self.gain + self.slack

    def outcome(self, old_test: float, new_test: float, delta: float) -> str:
        """`holds`, `violated` or `void`."""
        if self.failure > PROMISED * delta:
            return VOID
        return HOLDS if new_test <= self.right_hand_side(old_test) else VIOLATED


def route_a(delta_r: float, delta_erm: float, eps_m: float, k: int, bound: float, delta: float) -> Route:
    """`delta_r`: the lower limit of the population gain, which fails with probability delta."""
    tail = 6 * math.exp(-k * max(delta_r, 0.0) ** 2 / (8 * bound**2))
    return Route(delta_r / 2 + delta_erm, 2 * eps_m, min(1.0, 2 * delta + tail))


def route_b(delta_r_test: float, delta_erm: float, eps_m: float, eps_k: float, delta: float) -> Route:
    return Route(delta_r_test + delta_erm, 2 * (eps_m + eps_k), min(1.0, 2 * delta))
