"""The bounds of the paper and the limits beside them, written out from their formulas without the library."""

import math

import numpy as np


def plain_lambdas(depth: int, width: int, site: int, eps: float, radius: float, cap: float) -> list[float]:
    """Lambda of input, blocks with a bare inserted one in front of block `site`, and head, all matrices at `cap`."""
    c, s, p, unit = 1 / math.sqrt(eps), cap * cap, math.sqrt(cap**2 + cap**2), math.sqrt(width)
    after = unit + cap * math.sqrt(cap**2 * unit**2 + 1)
    star = max(radius, unit)
    factors = [c * (1 + s)] * depth
    factors.insert(site, 1 + s)
    own = [p * star * c] * depth
    if site < depth:
        own[site] = p * max(star, after) * c
    own.insert(site, math.sqrt(p**2 * star**2 + 1))
    values = [cap * radius * c * math.prod(factors)]
    for place, one in enumerate(own):
        values.append(cap * one * math.prod(factors[place + 1 :]))
    return [*values, after if site == depth else unit]


def plain_eps(
    bound: float,
    d: int,
    layers: int,
    b: float,
    lipschitz_loss: float,
    lambda_max: float,
    n: int,
    delta: float,
    tails: int,
) -> float:
    e0 = n**-0.5
    inside = 2 * b * layers * lipschitz_loss * lambda_max / e0 + 1
    rad = bound * (2 * d * math.log(inside) / n) ** 0.5 + e0
    return float(2 * rad + 3 * bound * (math.log(tails / delta) / (2 * n)) ** 0.5)


def plain_bernstein(differences: list[float], span: float, delta: float, steps: int = 1) -> float:
    n = len(differences)
    mean = sum(differences) / n
    variance = sum((one - mean) ** 2 for one in differences) / (n - 1)
    log = math.log(2 * steps / delta)
    return mean - math.sqrt(2 * variance * log / n) - 7 * span * log / (3 * (n - 1))


def plain_brier(logits: np.ndarray, label: int) -> float:
    p = np.exp(logits - max(logits))
    p = p / p.sum()
    return float(sum((p[k] - (k == label)) ** 2 for k in range(len(p))))


def plain_cross_entropy(logits: np.ndarray, label: int) -> float:
    p = np.exp(logits - max(logits))
    return min(-math.log(p[label] / p.sum()), math.log(len(p)) + 2)
