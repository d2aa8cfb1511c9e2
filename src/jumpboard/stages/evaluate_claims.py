"""`evaluate_claims`: the table `claims`, one verdict per claim and scope, by the rules of the run's config.

Reads the collected tables of all nets that have them; inputs are named by table and number. The runs expected in a
table are those of the cells that its rule runs on.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jumpboard.artefacts.job import Job, run_stage
from jumpboard.artefacts.tables import concatenate, write_table
from jumpboard.artefacts.verification import read_config
from jumpboard.claims.ledger import evaluate
from jumpboard.configuration.grid import Cell, cells
from jumpboard.configuration.selection import SECTIONS, block_of, cells_of
from jumpboard.schemas.betas import BETAS
from jumpboard.schemas.chain import CHAIN
from jumpboard.schemas.claims import CLAIMS
from jumpboard.schemas.covariance import COVARIANCE
from jumpboard.schemas.expansion import EXPANSION
from jumpboard.schemas.fits import FITS
from jumpboard.schemas.jumpboard import JUMPBOARD
from jumpboard.schemas.metrics import METRICS
from jumpboard.schemas.moments import MOMENTS
from jumpboard.schemas.routes import ROUTES
from jumpboard.schemas.signal import SIGNAL
from jumpboard.schemas.step_gains import STEP_GAINS
from jumpboard.schemas.widening import WIDENING

TABLES = (
    (METRICS, "train_baseline"),
    (SIGNAL, "measure_gradients"),
    (MOMENTS, "measure_gradients"),
    (COVARIANCE, "measure_gradients"),
    (JUMPBOARD, "expand_depth"),
    (STEP_GAINS, "expand_depth"),
    (EXPANSION, "expand_depth"),
    (WIDENING, "expand_width"),
    (ROUTES, "certify"),
    (CHAIN, "expand_chain"),
    (FITS, "train_baseline"),
    (BETAS, "expand_chain"),
)


def _expanded(rule: str, cell: Cell, config: Mapping[str, Any]) -> dict[str, Any]:
    """The checkpoint that a rule of expansions begins at; certificates are about what `expand_depth` began at."""
    told = "expand_depth" if rule == "certify" else rule
    block = block_of(told, cell, config) if told in SECTIONS else None
    return {"reference": block["reference"]} if block and "reference" in block else {}


def expected_cells(config: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """table -> the cells that a resolved config makes it of, as the ledger wants them."""
    grid = cells(config["grid"])
    return {
        schema.name: [cell.as_json() | _expanded(rule, cell, config) for cell in cells_of(rule, grid, config)]
        for schema, rule in TABLES
    }


def verdicts(resolved: Mapping[str, Any], sources: Mapping[str, Sequence[Path]]) -> list[dict[str, Any]]:
    """Rows of table `claims`; `sources` holds the collected tables by name, `resolved` is a run's `config.json`."""
    tables = {schema.name: concatenate(sources[schema.name], schema) for schema, _ in TABLES}
    return evaluate(resolved["claims"], expected_cells(resolved["config"]), tables)


def body(job: Job) -> None:
    resolved = read_config(job.inputs["config"])
    sources = {
        schema.name: [path for name, path in job.inputs.items() if name.rpartition("_")[0] == schema.name]
        for schema, _ in TABLES
    }
    job.seeds = tuple(sorted({seed for cell in cells(resolved["config"]["grid"]) for seed in cell.seeds}))
    write_table(job.outputs["claims"], CLAIMS, verdicts(resolved, sources), job.provenance())


if __name__ == "__main__":
    run_stage("evaluate_claims", body)
