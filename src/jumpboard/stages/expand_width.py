"""`expand_width`: every seed's net of a cell made wider without a change of its function, and trained.

Writes the table `widening` with the arms
    widened      all parameters of the widened net, for the steps of the expansion's recipe
    trained_on   the old net, by the same recipe on the same batches
    scratch      a net of the new width from its seed's initial weights, by the baseline's recipe for the steps of both
The optimiser begins anew in all: checkpoints hold none of its state. New weights come from the seed's stream of
inserted blocks.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from jumpboard.artefacts.job import Job, run_stage
from jumpboard.artefacts.tables import write_table
from jumpboard.expansion.arms import Arms
from jumpboard.expansion.losses import loss_columns, mean_losses
from jumpboard.expansion.outcomes import outcome
from jumpboard.expansion.setting import Setting, open_setting
from jumpboard.expansion.widening import largest_change, widen
from jumpboard.schemas.widening import WIDENING
from jumpboard.streams import BLOCK, generator


def arm_rows(one: Setting, spec: Mapping[str, Any], arms: Arms) -> Iterator[dict[str, Any]]:
    """Rows of all arms of the members that there are."""
    net, leaves, seeds = one.net, one.reference.leaves, one.reference.seeds
    width = spec["factor"] * net.width
    wider, more = widen(net, leaves, width, [generator(seed, BLOCK, width) for seed in seeds])
    change = largest_change(net, leaves, wider, more, one.first("test", spec["splits"]["test"])[0])
    old = mean_losses(net, leaves, one.data)
    trainings = {
        "widened": arms.train("widened", wider, one.training, one.recipe, seeds, start=more),
        "trained_on": arms.train("trained_on", net, one.training, one.recipe, seeds, start=leaves),
        "scratch": arms.train("scratch", wider, one.training, one.scratch, seeds),
    }
    for arm, training in trainings.items():
        new = mean_losses(training.net, training.layout.leaves(training.state.flat), one.data)
        for member, seed in enumerate(seeds):
            yield {
                **one.cell,
                "seed": seed,
                "arm": arm,
                "new_width": training.net.width,
                "preserved": float(change[member]) if arm == "widened" else None,
                **outcome(training, member),
                **loss_columns("old", old[member]),
                **loss_columns("new", new[member]),
                "gain": old[member]["test"] - new[member]["test"],
            }


def body(job: Job) -> None:
    one = open_setting(job)
    with one.arms as arms:
        rows = list(arm_rows(one, job.params["expansion"], arms)) if one.reference.seeds else []
        job.tier = arms.tier
        write_table(job.outputs["widening"], WIDENING, rows, job.provenance())
        arms.clear()


if __name__ == "__main__":
    run_stage("expand_width", body)
