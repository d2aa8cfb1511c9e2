"""`prepare_dataset`: the splits of one data set, and its card.

Writes `splits` (raw rows, fixed splits, the moments that normalise them) and the table `card`.
"""

from importlib.metadata import version

from jumpboard.artefacts.job import Job, run_stage
from jumpboard.artefacts.tables import write_table
from jumpboard.data.card import card_rows
from jumpboard.data.draw import draw_rows
from jumpboard.data.splits import read_splits, write_splits
from jumpboard.schemas.card import CARD


def body(job: Job) -> None:
    spec = job.params
    job.packages = (*job.packages, spec["package"])
    job.seeds = (spec["seed"],)
    rows = draw_rows(spec)
    moments = read_splits(job.inputs["base"]).moments if "base" in job.inputs else None
    write_splits(job.outputs["splits"], rows, spec, job.provenance(), moments)
    card = card_rows(spec["dataset"], rows, spec, version(spec["package"]))
    write_table(job.outputs["card"], CARD, card, job.provenance())


if __name__ == "__main__":
    run_stage("prepare_dataset", body)
