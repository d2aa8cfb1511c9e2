"""What an audit found: files checked by kind, failures, what could not be verified, verdicts."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jumpboard.artefacts import paths
from jumpboard.artefacts.verification import Fault, printable

MOST_SHOWN = 30
KINDS = {".parquet": "tables", ".safetensors": "checkpoints", ".json": "JSON", ".svg": "pictures", ".png": "pictures"}


@dataclass
class Report:
    """`failed` holds the first reason of each file in the order found, `verdicts` a mapping per row of the ledger."""

    checked: Counter[str] = field(default_factory=Counter)
    compared: Counter[str] = field(default_factory=Counter)
    failed: dict[str, str] = field(default_factory=dict)
    not_verified: list[str] = field(default_factory=list)
    not_shipped: list[str] = field(default_factory=list)
    verdicts: list[dict[str, Any]] = field(default_factory=list)

    def fail(self, faults: Iterable[Fault]) -> None:
        """Take faults in; a file that has already failed keeps its first reason."""
        for fault in faults:
            self.failed.setdefault(printable(fault.file), printable(" ".join(fault.reason.split())))

    @property
    def good(self) -> bool:
        return not self.failed

    def as_json(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        return {
            "checked": sum(self.checked.values()),
            "failed": [{"file": file, "reason": reason} for file, reason in self.failed.items()],
            "verdicts": self.verdicts,
            "not_verified": self.not_verified,
            "not_shipped": self.not_shipped,
            **({"compared": dict(self.compared)} if self.compared else {}),
        }

    def as_text(self) -> str:
        """The same for people; the last line says whether the run holds, or names the first file that does not."""
        lines = [f"{kind:<14}{count:>7} checked" for kind, count in sorted(self.checked.items())]
        if self.not_shipped:
            lines.append(f"{'not shipped':<14}{len(self.not_shipped):>7} checkpoints, splits and rows, known by digest")
        lines += _section("compared with the other run", [f"{n:>7} {how}" for how, n in self.compared.items()])
        lines += _section("not verified", self.not_verified)
        lines += _section("verdicts", _verdicts(self.verdicts), most=len(self.verdicts))
        failed = [f"{file}: {reason}" for file, reason in self.failed.items()]
        lines += _section(f"failed ({len(failed)} files)", failed)
        lines += ["", f"audit failed: {failed[0]}" if failed else "audit passed"]
        return "\n".join(lines)


def sort_of(path: str) -> str:
    """What a file counts as: a record, or by its suffix."""
    if path.startswith(f"{paths.RECORDS}/"):
        return "records"
    return KINDS.get(path[path.rfind(".") :], "other")


def _section(title: str, entries: list[str], most: int = MOST_SHOWN) -> list[str]:
    if not entries:
        return []
    rest = [f"  and {len(entries) - most} more"] if len(entries) > most else []
    return ["", title, *(f"  {one}" for one in entries[:most]), *rest]


def _verdicts(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """One line each, in columns as wide as their longest entry."""
    cells = [
        (
            one["claim"],
            f"{one['dataset']}/{one['arch']}",
            str(one["samples"] or "all"),
            f"{one['checkpoint']}, {one['split']}",
        )
        for one in rows
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    places = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells]
    return [f"{place}  {_verdict(one)}" for place, one in zip(places, rows, strict=True)]


def _verdict(one: Mapping[str, Any]) -> str:
    again = "" if one["recomputed"] == one["verdict"] else f", recomputed: {one['recomputed'] or 'no'}"
    return f"{one['verdict']}{again}"
