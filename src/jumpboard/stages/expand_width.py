"""`expand_width`: every seed's net of a cell made wider without a change of its function, and trained.

Writes the table `widening` with the arms
    widened      all parameters of the widened net, for the steps of the expansion's recipe
    trained_on   the old net, by the same recipe on the same batches
    scratch      a net of the new width from its seed's initial weights, by the baseline's recipe for the steps of both
The optimiser begins anew in all: checkpoints hold none of its state. New weights come from the seed's stream of
inserted blocks.
"""

from jumpboard.artefacts.job import Job, run_stage
from jumpboard.artefacts.tables import write_table
from jumpboard.expansion.losses import loss_columns, split_losses
from jumpboard.expansion.outcomes import outcome
from jumpboard.expansion.setting import open_setting
from jumpboard.expansion.widening import largest_change, widen
from jumpboard.schemas.widening import WIDENING
from jumpboard.streams import BLOCK, generator


def body(job: Job) -> None:
    one, spec = open_setting(job), job.params["expansion"]
    net, leaves, seeds = one.net, one.reference.leaves, one.reference.seeds
    width = spec["factor"] * net.width
    wider, more = widen(net, leaves, width, [generator(seed, BLOCK, width) for seed in seeds])
    change = largest_change(net, leaves, wider, more, one.first("test", spec["splits"]["test"])[0])
    old = split_losses(net, leaves, one.data)
    rows = []
    with one.arms as arms:
        trainings = {
            "widened": arms.train("widened", wider, one.training, one.recipe, seeds, start=more),
            "trained_on": arms.train("trained_on", net, one.training, one.recipe, seeds, start=leaves),
            "scratch": arms.train("scratch", wider, one.training, one.scratch, seeds),
        }
        for arm, training in trainings.items():
            new = split_losses(training.net, training.layout.leaves(training.state.flat), one.data)
            for member, seed in enumerate(seeds):
                rows.append(
                    {
                        **one.cell,
                        "seed": seed,
                        "arm": arm,
                        "new_width": training.net.width,
                        "preserved": float(change[member]) if arm == "widened" else None,
                        **outcome(training, member),
                        **loss_columns("old", old, member),
                        **loss_columns("new", new, member),
                        "gain": float(old["test"][member] - new["test"][member]),
                    }
                )
        job.tier = arms.tier
        write_table(job.outputs["widening"], WIDENING, rows, job.provenance())
        arms.clear()


if __name__ == "__main__":
    run_stage("expand_width", body)
