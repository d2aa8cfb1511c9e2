"""The ledger's rows as a reader meets them: one line per claim, net and sample size.

The final nets on the test split carry the line; rows at other checkpoints and on other splits stand beside them.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from jumpboard.claims.statistics import in_words

Row = Mapping[str, Any]


def grouped(rows: Iterable[Row]) -> list[list[Row]]:
    """The rows of each line, the primary one first. The order of `rows` does not matter."""
    lines: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        lines[tuple(row[key] for key in ("claim", "dataset", "arch", "samples"))].append(row)
    return [sorted(lines[key], key=_rank) for key in sorted(lines)]


def _rank(row: Row) -> tuple[bool, bool, str, str]:
    split, checkpoint = row["split"], row["checkpoint"]
    return (split != "test", checkpoint != "final", split, checkpoint)


def net_of(row: Row) -> str:
    """The net in words."""
    return f"{row['dataset']}/{row['arch']}"


def size_of(row: Row) -> str:
    """The number of training samples in words."""
    return f"{row['samples']:,}" if row["samples"] else "all"


def moment_of(row: Row) -> str:
    """Checkpoint and split in words."""
    return f"{row['checkpoint'].replace('_', ' ')}, {row['split']}"


def verdict_of(row: Row) -> str:
    """The verdict with its reason, if it has one."""
    return f"{row['verdict']} ({row['reason']})" if row["reason"] else str(row["verdict"])


def estimate_of(row: Row) -> str:
    """The estimate with its limits; empty where there is none."""
    return "" if row["estimate"] is None else in_words(row["estimate"], row["low"], row["high"])
