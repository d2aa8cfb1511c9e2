"""`write_manifest`: SHA-256 and size of every table, checkpoint and figure of the run, and of every record.

`manifest.json` lists the artefacts by place (results, figures) and path; `records/manifest.json` lists the records and
`manifest.json` itself, so that files without children are covered too.
"""

from pathlib import Path
from typing import Any

from jumpboard.artefacts import paths
from jumpboard.artefacts.files import sha256_of
from jumpboard.artefacts.job import Job, run_stage, write_json
from jumpboard.artefacts.verification import read_config
from jumpboard.configuration.load import resolve
from jumpboard.configuration.plan import Plan


def entry(path: Path) -> dict[str, Any]:
    """What a manifest says of a file."""
    return {"sha256": sha256_of(path), "bytes": path.stat().st_size}


def body(job: Job) -> None:
    resolved = read_config(job.inputs["config"])
    plan = Plan(resolve(resolved["config"], resolved["datasets"], resolved["claims"]))
    places = {"results": job.root, "figures": Path(resolved["config"]["figures"])}
    listed: dict[str, dict[str, Any]] = {place: {} for place in places}
    for artefact in plan.artefacts():
        listed[artefact.place][artefact.path] = entry(places[artefact.place] / artefact.path)
    write_json(job.outputs["manifest"], listed)

    records = job.root / paths.RECORDS
    found = sorted(path for path in records.rglob("*.json") if path.name != paths.MANIFEST)
    listed_records = {path.relative_to(job.root).as_posix(): entry(path) for path in found}
    listed_records[paths.MANIFEST] = entry(job.outputs["manifest"])
    write_json(job.outputs["records"], {"results": listed_records})


if __name__ == "__main__":
    run_stage("write_manifest", body, recorded=False)
