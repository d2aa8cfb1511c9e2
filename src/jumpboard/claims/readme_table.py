"""The ledger as the Markdown table that opens the README: one line per claim, net and sample size.

The final nets on the test split carry the line; verdicts at other checkpoints and on other splits stand in one column.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from jumpboard.claims.lines import estimate_of, grouped, moment_of, net_of, size_of, verdict_of

HEAD = ("claim", "net", "samples", "checkpoint, split", "verdict", "estimate [90 %]", "seeds", "control", "at others")

Row = Mapping[str, Any]


def readme_table(rows: Iterable[Row]) -> str:
    """Rows of table `claims` -> Markdown; the order of `rows` does not matter."""
    lines = [_line(HEAD), _line(["---"] * len(HEAD))]
    told: set[str] = set()
    mains: dict[str, list[Row]] = defaultdict(list)
    for main, *others in grouped(rows):
        claim = (
            main["claim"] if main["claim"] in told else f"**{main['claim']}** ({main['paper']}): {main['statement']}"
        )
        told.add(main["claim"])
        mains[main["claim"]].append(main)
        lines.append(
            _line(
                [
                    claim,
                    net_of(main),
                    size_of(main),
                    moment_of(main),
                    verdict_of(main),
                    estimate_of(main),
                    str(main["n"]),
                    "" if main["control_share"] is None else f"{main['control_share']:.3f}",
                    "; ".join(f"{moment_of(row)}: {row['verdict']}" for row in others),
                ]
            )
        )
    legend = [f"* `{claim}`: the estimate is the {_statistics(own)}." for claim, own in mains.items()]
    return "\n".join([*lines, "", *legend]) + "\n"


def _statistics(rows: Iterable[Row]) -> str:
    """What the estimates of a claim are; with the nets where that differs between them."""
    listed = list(rows)
    nets: dict[str, list[str]] = defaultdict(list)
    for row in [row for row in listed if row["estimate"] is not None] or listed:
        nets[row["statistic"]].append(net_of(row))
    if len(nets) == 1:
        return next(iter(nets))
    return "; the ".join(f"{text} ({', '.join(dict.fromkeys(own))})" for text, own in nets.items())


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
