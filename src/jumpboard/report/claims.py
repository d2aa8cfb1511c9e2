"""The report's first part: each claim with its source, its rule in words and its verdicts, by paper."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jumpboard.claims.lines import estimate_of, grouped, moment_of, net_of, size_of

Row = Mapping[str, Any]


def claims_by_paper(entries: Mapping[str, Row], rows: Iterable[Row]) -> dict[str, list[dict[str, Any]]]:
    """paper -> its claims in the ledger's order: the ledger's entry with `claim` and `verdicts`.

    `entries` is the ledger, `rows` the table `claims`. A verdict holds the row's columns, `net`, `size`, `moment` and
    `estimated` in words, and `primary`: False where it is of another checkpoint or split than the one above it.
    """
    papers: dict[str, list[dict[str, Any]]] = {}
    lines = grouped(rows)
    for claim, entry in entries.items():
        own = [line for line in lines if line[0]["claim"] == claim]
        verdicts = [verdict for line in own for verdict in _verdicts(line)]
        papers.setdefault(entry["paper"], []).append({**entry, "claim": claim, "verdicts": verdicts})
    return papers


def verdicts_on_nets(rows: Iterable[Row]) -> dict[tuple[str, str, str], list[str]]:
    """(claim, data set, arch) -> its different verdicts there, of lines' primary rows."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for main, *_ in grouped(rows):
        own = found.setdefault((main["claim"], main["dataset"], main["arch"]), [])
        own += [main["verdict"]] if main["verdict"] not in own else []
    return found


def _verdicts(line: Sequence[Row]) -> list[dict[str, Any]]:
    return [
        {
            **row,
            "primary": rank == 0,
            "net": net_of(row),
            "size": size_of(row),
            "moment": moment_of(row),
            "estimated": estimate_of(row),
        }
        for rank, row in enumerate(line)
    ]
