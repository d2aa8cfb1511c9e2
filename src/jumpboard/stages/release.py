"""`release`: the finished run as it is tracked and shown.

Checks the run against its manifests, copies its tables, config, manifests and records (no checkpoints, no splits) to
`<results>/released/` and its figures, with PDFs, to `<figures>/released/`, and writes the claims table, the cost and
the expected numbers into README.md and the head of config/config.yaml.
"""

import json
import shutil
from collections import defaultdict
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from jumpboard.artefacts import paths
from jumpboard.artefacts.compute import compute_table, machine, read_records, wall_minutes
from jumpboard.artefacts.generated import replace_block
from jumpboard.artefacts.job import Job, run_stage
from jumpboard.artefacts.tables import read_header, read_table
from jumpboard.artefacts.verification import NOT_SHIPPED, check_whole, read_config, read_manifest
from jumpboard.claims.readme_table import readme_table
from jumpboard.configuration.load import load_files
from jumpboard.configuration.validation import checkout
from jumpboard.errors import InputError
from jumpboard.figures.registry import figure_module
from jumpboard.figures.style import save_pdf
from jumpboard.schemas.claims import CLAIMS
from jumpboard.schemas.metrics import METRICS


def copy_run(results: Path, figures: Path) -> None:
    """Copy what is tracked of a run to the `released` folders, replacing what they held."""
    manifest = read_manifest(results / paths.MANIFEST)
    shipped = [name for name in manifest["results"] if not name.startswith(NOT_SHIPPED)]
    shipped += [paths.MANIFEST, f"{paths.RECORDS}/{paths.MANIFEST}"]
    shipped += list(read_manifest(results / paths.RECORDS / paths.MANIFEST)["results"])
    for root, names in ((results, shipped), (figures, list(manifest["figures"]))):
        partial, released = root / f".{paths.RELEASED}.partial", root / paths.RELEASED
        shutil.rmtree(partial, ignore_errors=True)
        for name in names:
            (partial / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / name, partial / name)
        shutil.rmtree(released, ignore_errors=True)
        partial.rename(released)


def draw_pdfs(figures: Path) -> None:
    """Beside each released figure its PDF, drawn again from the plotted table."""
    for table in sorted((figures / paths.RELEASED).rglob("*.parquet")):
        module = figure_module(read_header(table)["schema"])
        save_pdf(module.draw(read_table(table, module.SCHEMA).to_pylist()), table.with_suffix(".pdf"))


def expected_numbers(rows: list[dict[str, Any]], minutes: float, hardware: str) -> str:
    """Comment lines for the head of the config: what its smallest and largest nets attain, and what it took."""
    lines = [f"# Released run: {minutes:.0f} minutes on {hardware}. Final nets, mean and sd over seeds:"]
    cells: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["checkpoint"] == "final":
            cells[tuple(row[name] for name in paths.CELL_KEYS)].append(row)
    for net in dict.fromkeys(key[:2] for key in cells):
        own = sorted((key for key in cells if key[:2] == net), key=lambda key: (key[2] * key[3] ** 2, key[4]))
        for key in (own[0], own[-1]):
            seeds = cells[key]
            values = [
                f"{name.replace('_', ' ')} {mean(row[name] for row in seeds):.3f}"
                + (f" +- {stdev(row[name] for row in seeds):.3f}" if len(seeds) > 1 else "")
                for name in ("test_loss", "test_accuracy")
            ]
            size = f"depth {key[2]}, width {key[3]}, {key[4]} samples"
            lines.append(f"#   {'/'.join(net)}, {size}: {', '.join(values)}, n = {len(seeds)}")
    return "\n".join(lines)


def check_default(results: Path) -> None:
    """Raise InputError for a run of any other config: its numbers would replace those that the README speaks of."""
    default = load_files([checkout() / "config" / "config.yaml"]).as_json()
    if read_config(results / paths.CONFIG) != json.loads(json.dumps(default)):
        raise InputError(
            f"{results / paths.CONFIG}: not the config of config/config.yaml, the only one that is released"
        )


def body(job: Job) -> None:
    results, figures = job.root, Path(job.params["figures"])
    check_default(results)
    check_whole(results, figures)
    copy_run(results, figures)
    draw_pdfs(figures)
    records = read_records(results)
    listed = read_manifest(results / paths.MANIFEST)["results"]
    collected = [results / name for name in sorted(listed) if name.startswith(f"collect/{METRICS.name}/")]
    metrics = [row for path in collected for row in read_table(path, METRICS).to_pylist()]
    claims = read_table(results / paths.CLAIMS, CLAIMS).to_pylist()
    replace_block(job.outputs["readme"], "claims", readme_table(claims))
    cost = f"{wall_minutes(records):.0f} minutes on {machine(records)}:\n\n{compute_table(records)}"
    replace_block(job.outputs["readme"], "cost", cost)
    numbers = expected_numbers(metrics, wall_minutes(records), machine(records))
    replace_block(job.outputs["config"], "expected", numbers)


if __name__ == "__main__":
    run_stage("release", body, recorded=False)
