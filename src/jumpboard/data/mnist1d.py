"""MNIST-1D: 40 noisy, sheared, shifted values of one of ten templates, sampled from a seed.

Each row is one call of the package's `transform` on the template of its label; labels are balanced (counts differ by
at most one) and shuffled. The values stay raw: the package's `make_dataset` would standardise them with the moments of
the very set drawn, so that two sets of one law would differ in law. `transform` draws from the global generators of
numpy and random, which are seeded here and put back afterwards.
"""

import math
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
from mnist1d.data import get_dataset_args, get_templates
from mnist1d.transform import transform

from jumpboard.data.rows import Rows
from jumpboard.errors import InputError

SAMPLER = True
OPTIONS = (
    "template_len",
    "padding",
    "scale_coeff",
    "max_translation",
    "corr_noise_scale",
    "iid_noise_scale",
    "shear_scale",
    "final_seq_length",
)


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    states = np.random.get_state(), random.getstate()
    try:
        np.random.seed(seed)
        random.seed(seed)
        yield
    finally:
        np.random.set_state(states[0])
        random.setstate(states[1])


def _fits(value: Any, default: Any) -> bool:
    if isinstance(default, list):
        whole = isinstance(value, list | tuple) and len(value) == len(default)
        return whole and all(map(_fits, value, default)) and list(value) == sorted(value)
    if isinstance(default, int):
        return isinstance(value, int) and value >= 1
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def _arguments(spec: Mapping[str, Any]) -> SimpleNamespace:
    defaults = get_dataset_args(as_dict=True)
    arguments = {name: defaults[name] for name in OPTIONS}
    for name, value in spec.get("options", {}).items():
        if not _fits(value, arguments[name]):
            raise InputError(f"mnist1d: option '{name}' is {value!r}; accepted: values like {arguments[name]!r}")
        arguments[name] = value
    if list(spec["shape"]) != [arguments["final_seq_length"]]:
        raise InputError(f"mnist1d: shape is {spec['shape']}, but final_seq_length is {arguments['final_seq_length']}")
    return SimpleNamespace(**arguments)


def draw(spec: Mapping[str, Any], count: int, seed: int) -> Rows:
    """`count` rows, x [count, 40] float32; about 4,000 rows a second. Another seed gives new rows of the same law."""
    arguments, templates = _arguments(spec), get_templates()
    signals, times = templates["x"], templates["t"]
    labels = np.random.default_rng(seed).permutation(np.arange(count, dtype=np.int64) % len(signals))
    x = np.empty((count, arguments.final_seq_length), dtype=np.float32)
    with _seeded(seed):
        for row, label in zip(x, labels, strict=True):
            row[:] = transform(signals[label], times, arguments)[0]
    return Rows(x, labels)
