"""The ledger as the Markdown table that opens the README: one line per claim, net and sample size.

The final nets on the test split carry the line; verdicts at other checkpoints and on other splits stand in one column.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from jumpboard.claims.statistics import in_words

HEAD = ("claim", "net", "samples", "checkpoint, split", "verdict", "estimate [90 %]", "seeds", "control", "at others")

Row = Mapping[str, Any]


def readme_table(rows: Iterable[Row]) -> str:
    """Rows of table `claims` -> Markdown; the order of `rows` does not matter."""
    lines = [_line(HEAD), _line(["---"] * len(HEAD))]
    told: set[str] = set()
    mains: dict[str, list[Row]] = defaultdict(list)
    for main, *others in _grouped(rows):
        claim = (
            main["claim"] if main["claim"] in told else f"**{main['claim']}** ({main['paper']}): {main['statement']}"
        )
        told.add(main["claim"])
        mains[main["claim"]].append(main)
        lines.append(
            _line(
                [
                    claim,
                    _net(main),
                    f"{main['samples']:,}" if main["samples"] else "all",
                    _moment(main),
                    _verdict(main),
                    _estimate(main),
                    str(main["n"]),
                    "" if main["control_share"] is None else f"{main['control_share']:.3f}",
                    "; ".join(f"{_moment(row)}: {row['verdict']}" for row in others),
                ]
            )
        )
    legend = [f"* `{claim}`: the estimate is the {_statistics(own)}." for claim, own in mains.items()]
    return "\n".join([*lines, "", *legend]) + "\n"


def _grouped(rows: Iterable[Row]) -> list[list[Row]]:
    """The rows of each line, the primary one first."""
    lines: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        lines[tuple(row[key] for key in ("claim", "dataset", "arch", "samples"))].append(row)
    return [sorted(lines[key], key=_rank) for key in sorted(lines)]


def _rank(row: Row) -> tuple[bool, bool, str, str]:
    split, checkpoint = row["split"], row["checkpoint"]
    return (split != "test", checkpoint != "final", split, checkpoint)


def _moment(row: Row) -> str:
    return f"{row['checkpoint'].replace('_', ' ')}, {row['split']}"


def _net(row: Row) -> str:
    return f"{row['dataset']}/{row['arch']}"


def _statistics(rows: Iterable[Row]) -> str:
    """What the estimates of a claim are; with the nets where that differs between them."""
    listed = list(rows)
    nets: dict[str, list[str]] = defaultdict(list)
    for row in [row for row in listed if row["estimate"] is not None] or listed:
        nets[row["statistic"]].append(_net(row))
    if len(nets) == 1:
        return next(iter(nets))
    return "; the ".join(f"{text} ({', '.join(dict.fromkeys(own))})" for text, own in nets.items())


def _verdict(row: Row) -> str:
    return f"{row['verdict']} ({row['reason']})" if row["reason"] else str(row["verdict"])


def _estimate(row: Row) -> str:
    return "" if row["estimate"] is None else in_words(row["estimate"], row["low"], row["high"])


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
