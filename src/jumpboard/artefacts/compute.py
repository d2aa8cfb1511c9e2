"""What a run cost, from the records that its jobs left."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from jumpboard.artefacts import paths


def read_records(results: Path) -> list[dict[str, Any]]:
    """All records below a results folder, in the order of their paths."""
    found = sorted((results / paths.RECORDS).rglob("*.json"))
    return [json.loads(path.read_text(encoding="utf-8")) for path in found if path.name != paths.MANIFEST]


def wall_minutes(records: list[dict[str, Any]]) -> float:
    """Minutes during which at least one job ran: pauses between two calls of a run do not count."""
    spans = sorted((float(record["started"]), float(record["wall_seconds"])) for record in records)
    seconds, until = 0.0, 0.0
    for start, length in spans:
        seconds += max(0.0, start + length - max(start, until))
        until = max(until, start + length)
    return seconds / 60


def compute_table(records: list[dict[str, Any]]) -> str:
    """Markdown: jobs, core-seconds and peak memory of each stage."""
    stages: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        stages[record["stage"]].append(record)
    lines = ["| stage | jobs | core-seconds | peak memory, MB |", "|---|---|---|---|"]
    for stage, jobs in stages.items():
        seconds = sum(job["cpu_seconds"] for job in jobs)
        memory = max(job["peak_memory_bytes"] for job in jobs) / 1e6
        lines.append(f"| `{stage}` | {len(jobs)} | {seconds:.0f} | {memory:.0f} |")
    total = sum(record["cpu_seconds"] for record in records)
    lines.append(f"| all | {len(records)} | {total:.0f} | |")
    return "\n".join(lines)


def machine(records: list[dict[str, Any]]) -> str:
    """The machine that a run was made on, in words."""
    one = records[0]
    devices = sorted({record["device"] for record in records})
    return f"{one['system']} {one['machine']}, {one['cores']} cores, {' and '.join(devices)}"
