"""What every rule is: a module that turns observations into a ruling, and permutes labels for its control."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from jumpboard.claims.observations import Observations
from jumpboard.claims.statistics import Interval

SUPPORTED = "supported"
CONTRADICTED = "contradicted"
INCONCLUSIVE = "inconclusive"
NOT_EVALUATED = "not evaluated"


@dataclass(frozen=True)
class Ruling:
    """A verdict, why it is not plain (else empty), the main estimate, and every interval that was looked at by name."""

    verdict: str
    reason: str
    main: Interval
    intervals: Mapping[str, Interval]


class Rule(Protocol):
    """A module of one kind of rule.

    `COLUMNS` of the table it reads, `BY_SAMPLES` whether each sample size is judged alone, `STATISTIC` what the main
    estimate is, with its unit. `judge` and `permuted` are pure; `permuted` draws one permutation of the labels.
    """

    COLUMNS: tuple[str, ...]
    BY_SAMPLES: bool
    STATISTIC: str

    @staticmethod
    def judge(seen: Observations) -> Ruling: ...

    @staticmethod
    def permuted(seen: Observations, generator: np.random.Generator) -> Observations: ...
