"""Lipschitz constants of a post-normalised net with one inserted block, over a whole class of weights.

    z_0 = Norm(W_in x)    z_l = Norm(z_{l-1} + W2 relu(W1 z_{l-1}))    h(z) = A [relu(W1 z), 1]    logits = W_head z

Every matrix has spectral norm at most S, every input norm at most R. Norm divides by sqrt(mean z^2 + eps): its
outputs have norm at most U = sqrt N, and its Lipschitz constant is c = 1/sqrt(eps), attained at 0. A block has
Lipschitz constant s = S^2; in its two matrices taken together, per unit of input, p = sqrt(S^2 + S^2). For the inserted
block the constant unit adds 1 to |phi|^2, so that over inputs of norm at most r

    |h(z)| <= S sqrt(S^2 r^2 + 1)       |h_theta(z) - h_theta'(z)| <= sqrt((S^2 + S^2) r^2 + 1) |theta - theta'|

A bare block z + h(z) (c = 1) therefore leaves a stream of norm at most U + S sqrt(S^2 U^2 + 1) to the block above or
the head. (1 + s) U, without the constant unit's part, is exceeded by A whose last column alone is not 0.

    Lambda_l = S p_l R_* c_l prod_{k > l} c_k (1 + s_k)      input: S R c_0 prod_k c_k (1 + s_k)      head: |z_L|

bounds |logits_theta - logits_theta'| / |theta_l - theta_l'|_F, with R_* = max(R, norm of the layer's input). The
smaller c = 1/sqrt((d' rho)^2 + eps) would need a lower limit of |z_0| over the class, and none is known. Paper `depth`,
certificates [draft]; the constant unit's part is derived.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Layer:
    """`own`: Lipschitz constant in the layer's parameters, before its norm, over all inputs of the class; `norm`: c;
    `through`: Lipschitz constant in its input, before its norm."""

    name: str
    own: float
    norm: float
    through: float


@dataclass(frozen=True)
class Shape:
    """A net of `depth` blocks and `width` units with a block inserted at `site`, in the form `bare` or `normed`; `eps`
    of its norms, `radius` R of its inputs."""

    depth: int
    width: int
    site: int
    form: str
    eps: float
    radius: float


def norm_constant(eps: float) -> float:
    """c: the Lipschitz constant of RMSNorm and of LayerNorm without gain."""
    return 1 / math.sqrt(eps)


def block_constants(spectral: float) -> tuple[float, float]:
    """(s, p): of a block in its input, and in its parameters per unit of input."""
    return spectral**2, math.sqrt(2) * spectral


def inserted_own(spectral: float, radius: float) -> float:
    """Of the inserted block in its parameters, over inputs of norm at most `radius`."""
    return math.hypot(block_constants(spectral)[1] * radius, 1)


def inserted_output(spectral: float, radius: float) -> float:
    """The largest norm of z + h(z)."""
    return radius + spectral * math.hypot(spectral * radius, 1)


def layers(shape: Shape, spectral: float) -> list[Layer]:
    """All layers but the head, in the order of the stream."""
    c, (s, p) = norm_constant(shape.eps), block_constants(spectral)
    unit, bare = math.sqrt(shape.width), shape.form == "bare"
    widest = max(shape.radius, unit)
    new = Layer("insert_0", inserted_own(spectral, widest), 1.0 if bare else c, 1 + s)
    above = max(widest, inserted_output(spectral, unit)) if bare else widest
    blocks = [
        Layer(f"block_{index}", p * (above if index == shape.site else widest), c, 1 + s)
        for index in range(shape.depth)
    ]
    stem = Layer("input", shape.radius, c, spectral)
    return [stem, *blocks[: shape.site], new, *blocks[shape.site :]]


def lambdas(shape: Shape, spectral: float) -> dict[str, float]:
    """Lambda of every layer, in the order of the stream, the head last."""
    found, behind = {}, spectral
    for layer in reversed(layers(shape, spectral)):
        found[layer.name] = behind * layer.own * layer.norm
        behind *= layer.norm * layer.through
    stream = math.sqrt(shape.width)
    bare_end = shape.form == "bare" and shape.site == shape.depth
    head = {"head": inserted_output(spectral, stream) if bare_end else stream}
    return dict(reversed(found.items())) | head
