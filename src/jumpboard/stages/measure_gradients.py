"""`measure_gradients`: activation gradients of a cell's trained nets at all sites, in one pass per net and split.

Writes the tables `signal`, `moments`, `covariance` (pooled rows and their permuted null) and `correlations` (upper
triangles for the heat maps), for every seed and every configured checkpoint that the seed has reached.
"""

from collections import defaultdict
from typing import Any

import torch

from jumpboard.artefacts import paths
from jumpboard.artefacts.checkpoints import read_checkpoint_header, read_member
from jumpboard.artefacts.job import Job, run_stage
from jumpboard.artefacts.tables import write_table
from jumpboard.data.samples import Tensors, load_samples, read_wanted
from jumpboard.measure.features import draw_features
from jumpboard.measure.records import correlation_rows, covariance_row, moments_row, signal_row
from jumpboard.measure.sites import measure_sites
from jumpboard.nets.base import Leaves, Net, check_leaves
from jumpboard.nets.registry import build_net
from jumpboard.schemas.correlations import CORRELATIONS
from jumpboard.schemas.covariance import COVARIANCE
from jumpboard.schemas.moments import MOMENTS
from jumpboard.schemas.signal import SIGNAL
from jumpboard.streams import MEASUREMENT, generator
from jumpboard.training.device import choose_device

Tables = dict[str, list[dict[str, Any]]]


def measure_net(
    net: Net, leaves: Leaves, data: dict[str, Tensors], spec: dict[str, Any], key: dict[str, Any], step: int
) -> Tables:
    """Rows of all four tables for one net."""
    tables: Tables = defaultdict(list)
    seed, sites = key["seed"], net.sites()
    weights = [draw_features(site.units, generator(seed, MEASUREMENT, site.index)) for site in sites]
    mapped = {round(place * net.depth) for place in spec["heat_maps"]} if key["checkpoint"] == "final" else set()
    for split, (x, y) in data.items():
        weights = [matrix.to(x.device) for matrix in weights]
        measured = measure_sites(net, leaves, x, y, weights=weights, blocks=spec["blocks"], pool=spec["pool"])
        for site, one in zip(sites, measured, strict=True):
            place = {**key, "site": site.index, "split": split}
            tables["signal"].append(signal_row(place, site, net.depth, step, one))
            tables["moments"].append(moments_row(place, site, one))
            draws = generator(seed, MEASUREMENT, site.index, 1)
            tables["covariance"].append(covariance_row(place, one.rows, draws, spec["permutations"]))
            if split == "test" and site.index in mapped:
                tables["correlations"] += correlation_rows(place, one.rows, draws)
    return tables


def body(job: Job) -> None:
    params, spec = job.params, job.params["measurement"]
    cell = {name: params[name] for name in paths.CELL_KEYS}
    torch.set_num_threads(job.threads)
    device = choose_device(params["device"])
    seeds = tuple(params["seeds"])
    job.device, job.seeds, job.packages = device.type, seeds, (*job.packages, "torch", "safetensors", "scipy")

    splits = read_wanted(job.inputs, spec["splits"])
    data = load_samples(splits, spec["splits"], params["samples"], device)
    net = build_net(params["net"], params["depth"], params["width"], splits["base"].shape, splits["base"].classes)
    job.packages = (*job.packages, *net.packages)
    records = read_checkpoint_header(job.inputs["checkpoints"], cell)["checkpoints"]
    tables: Tables = defaultdict(list)
    for seed in seeds:
        for checkpoint in spec["checkpoints"]:
            record = records.get(f"seed_{seed}/{checkpoint}")
            if record is None:
                continue  # the training loss never fell to that level, or the seed diverged
            member = read_member(job.inputs["checkpoints"], seed, checkpoint)
            check_leaves(net, member, f"{job.inputs['checkpoints']}: seed_{seed}/{checkpoint}")
            leaves = {name: torch.from_numpy(leaf)[None].to(device) for name, leaf in member.items()}
            key = {**cell, "seed": seed, "checkpoint": checkpoint}
            for name, rows in measure_net(net, leaves, data, spec, key, record["step"]).items():
                tables[name] += rows
    for schema in (SIGNAL, MOMENTS, COVARIANCE, CORRELATIONS):
        write_table(job.outputs[schema.name], schema, tables[schema.name], job.provenance())


if __name__ == "__main__":
    run_stage("measure_gradients", body)
