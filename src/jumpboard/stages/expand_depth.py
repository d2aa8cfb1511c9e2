"""`expand_depth`: a new block at every site of a cell's trained nets, its jumpboards, and what training then attains.

Writes the tables `jumpboard` (gains of chosen steps, and of controls), `step_gains` (predicted and realised gains of
all steps) and `expansion` (all arms), for every seed that has reached the reference checkpoint. Losses of the table
`expansion` are over all samples of each split but fresh, whose first half the jumpboards of the kind population are
made from.
"""

from typing import Any

import torch

from jumpboard.artefacts import paths
from jumpboard.artefacts.checkpoints import read_checkpoint_header, read_member
from jumpboard.artefacts.job import Job, run_stage
from jumpboard.artefacts.provenance import config_digest
from jumpboard.artefacts.tables import write_table
from jumpboard.data.rows import DRAWN
from jumpboard.data.samples import load_samples
from jumpboard.data.splits import read_splits
from jumpboard.expansion.arms import Arms
from jumpboard.expansion.choice import Samples, halves
from jumpboard.expansion.contest import Contest, recipes
from jumpboard.expansion.records import jumpboard_rows, step_rows
from jumpboard.expansion.search import Grid, search
from jumpboard.nets.base import Leaves, Net, check_leaves
from jumpboard.nets.registry import build_net
from jumpboard.schemas.expansion import EXPANSION
from jumpboard.schemas.jumpboard import JUMPBOARD
from jumpboard.schemas.step_gains import STEP_GAINS
from jumpboard.training.device import choose_device


def read_references(job: Job, net: Net, checkpoint: str, device: torch.device) -> tuple[list[int], Leaves]:
    """The seeds that have the checkpoint, and their leaves side by side [G, ...]."""
    path = job.inputs["checkpoints"]
    records = read_checkpoint_header(path)["checkpoints"]
    seeds = [seed for seed in job.params["seeds"] if f"seed_{seed}/{checkpoint}" in records]
    members = [read_member(path, seed, checkpoint) for seed in seeds]
    for seed, member in zip(seeds, members, strict=True):
        check_leaves(net, member, f"{path}: seed_{seed}/{checkpoint}")
    names = members[0] if members else {}
    stacked = {name: torch.stack([torch.from_numpy(one[name]) for one in members]).to(device) for name in names}
    return seeds, stacked


def body(job: Job) -> None:
    params, spec = job.params, job.params["expansion"]
    cell = {name: params[name] for name in paths.CELL_KEYS}
    torch.set_num_threads(job.threads)
    device = choose_device(params["device"])
    job.device, job.seeds, job.packages = device.type, tuple(params["seeds"]), (*job.packages, "torch", "safetensors")

    splits = {name: read_splits(job.inputs[name]) for name in ("base", "fresh") if name in job.inputs}
    sizes = dict.fromkeys(DRAWN) | {name: size for name, size in spec["splits"].items() if name == "fresh"}
    data = load_samples(splits, sizes, params["samples"], device)
    net = build_net(params["net"], params["depth"], params["width"], splits["base"].shape, splits["base"].classes)
    job.packages = (*job.packages, *net.packages)
    seeds, leaves = read_references(job, net, spec["reference"], device)
    keys = [{**cell, "seed": seed} for seed in seeds]
    scratch = {round(place * net.depth) for place in spec["scratch"]}

    rows: dict[str, list[dict[str, Any]]] = {"jumpboard": [], "step_gains": [], "expansion": []}
    place = paths.filled(paths.CELL, cell)
    run = config_digest({"code": job.code, "params": params, "parents": job.parents(), "threads": job.threads})
    with Arms(job.root / paths.RESUME / job.stage / place, run, place) as arms:
        if seeds:
            boards = {}
            for found in search(net, leaves, seeds, Samples.of(data, spec["splits"]), Grid(**spec["steps"])):
                rows["jumpboard"] += jumpboard_rows(keys, found)
                rows["step_gains"] += step_rows(keys, found)
                boards[found.place.site] = {kind: found.jumpboard(kind) for kind in found.checks}
            if "fresh" in data:
                data["fresh"] = halves(data["fresh"])[1]
            recipe, longer = recipes(params["training"], params["baseline"])
            contest = Contest(net, leaves, keys, data, recipe, longer, arms)
            rows["expansion"] += contest.rows(boards, scratch)
        job.tier = arms.tier
        for schema in (JUMPBOARD, STEP_GAINS, EXPANSION):
            write_table(job.outputs[schema.name], schema, rows[schema.name], job.provenance())
        arms.clear()


if __name__ == "__main__":
    run_stage("expand_depth", body)
