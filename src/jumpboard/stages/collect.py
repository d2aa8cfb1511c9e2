"""`collect`: one table over all cells of a (data set, arch), from the cells' own tables.

The cells are those of `config.json`; each must be there.
"""

from jumpboard.artefacts import paths
from jumpboard.artefacts.job import Job, run_stage
from jumpboard.artefacts.tables import concatenate, write_table
from jumpboard.artefacts.verification import read_config
from jumpboard.configuration.grid import cells
from jumpboard.configuration.selection import cells_of
from jumpboard.schemas.registry import table_schema


def body(job: Job) -> None:
    rule, dataset, arch = (job.params[name] for name in ("rule", "dataset", "arch"))
    schema = table_schema(job.params["table"])
    config = read_config(job.inputs["config"])["config"]
    own = [cell for cell in cells(config["grid"]) if (cell.dataset, cell.arch) == (dataset, arch)]
    chosen = cells_of(rule, own, config)
    pattern = paths.cell_table(rule, schema.name)
    sources = [job.root / paths.filled(pattern, cell.as_json()) for cell in chosen]
    job.inputs = {path.as_posix(): path for path in sources}
    job.seeds = tuple(sorted({seed for cell in chosen for seed in cell.seeds}))
    write_table(job.outputs["table"], schema, concatenate(sources, schema), job.provenance())


if __name__ == "__main__":
    run_stage("collect", body)
