"""`describe_dataset`: the table `card` of a data set, from its splits and the words of its inventory entry.

A rule of its own, so that another word for a source or a licence leaves the splits, and all that was trained on them,
as they are.
"""

from jumpboard.artefacts.job import Job, run_stage
from jumpboard.artefacts.tables import read_header, write_table
from jumpboard.data.card import card_rows, known_law
from jumpboard.data.splits import read_splits
from jumpboard.schemas.card import CARD


def body(job: Job) -> None:
    path = job.inputs["splits"]
    splits = read_splits(path, scratch=job.outputs["card"].parent)
    made_with = read_header(path)["versions"][job.params["package"]]
    rows = card_rows(job.params["dataset"], splits, job.params, made_with, known_law(job.params))
    write_table(job.outputs["card"], CARD, rows, job.provenance())


if __name__ == "__main__":
    run_stage("describe_dataset", body)
