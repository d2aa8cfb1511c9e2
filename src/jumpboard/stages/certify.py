"""`certify`: what is proved of a cell's expansions, by the paper's two routes and by tighter limits.

Writes the tables `routes` (both bounds on every expansion that began at a jumpboard, term by term) and `ladder` (from
these bounds to limits on the fixed pair of nets), for every seed that has the reference checkpoint, by bounded losses
over all training and test samples and the half of the fresh ones that no net has seen.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from jumpboard.artefacts import paths
from jumpboard.artefacts.job import Job, run_stage
from jumpboard.artefacts.tables import read_table, write_table
from jumpboard.data.samples import Tensors, load_samples, read_wanted
from jumpboard.expansion.choice import halves
from jumpboard.expansion.reference import Reference, read_reference
from jumpboard.nets.base import Net
from jumpboard.nets.registry import build_net
from jumpboard.schemas.card import CARD
from jumpboard.schemas.ladder import LADDER
from jumpboard.schemas.routes import ROUTES
from jumpboard.theory.coverage import covered, measured_norm_constant
from jumpboard.theory.expansions import ARMS, Group, evaluate, read_groups, repeated
from jumpboard.theory.ladder_rows import board_rung, pair_rungs, route_rungs
from jumpboard.theory.losses import LOSSES
from jumpboard.theory.member import Class, Member, Row
from jumpboard.theory.route_rows import route_rows
from jumpboard.training.device import choose_device


def read_data(job: Job, device: torch.device) -> tuple[dict[str, Tensors], Net]:
    """All samples of the splits that losses are over, of the fresh ones the second half, and the net of the cell."""
    params, fresh = job.params, job.params["expansion"]["splits"].get("fresh")
    sizes: dict[str, int | None] = {"train": params["samples"], "test": None}
    sizes |= {"fresh": fresh} if fresh else {}
    splits = read_wanted({name: job.inputs[name] for name in ("base", "fresh") if name in job.inputs}, sizes)
    data = load_samples(splits, sizes, params["samples"], device)
    if "fresh" in data:
        data["fresh"] = halves(data["fresh"])[1]
    base = splits["base"]
    return data, build_net(params["net"], params["depth"], params["width"], base.shape, base.classes)


def classes_of(group: Group, job: Job, reference: Reference, x: torch.Tensor, names: list[str]) -> list[Class | str]:
    """The class of each member, or why there is none."""
    radius = read_table(job.inputs["card"], CARD).to_pylist()[0]["input_radius"]
    cover = covered(group.net, radius)
    if isinstance(cover, str):
        return [cover] * len(names)
    constants = measured_norm_constant(cover.base, reference.leaves, x)
    caps = job.params["caps"]
    return [
        Class(
            cover,
            group.sites[member // len(constants)],
            group.weights(member, caps, name),
            "powers" if caps is None else "caps",
            float(constants[member % len(constants)]),
        )
        for member, name in enumerate(names)
    ]


def expansion_rows(group: Group, job: Job, reference: Reference, data: Mapping[str, Tensors], old: Any) -> Iterator[tuple[str, Row]]:
    """Rows of both tables, each with its table's name."""
    spec, seeds = job.params["certificates"], reference.seeds
    cell = {name: job.params[name] for name in paths.CELL_KEYS}
    keys = [{**cell, "seed": seed, "site": site} for site in group.sites for seed in seeds]
    names = [f"seed {key['seed']}, site {key['site']}" for key in keys]
    classes = classes_of(group, job, reference, data["test"][0], names)
    lost = {name: evaluate(group.net, kept.leaves, data, spec["losses"]) for name, kept in group.kept.items()}
    sizes = {split: len(y) for split, (_, y) in data.items()}
    for loss in spec["losses"]:
        before = repeated(old[loss], len(group.sites))
        boards = {name.removeprefix("jumpboard_"): one[loss] for name, one in lost.items() if name not in ARMS}
        bound = LOSSES[loss].bound(group.net.classes)
        for member, (key, found) in enumerate(zip(keys, classes, strict=True)):
            for arm in ARMS:
                place = {**key, "arm": arm, "loss": loss}
                one = Member(place, member, group.net.insert_form, before, boards, lost[arm][loss], spec["delta"], bound)
                routes = list(route_rows(one, found, LOSSES[loss], sizes))
                yield from (("routes", row) for row, _ in routes)
                yield from (("ladder", row) for row in (*route_rungs(one, routes, sizes["train"]), *pair_rungs(one)))
            yield "ladder", board_rung(one, job.params["expansion"]["steps"]["count"])


def body(job: Job) -> None:
    params = job.params
    torch.set_num_threads(job.threads)
    device = choose_device(params["device"])
    job.device, job.seeds = device.type, tuple(params["seeds"])
    data, net = read_data(job, device)
    job.packages = (*job.packages, "torch", "safetensors", *net.packages)
    reference = read_reference(job.inputs["checkpoints"], net, job.seeds, params["expansion"]["reference"], device)
    rows: dict[str, list[Row]] = {"routes": [], "ladder": []}
    if reference.seeds:
        old = evaluate(net, reference.leaves, data, params["certificates"]["losses"])
        kinds = ("train", "population") if "fresh" in data else ("train",)
        for group in read_groups(job.inputs["expanded"], net, reference, kinds):
            for table, row in expansion_rows(group, job, reference, data, old):
                rows[table].append(row)
    for schema in (ROUTES, LADDER):
        write_table(job.outputs[schema.name], schema, rows[schema.name], job.provenance())


if __name__ == "__main__":
    run_stage("certify", body)
