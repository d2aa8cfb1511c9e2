"""What a run cost and where it ran, from the records that its jobs left."""

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

from jumpboard.artefacts import paths
from jumpboard.artefacts.files import REMEDY
from jumpboard.errors import InputError

RECORDED = {
    **dict.fromkeys(("stage", "tier", "device", "machine", "system", "python"), str),
    **dict.fromkeys(("started", "wall_seconds", "cpu_seconds"), float),
    **dict.fromkeys(("peak_memory_bytes", "threads", "cores"), int),
    "outputs": list,
}


def whole_record(path: Path) -> dict[str, Any] | None:
    """A job's record; None where the file is not a whole one."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        whole = all(isinstance(record[name], kind) for name, kind in RECORDED.items())
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return dict(record) if whole else None


def read_records(results: Path) -> list[dict[str, Any]]:
    """All records below a results folder, in the order of their paths. Raises InputError for one that is not whole."""
    records = []
    for path in sorted((results / paths.RECORDS).rglob("*.json")):
        if path.name != paths.MANIFEST:
            record = whole_record(path)
            if record is None:
                raise InputError(f"{path}: not a whole record of a job; {REMEDY}")
            records.append(record)
    return records


def wall_minutes(records: list[dict[str, Any]]) -> float:
    """Minutes during which at least one job ran: pauses between two calls of a run do not count."""
    spans = sorted((float(record["started"]), float(record["wall_seconds"])) for record in records)
    seconds, until = 0.0, 0.0
    for start, length in spans:
        seconds += max(0.0, start + length - max(start, until))
        until = max(until, start + length)
    return seconds / 60


class Cost(NamedTuple):
    """What the jobs of a stage took together, in core-seconds, and the most that one of them held, in MB."""

    stage: str
    jobs: int
    seconds: float
    memory: float


def stage_costs(records: list[dict[str, Any]]) -> list[Cost]:
    """The cost of each stage, in the order of the records, and last that of `all`."""
    stages: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        stages[record["stage"]].append(record)
    return [
        Cost(
            stage,
            len(jobs),
            sum(job["cpu_seconds"] for job in jobs),
            max((job["peak_memory_bytes"] for job in jobs), default=0) / 1e6,
        )
        for stage, jobs in [*stages.items(), ("all", records)]
    ]


def compute_table(records: list[dict[str, Any]]) -> str:
    """Markdown: jobs, core-seconds and peak memory of each stage."""
    lines = ["| stage | jobs | core-seconds | peak memory, MB |", "|---|---|---|---|"]
    *stages, whole = stage_costs(records)
    lines += [f"| `{one.stage}` | {one.jobs} | {one.seconds:.0f} | {one.memory:.0f} |" for one in stages]
    lines.append(f"| all | {whole.jobs} | {whole.seconds:.0f} | |")
    return "\n".join(lines)


SETTING = ("system", "machine", "cores", "device", "threads", "python")


def settings(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Kinds of machine, with the threads and the Python that jobs had there, and how many `jobs` each one ran."""
    counts = Counter(tuple(record[name] for name in SETTING) for record in records)
    return [dict(zip(SETTING, kind, strict=True)) | {"jobs": counts[kind]} for kind in sorted(counts)]


def machine(records: list[dict[str, Any]]) -> str:
    """The machine that a run was made on, in words."""
    one = records[0]
    devices = sorted({record["device"] for record in records})
    return f"{one['system']} {one['machine']}, {one['cores']} cores, {' and '.join(devices)}"
