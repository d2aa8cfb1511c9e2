"""The ledger as the Markdown table that opens the README: one line per claim, net and sample size.

Final losses carry the line; the verdict at best validation stands in a column of its own.
"""

from collections.abc import Iterable, Mapping
from typing import Any

HEAD = ("claim", "net", "samples", "verdict", "estimate [90 %]", "seeds", "control", "at best validation")

Row = Mapping[str, Any]


def readme_table(rows: Iterable[Row]) -> str:
    """Rows of table `claims` -> Markdown; the order of `rows` does not matter."""
    by_key = {tuple(row[key] for key in ("claim", "dataset", "arch", "samples", "checkpoint")): row for row in rows}
    lines = [_line(HEAD), _line(["---"] * len(HEAD))]
    told: set[str] = set()
    for key in sorted(by_key):
        *place, checkpoint = key
        if checkpoint != "final":
            continue
        row = by_key[key]
        claim = row["claim"] if row["claim"] in told else f"**{row['claim']}** ({row['paper']}): {row['statement']}"
        told.add(row["claim"])
        second = by_key.get((*place, "best_validation"))
        lines.append(
            _line(
                [
                    claim,
                    f"{row['dataset']}/{row['arch']}",
                    f"{row['samples']:,}" if row["samples"] else "all",
                    _verdict(row),
                    _estimate(row),
                    str(row["n"]),
                    "" if row["control_share"] is None else f"{row['control_share']:.3f}",
                    second["verdict"] if second else "",
                ]
            )
        )
    notes = dict(sorted((row["claim"], row["statistic"]) for row in by_key.values()))
    legend = [f"* `{claim}`: the estimate is the {statistic}." for claim, statistic in notes.items()]
    return "\n".join([*lines, "", *legend]) + "\n"


def _verdict(row: Row) -> str:
    return f"{row['verdict']} ({row['reason']})" if row["reason"] else str(row["verdict"])


def _estimate(row: Row) -> str:
    if row["estimate"] is None:
        return ""
    limits = "" if row["low"] is None else f" [{row['low']:.3f}, {row['high']:.3f}]"
    return f"{row['estimate']:.3f}{limits}"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
