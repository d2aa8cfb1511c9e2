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
TOLERATED = 0.10


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
    """The control: a share, what it is a share of, in words that follow the number, and the largest share with which
    the verdict stands; 1 where the control is reported only."""

    share: float
    meaning: str
    tolerated: float = TOLERATED


class Rule(Protocol):
    """A module of one kind of rule.

    `COLUMNS` it reads (`{value}` stands for the first column that the claim names), `BY_SAMPLES` whether each sample
    size is judged alone, `STATISTIC` what the main estimate is, with its unit, `SUPPORTING` from where to where such an
    estimate speaks for the claim, None where there is no end. `judge` and `null` are pure; `null` answers for the
    verdict that was given to a claim, by the claim's name.
    """

    COLUMNS: tuple[str, ...]
    BY_SAMPLES: bool
    STATISTIC: str
    SUPPORTING: tuple[float | None, float | None]

    @staticmethod
    def judge(seen: Observations) -> Ruling: ...

    @staticmethod
    def null(seen: Observations, claim: str, verdict: str) -> Null: ...
