"""`certify`: what is proved of a cell's expansions, by the paper's two routes and by tighter limits.

Writes the tables `routes` (both bounds on every expansion that began at a jumpboard, term by term) and `ladder` (from
these bounds to limits on the fixed pair of nets), for every seed that has the reference checkpoint, by bounded losses
over all training and test samples and the half of the fresh ones that no net has seen.
"""

from pathlib import Path

import torch

from jumpboard.artefacts import paths
from jumpboard.artefacts.job import Job, run_stage
from jumpboard.artefacts.tables import read_table, write_table
from jumpboard.data.samples import halves, load_samples, read_wanted
from jumpboard.data.splits import Moments, Splits
from jumpboard.expansion.reference import read_reference
from jumpboard.nets.registry import build_net
from jumpboard.schemas.card import CARD
from jumpboard.schemas.ladder import LADDER
from jumpboard.schemas.routes import ROUTES
from jumpboard.theory.certificates import Given, certificate_rows
from jumpboard.theory.expansions import read_groups
from jumpboard.theory.member import Row
from jumpboard.training.device import choose_device


def input_radius(card: Path, base: Splits) -> float | None:
    """The bound on the norm of inputs as nets take them: none where they are normalised, by moments that are measured
    or that move the bound."""
    channels = len(base.moments.mean)
    raw = base.moments == Moments((0.0,) * channels, (1.0,) * channels)
    radius: float | None = read_table(card, CARD).to_pylist()[0]["input_radius"]
    return radius if raw else None


def read_given(job: Job) -> Given:
    """The job's inputs, and device, seeds and packages entered into it.

    Raises InputError for files that are damaged or do not fit the parameters.
    """
    params, spec = job.params, job.params["certificates"]
    torch.set_num_threads(job.threads)
    device = choose_device(params["device"])
    sizes: dict[str, int | None] = {"train": params["samples"], "test": None}
    fresh = {"fresh": params["expansion"]["splits"]["fresh"]} if "fresh" in params["expansion"]["splits"] else {}
    splits = read_wanted({name: job.inputs[name] for name in ("base", *fresh)}, sizes | fresh)
    data = load_samples(splits, sizes | fresh, params["samples"], device)
    if fresh:
        data["fresh"] = halves(data["fresh"])[1]
    base = splits["base"]
    net = build_net(params["net"], params["depth"], params["width"], base.shape, base.classes)
    job.device, job.seeds = device.type, tuple(params["seeds"])
    job.packages = (*job.packages, "torch", "safetensors", *net.packages)
    return Given(
        cell={name: params[name] for name in paths.CELL_KEYS},
        net=net,
        reference=read_reference(job.inputs["checkpoints"], net, job.seeds, params["expansion"]["reference"], device),
        data=data,
        radius=input_radius(job.inputs["card"], base),
        caps=params["caps"],
        losses=spec["losses"],
        delta=spec["delta"],
        steps=params["expansion"]["steps"]["count"],
    )


def body(job: Job) -> None:
    given = read_given(job)
    rows: dict[str, list[Row]] = {"routes": [], "ladder": []}
    if given.reference.seeds:
        kinds = ("train", "population") if "fresh" in given.data else ("train",)
        for group in read_groups(job.inputs["expanded"], given.net, given.reference, kinds):
            for table, row in certificate_rows(given, group):
                rows[table].append(row)
    for schema in (ROUTES, LADDER):
        write_table(job.outputs[schema.name], schema, rows[schema.name], job.provenance())


if __name__ == "__main__":
    run_stage("certify", body)
