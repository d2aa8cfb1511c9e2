"""`evaluate_claims`: the table `claims`, one verdict per claim and scope, by the rules of the run's config."""

import json

from jumpboard.artefacts.job import Job, run_stage
from jumpboard.artefacts.tables import concatenate, write_table
from jumpboard.claims.ledger import evaluate
from jumpboard.configuration.grid import cells
from jumpboard.schemas.claims import CLAIMS
from jumpboard.schemas.metrics import METRICS


def body(job: Job) -> None:
    resolved = json.loads(job.inputs["config"].read_text(encoding="utf-8"))
    grid = [cell.as_json() for cell in cells(resolved["config"]["grid"])]
    metrics = [path for name, path in job.inputs.items() if name != "config"]
    job.seeds = tuple(sorted({seed for cell in grid for seed in cell["seeds"]}))
    rows = evaluate(resolved["claims"], grid, concatenate(metrics, METRICS))
    write_table(job.outputs["claims"], CLAIMS, rows, job.provenance())


if __name__ == "__main__":
    run_stage("evaluate_claims", body)
