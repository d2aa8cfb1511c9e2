"""`draw_figure`: one figure of a (data set, arch) as SVG and PNG, with the table that is plotted beside it."""

from jumpboard.artefacts.job import Job, run_stage
from jumpboard.artefacts.tables import read_table, write_table
from jumpboard.figures.registry import FIGURES, figure_module
from jumpboard.figures.style import save
from jumpboard.schemas.registry import table_schema


def body(job: Job) -> None:
    name = job.params["figure"]
    module = figure_module(name)
    source = read_table(job.inputs["table"], table_schema(FIGURES[name].table)).to_pylist()
    rows = module.plotted(source, job.params["dataset"], job.params["arch"])
    job.packages = (*job.packages, "matplotlib")
    write_table(job.outputs["table"], module.SCHEMA, rows, job.provenance())
    save(module.draw(rows), job.outputs["svg"], job.outputs["png"], module.CAPTION)


if __name__ == "__main__":
    run_stage("draw_figure", body)
