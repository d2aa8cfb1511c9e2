"""`prepare_fresh`: further samples of a data set's law, from a seed of their own, normalised as the data set is."""

from jumpboard.artefacts.job import Job, run_stage
from jumpboard.data.draw import draw_fresh
from jumpboard.data.splits import read_splits, write_splits


def body(job: Job) -> None:
    spec = job.params
    job.packages = (*job.packages, spec["package"])
    job.seeds = (spec["fresh"]["seed"],) if "fresh" in spec else ()
    base = read_splits(job.inputs["base"], wanted={}).moments
    rows = {"fresh": draw_fresh(spec)}
    write_splits(job.outputs["rows"], rows, spec, job.provenance(), base)


if __name__ == "__main__":
    run_stage("prepare_fresh", body)
