"""`collect`: one table over all cells of a (data set, arch), from the cells' own tables.

The cells are those of `config.json`; each must be there, with rows of its own alone.
"""

from pathlib import Path
from typing import Any

from jumpboard.artefacts import paths
from jumpboard.artefacts.files import REMEDY
from jumpboard.artefacts.job import Job, run_stage
from jumpboard.artefacts.tables import Schema, read_table, write_table
from jumpboard.artefacts.verification import read_config
from jumpboard.configuration.grid import Cell, cells
from jumpboard.configuration.selection import cells_of
from jumpboard.errors import InputError
from jumpboard.schemas.registry import table_schema


def own_rows(path: Path, schema: Schema, cell: Cell) -> list[dict[str, Any]]:
    """The rows of a cell's table. Raises InputError, naming the file, for rows of another cell."""
    rows: list[dict[str, Any]] = read_table(path, schema).to_pylist()
    for row in rows:
        found = tuple(row[name] for name in paths.CELL_KEYS)
        if found != cell.key:
            names = ("/".join(map(str, key)) for key in (found, cell.key))
            raise InputError(f"{path}: holds rows of cell {', not of '.join(names)}; {REMEDY}")
    return rows


def body(job: Job) -> None:
    rule, dataset, arch = (job.params[name] for name in ("rule", "dataset", "arch"))
    schema = table_schema(job.params["table"])
    config = read_config(job.inputs["config"])["config"]
    own = [cell for cell in cells(config["grid"]) if (cell.dataset, cell.arch) == (dataset, arch)]
    chosen = cells_of(rule, own, config)
    pattern = paths.cell_table(rule, schema.name)
    sources = [job.root / paths.filled(pattern, cell.as_json()) for cell in chosen]
    rows = [row for path, cell in zip(sources, chosen, strict=True) for row in own_rows(path, schema, cell)]
    job.inputs = {path.as_posix(): path for path in sources}
    job.seeds = tuple(sorted({seed for cell in chosen for seed in cell.seeds}))
    write_table(job.outputs["table"], schema, rows, job.provenance())


if __name__ == "__main__":
    run_stage("collect", body)
