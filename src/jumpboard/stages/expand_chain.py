"""`expand_chain`: every seed's net of a cell with one more block at the same site again and again, k = 0..length.

Writes the table `chain`: losses, and the signal at the site on fresh samples, or on test samples where there are none,
with the features that `measure_gradients` has there; and the checkpoints `k_<k>`, whose step in the file's header is k:
k = 0 descends from the reference, every other one from its predecessor.
"""

from collections.abc import Mapping
from typing import Any

import torch

from jumpboard.artefacts.checkpoints import Member, write_checkpoints
from jumpboard.artefacts.job import Job, run_stage
from jumpboard.artefacts.tables import write_table
from jumpboard.expansion.arms import Arms
from jumpboard.expansion.chain import Link, extended
from jumpboard.expansion.insertion import insert_at
from jumpboard.expansion.losses import loss_columns, mean_losses
from jumpboard.expansion.next_signal import NextSignal, next_signals
from jumpboard.expansion.setting import Setting, open_setting
from jumpboard.measure.features import draw_features
from jumpboard.schemas.chain import CHAIN
from jumpboard.streams import MEASUREMENT, generator


def signal_columns(signal: NextSignal, split: str) -> dict[str, Any]:
    """The columns of `chain` on the signal."""
    return {
        "signal_feature_sq": signal.interval.estimate,
        "signal_feature_sq_low": signal.interval.low,
        "signal_feature_sq_high": signal.interval.high,
        "signal_feature_sq_plugin": signal.plug_in,
        "signal_n": signal.n,
        "signal_split": split,
        "signal_z": signal.z,
    }


Members = dict[tuple[int, str], tuple[int, Member]]


def links(one: Setting, spec: Mapping[str, Any], arms: Arms) -> tuple[list[dict[str, Any]], Members]:
    """Rows and checkpoints of the members that there are."""
    site, seeds, reference = round(spec["site"] * one.net.depth), one.reference.seeds, one.reference
    split = "fresh" if "fresh" in one.data else "test"
    unseen = one.first(split, spec["splits"][split])
    units = one.net.sites()[site].units
    draws = [draw_features(units, generator(seed, MEASUREMENT, site)) for seed in seeds]
    weights = torch.stack(draws).to(unseen[0].device)
    form = insert_at(one.net, reference.leaves, [site] * len(seeds), seeds)[0].insert_form
    link = Link.reference(one.net, reference.leaves, len(seeds))
    rows: list[dict[str, Any]] = []
    members: Members = {}
    for k in range(spec["length"] + 1):
        losses = mean_losses(link.net, link.leaves, one.data)
        signals = next_signals(link.net, link.leaves, site, weights, *unseen)
        for member, seed in enumerate(seeds):
            rows.append(
                {
                    **one.cell,
                    "seed": seed,
                    "k": k,
                    "site": site,
                    "insert_form": form,
                    "status": link.status[member],
                    "branch": link.branch[member],
                    "steps": link.steps[member],
                    "parameters": link.net.parameter_count(),
                    **loss_columns("net", losses[member]),
                    **signal_columns(signals[member], split),
                }
            )
            leaves = {name: leaf[member].cpu().numpy() for name, leaf in link.leaves.items()}
            members[seed, f"k_{k}"] = (k, leaves)
        if k < spec["length"]:
            count = spec["splits"]["train"]
            link = extended(link, site, seeds, spec["steps"], count, one.training, one.recipe, arms)
    return rows, members


def body(job: Job) -> None:
    one = open_setting(job)
    with one.arms as arms:
        rows, members = links(one, job.params["expansion"], arms) if one.reference.seeds else ([], {})
        job.tier = arms.tier
        write_table(job.outputs["chain"], CHAIN, rows, job.provenance())
        ancestors = dict(zip(one.reference.seeds, one.reference.digests, strict=True))
        write_checkpoints(job.outputs["checkpoints"], members, ancestors, job.provenance())
        arms.clear()


if __name__ == "__main__":
    run_stage("expand_chain", body)
