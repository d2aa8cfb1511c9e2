"""The class of weights that a certificate is about, fixed before training or paid for.

A uniform bound must not use norms read off after training. Either training is held within caps, on the spectral norm
of every matrix and the Frobenius norm of every layer, and the class is that of the caps. Or the caps are the smallest
powers of two, 2^k for any integer k, at least as large as the trained norms, and all of these classes are certified
together: k is number

    j = 1 - 2k for k <= 0, 2k for k > 0        (k = 0, 1, -1, 2, -2, ... is j = 1, 2, 3, 4, 5, ...)

and the class of the pair (j, j') of caps has its share (6/pi^2)^2 / (j j')^2 of delta; the shares sum to 1. Paper
`depth`, certificates [draft]; the enumeration is derived.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jumpboard.errors import InputError

ROUNDING = 1e-9  # of norms in float64


@dataclass(frozen=True)
class WeightClass:
    """Nets whose matrices have spectral norm at most `spectral`, and whose layers have Frobenius norm at most
    `frobenius`, all matrices of a layer together; `share` is the part of delta that this class has."""

    spectral: float
    frobenius: float
    share: float


@dataclass(frozen=True)
class Norms:
    """The largest spectral norm of a matrix, and Frobenius norm of a layer."""

    spectral: float
    frobenius: float


def largest_norms(layers: Iterable[Sequence[np.ndarray]]) -> Norms:
    """Over layers, each the matrices [..., rows, columns] of one or more nets, in float64."""
    norms = [[np.asarray(one, dtype=np.float64) for one in layer] for layer in layers]
    spectral = max(float(np.linalg.norm(one, 2, axis=(-2, -1)).max()) for layer in norms for one in layer)
    squares = [sum(np.square(one).sum(axis=(-2, -1)) for one in layer) for layer in norms]
    return Norms(spectral, max(float(np.max(one)) for one in squares) ** 0.5)


def capped(caps: Mapping[str, float], norms: Norms, source: str) -> WeightClass:
    """The class of a training's caps. Raises InputError, naming `source`, for nets above them."""
    for name, what in (("spectral", "a matrix"), ("frobenius", "a layer")):
        found = getattr(norms, name)
        if not found <= caps[name] * (1 + ROUNDING):
            raise InputError(f"{source}: {what} has {name} norm {found:.6g}; accepted: at most its cap {caps[name]:g}")
    return WeightClass(caps["spectral"] * (1 + ROUNDING), caps["frobenius"] * (1 + ROUNDING), 1.0)


def smallest_powers(norms: Norms) -> WeightClass:
    """The smallest class of powers of two that holds the norms."""
    exponents = [power_above(norms.spectral), power_above(norms.frobenius)]
    share = math.prod(6 / (math.pi * cap_number(exponent)) ** 2 for exponent in exponents)
    return WeightClass(2.0 ** exponents[0], 2.0 ** exponents[1], share)


def power_above(value: float) -> int:
    """The smallest k with 2^k >= value; value > 0."""
    mantissa, exponent = math.frexp(value)
    return exponent - 1 if mantissa == 0.5 else exponent


def cap_number(exponent: int) -> int:
    """j of the cap 2^k: 1, 2, 3, ... for k = 0, 1, -1, 2, -2, ..."""
    return 2 * exponent if exponent > 0 else 1 - 2 * exponent
