"""`prepare_dataset`: the splits of one data set: raw rows, fixed splits, the moments that normalise them."""

from jumpboard.artefacts.downloads import local_copy
from jumpboard.artefacts.job import Job, run_stage
from jumpboard.data.draw import draw_rows
from jumpboard.data.splits import given_moments, read_splits, write_splits


def body(job: Job) -> None:
    spec, splits = job.params, job.outputs["splits"]
    job.packages = (*job.packages, spec["package"])
    job.seeds = (spec["seed"],)
    base = read_splits(job.inputs["base"], wanted={}).moments if "base" in job.inputs else None
    rows = draw_rows(spec, local_copy(spec["dataset"], job.source), splits.parent)
    write_splits(splits, rows, spec, job.provenance(), base or given_moments(spec))


if __name__ == "__main__":
    run_stage("prepare_dataset", body)
