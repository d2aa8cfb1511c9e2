"""What every rule is: a module that turns observations into a ruling, and says how often its control calls it too."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from jumpboard.claims.observations import Observations
from jumpboard.claims.statistics import Interval

SUPPORTED = "supported"
CONTRADICTED = "contradicted"
INCONCLUSIVE = "inconclusive"
NOT_EVALUATED = "not evaluated"


@dataclass(frozen=True)
class Ruling:
    """A verdict, why it is not plain (else empty), the main estimate, and every interval that was looked at by name.

    `statistic` says what the main estimate is where that depends on the values; else it is the rule's.
    """

    verdict: str
    reason: str
    main: Interval
    intervals: Mapping[str, Interval]
    statistic: str = ""


@dataclass(frozen=True)
class Null:
    """The control: a share, and what it is a share of, in words that follow the number."""

    share: float
    meaning: str


class Rule(Protocol):
    """A module of one kind of rule.

    `COLUMNS` it reads (`{value}` stands for the first column that the claim names), `BY_SAMPLES` whether each sample
    size is judged alone, `STATISTIC` what the main estimate is, with its unit. `judge` and `null` are pure; `null`
    answers for the verdict that was given to a claim, by the claim's name.
    """

    COLUMNS: tuple[str, ...]
    BY_SAMPLES: bool
    STATISTIC: str

    @staticmethod
    def judge(seen: Observations) -> Ruling: ...

    @staticmethod
    def null(seen: Observations, claim: str, verdict: str) -> Null: ...
