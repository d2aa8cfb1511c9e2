"""Learning-rate factor as a function of the step: linear warm-up from 1/warmup, then the schedule."""

import math
from collections.abc import Callable

from jumpboard.errors import InputError

SCHEDULES: dict[str, Callable[[float], float]] = {
    "constant": lambda share: 1.0,
    "linear": lambda share: 1.0 - share,
    "cosine": lambda share: 0.5 * (1.0 + math.cos(math.pi * share)),
}


def factor(name: str, step: int, steps: int, warmup: int) -> float:
    """The factor of the base rate at `step` (0-based) of `steps`; `linear` and `cosine` end at 0.

    Raises InputError for an unknown schedule.
    """
    if name not in SCHEDULES:
        raise InputError(f"schedule '{name}' is not known; accepted: {', '.join(SCHEDULES)}")
    if step < warmup:
        return (step + 1) / warmup
    return SCHEDULES[name]((step - warmup) / max(1, steps - warmup))
