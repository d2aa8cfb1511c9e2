"""`evaluate_claims`: the table `claims`, one verdict per claim and scope, by the rules of the run's config.

Reads the collected tables `metrics`, `signal`, `moments` and `covariance` of all nets that have them; inputs are named
by table and number. The runs expected in a table are those of the cells that its rule runs on.
"""

from jumpboard.artefacts.job import Job, run_stage
from jumpboard.artefacts.tables import concatenate, write_table
from jumpboard.artefacts.verification import read_config
from jumpboard.claims.ledger import evaluate
from jumpboard.configuration.grid import cells
from jumpboard.configuration.selection import cells_of
from jumpboard.schemas.claims import CLAIMS
from jumpboard.schemas.covariance import COVARIANCE
from jumpboard.schemas.metrics import METRICS
from jumpboard.schemas.moments import MOMENTS
from jumpboard.schemas.signal import SIGNAL

TABLES = (
    (METRICS, "train_baseline"),
    (SIGNAL, "measure_gradients"),
    (MOMENTS, "measure_gradients"),
    (COVARIANCE, "measure_gradients"),
)


def body(job: Job) -> None:
    resolved = read_config(job.inputs["config"])
    grid = cells(resolved["config"]["grid"])
    expected, tables = {}, {}
    for schema, rule in TABLES:
        expected[schema.name] = [cell.as_json() for cell in cells_of(rule, grid, resolved["config"])]
        own = [path for name, path in job.inputs.items() if name.rpartition("_")[0] == schema.name]
        tables[schema.name] = concatenate(own, schema)
    job.seeds = tuple(sorted({seed for cell in grid for seed in cell.seeds}))
    write_table(job.outputs["claims"], CLAIMS, evaluate(resolved["claims"], expected, tables), job.provenance())


if __name__ == "__main__":
    run_stage("evaluate_claims", body)
