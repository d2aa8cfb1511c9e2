"""`draw_figure`: one figure of a (data set, arch) or of the run as SVG and PNG, with the plotted table beside it."""

from jumpboard.artefacts.job import Job, run_stage
from jumpboard.artefacts.tables import read_table, write_table
from jumpboard.figures.registry import figure_entry, figure_module
from jumpboard.figures.style import save
from jumpboard.schemas.registry import table_schema


def body(job: Job) -> None:
    name, net = job.params["figure"], {key: job.params[key] for key in job.params if key != "figure"}
    module = figure_module(name)
    source = read_table(job.inputs["table"], table_schema(figure_entry(name).table)).to_pylist()
    rows = module.plotted(source, **net)
    job.packages = (*job.packages, "matplotlib")
    write_table(job.outputs["table"], module.SCHEMA, rows, job.provenance())
    save(module.draw(rows), job.outputs["svg"], job.outputs["png"], module.CAPTION)


if __name__ == "__main__":
    run_stage("draw_figure", body)
