"""Samples of a law that is known: Gaussian inputs, labels drawn from a small fixed post-normalised net.

    x ~ N(0, I) given |x| <= radius       y ~ softmax(W_head z_L(x))
    z_0 = RMSNorm(W_in x)                 z_l = RMSNorm(z_{l-1} + W2 relu(W1 z_{l-1}))

The teacher is drawn from a seed of its own: W_in ~ N(0, 1/fan_in), W1 ~ N(0, 2/N), W2 ~ N(0, 1/N) (variances), rows
of W_head N(0, I) brought to the length `sharpness`. Its eps is that of the nets which bounds are made for, so that the
norm keeps none of them from it. The risk of the teacher itself is the least there is (Bayes risk):

    bayes_risk = E[-sum_c p_c ln p_c]     bayes_risk_brier = E[1 - sum_c p_c^2]

Rows are drawn chunk by chunk, each from a stream of its own, so that more rows never change the first ones, and
there is no end to them. Inputs are rounded to float32 before anything else is made of them.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import gammainc

from jumpboard.data.rows import Rows
from jumpboard.errors import InputError

SAMPLER = True
OPTIONS = ("radius", "width", "depth", "sharpness", "teacher_seed")
EPS = 0.01
ROWS = 2**16  # of a stream
INPUTS, POPULATION = 0, 1  # streams of a seed
SAMPLES = 2**21  # that the Bayes risk is a mean over
LEAST = 0.99  # of all Gaussian inputs lie within the radius


def weights(spec: Mapping[str, Any]) -> list[np.ndarray]:
    """W_in, then W1 and W2 of each block, then W_head, float64.

    Raises InputError for a radius that cuts off more than 1 % of the inputs, and for samples that are no vectors.
    """
    options, shape = spec["options"], spec["shape"]
    missing = [name for name in OPTIONS if name not in options]
    if missing:
        raise InputError(f"teacher: lacks the option '{missing[0]}'; accepted: all of {', '.join(OPTIONS)}")
    if len(shape) != 1:
        raise InputError(f"teacher: shape is {list(shape)}; accepted: that of a vector")
    inside = within(options["radius"], shape[0])
    if inside < LEAST:
        found = f"radius {options['radius']} holds {inside:.4f} of all inputs"
        raise InputError(f"teacher: {found}; accepted: one that holds {LEAST} or more")
    draws, n = np.random.default_rng(options["teacher_seed"]), options["width"]
    drawn = [draws.standard_normal((n, shape[0])) / math.sqrt(shape[0])]
    for _ in range(options["depth"]):
        drawn += [draws.standard_normal((n, n)) * math.sqrt(scale / n) for scale in (2, 1)]
    head = draws.standard_normal((spec["classes"], n))
    return [*drawn, options["sharpness"] * head / np.linalg.norm(head, axis=1, keepdims=True)]


def within(radius: float, inputs: int) -> float:
    """The share of standard Gaussian vectors in R^inputs with a norm of at most `radius`."""
    return float(gammainc(inputs / 2, radius**2 / 2))


def probabilities(teacher: list[np.ndarray], x: np.ndarray) -> np.ndarray:
    """The law of the labels [n, classes] of inputs x [n, D]."""
    stem, *blocks, head = teacher
    z = _normalised(x @ stem.T)
    for w1, w2 in zip(blocks[::2], blocks[1::2], strict=True):
        z = _normalised(z + np.maximum(z @ w1.T, 0) @ w2.T)
    logits = z @ head.T
    exponentials: np.ndarray = np.exp(logits - logits.max(axis=1, keepdims=True))
    exponentials /= exponentials.sum(axis=1, keepdims=True)
    return exponentials


def _normalised(z: np.ndarray) -> np.ndarray:
    normalised: np.ndarray = z / np.sqrt(np.square(z).mean(axis=1, keepdims=True) + EPS)
    return normalised


def _generator(seed: int, stream: int, chunk: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, stream, chunk])))


def _inputs(generator: np.random.Generator, radius: float, size: int) -> np.ndarray:
    """ROWS inputs [ROWS, size] float32 within the radius; those outside are drawn again."""
    x = np.empty((ROWS, size), dtype=np.float32)
    outside = np.arange(ROWS)
    while len(outside):
        x[outside] = generator.standard_normal((len(outside), size))
        outside = outside[np.square(x[outside], dtype=np.float64).sum(axis=1) > radius**2]
    return x


def draw(spec: Mapping[str, Any], count: int, seed: int) -> Rows:
    """The first `count` rows of a seed, x [count, D] float32; about two million a second."""
    teacher = weights(spec)
    x, y = np.empty((count, spec["shape"][0]), dtype=np.float32), np.empty(count, dtype=np.int64)
    for chunk, start in enumerate(range(0, count, ROWS)):
        generator, part = _generator(seed, INPUTS, chunk), slice(start, start + ROWS)
        inputs = _inputs(generator, spec["options"]["radius"], x.shape[1])
        below = probabilities(teacher, inputs.astype(np.float64)).cumsum(axis=1)
        labels = (below[:, :-1] <= generator.random((ROWS, 1))).sum(axis=1)
        x[part], y[part] = inputs[: count - start], labels[: count - start]
    return Rows(x, y)


def population(spec: Mapping[str, Any]) -> dict[str, float]:
    """What is known of the law: the columns `bayes_risk` with its standard error, `bayes_risk_brier` and
    `input_radius` of the table `card`, from inputs that are in no split and without drawing a label."""
    teacher = weights(spec)
    sums = np.zeros(3)
    for chunk in range(SAMPLES // ROWS):
        inputs = _inputs(_generator(spec["seed"], POPULATION, chunk), spec["options"]["radius"], spec["shape"][0])
        p = probabilities(teacher, inputs.astype(np.float64))
        entropy = -(p * np.log(np.maximum(p, np.finfo(np.float64).tiny))).sum(axis=1)
        sums += [entropy.sum(), np.square(entropy).sum(), (1 - np.square(p).sum(axis=1)).sum()]
    mean, square, brier = (sums / SAMPLES).tolist()
    return {
        "bayes_risk": mean,
        "bayes_risk_se": math.sqrt((square - mean**2) / (SAMPLES - 1)),
        "bayes_risk_brier": brier,
        "input_radius": float(spec["options"]["radius"]),
    }
