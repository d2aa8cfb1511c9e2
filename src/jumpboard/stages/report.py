"""`report`: the finished run on one page, with all figures and plotted tables, as one archive.

    report.zip/report/    index.html    figures/    claims.parquet    config.json

Checks the run against its manifests; then claims come first, figures by paper, config, environment, and what it cost by
the records. The page loads nothing from elsewhere and runs no script; the same run gives the same bytes. The archive is
made of what the manifests list, is listed in none, and no rule reads it.
"""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, StrictUndefined

from jumpboard.artefacts import paths
from jumpboard.artefacts.archive import write_zip
from jumpboard.artefacts.compute import read_records, settings, stage_costs, wall_minutes
from jumpboard.artefacts.files import sha256_of
from jumpboard.artefacts.job import Job, run_stage
from jumpboard.artefacts.tables import read_header, read_table
from jumpboard.artefacts.verification import check_whole, read_config, read_manifest
from jumpboard.report.claims import claims_by_paper, verdicts_on_nets
from jumpboard.report.pictures import TABLE, pictures
from jumpboard.schemas.claims import CLAIMS

FOLDER = "report"


def versions(tables: Iterable[Path]) -> dict[str, list[str]]:
    """package -> its versions in the headers of the given tables."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in tables:
        for package, version in read_header(path)["versions"].items():
            found[package].add(version)
    return {package: sorted(found[package]) for package in sorted(found)}


def page(template: Path, contents: dict[str, Any]) -> str:
    """The template filled in; whatever it is given is text and never markup."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(template.read_text(encoding="utf-8")).render(contents)


def body(job: Job) -> None:
    results, figures = job.root, Path(job.params["figures"])
    check_whole(results, figures)
    manifest, resolved, records = (
        read_manifest(results / paths.MANIFEST),
        read_config(results / paths.CONFIG),
        read_records(results),
    )
    rows = read_table(results / paths.CLAIMS, CLAIMS).to_pylist()
    shown = pictures(figures, manifest["figures"], manifest["results"], resolved["claims"])
    places = {"results": results, "figures": figures}
    tables = [places[place] / name for place in places for name in manifest[place] if name.endswith(TABLE)]
    contents = {
        "claims": claims_by_paper(resolved["claims"], rows),
        "verdicts": verdicts_on_nets(rows),
        "pictures": shown,
        "config": yaml.safe_dump(resolved["config"], width=100, allow_unicode=True),
        "datasets": resolved["datasets"],
        "versions": versions(tables),
        "settings": settings(records),
        "costs": stage_costs(records),
        "minutes": wall_minutes(records),
        "run": sha256_of(results / paths.MANIFEST),
    }
    archive = {f"figures/{name}": (figures / name).read_bytes() for name in manifest["figures"]}
    for name in (paths.CLAIMS, paths.CONFIG):
        archive[Path(name).name] = (results / name).read_bytes()
    archive["index.html"] = page(job.inputs["page"], contents).encode()
    write_zip(job.outputs["report"], {f"{FOLDER}/{name}": content for name, content in archive.items()})


if __name__ == "__main__":
    run_stage("report", body, recorded=False)
