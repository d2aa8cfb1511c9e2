"""What every job of an expansion begins with: a cell's samples, its net with each seed's reference, the recipes."""

from dataclasses import dataclass, replace
from typing import Any

import torch

from jumpboard.artefacts import paths
from jumpboard.artefacts.checkpoints import read_checkpoint_header
from jumpboard.artefacts.job import Job
from jumpboard.artefacts.provenance import config_digest
from jumpboard.data.rows import DRAWN
from jumpboard.data.samples import Tensors, load_samples, read_wanted
from jumpboard.expansion.arms import Arms
from jumpboard.expansion.reference import Reference, read_reference
from jumpboard.nets.base import Net
from jumpboard.nets.registry import build_net
from jumpboard.training.device import choose_device
from jumpboard.training.engine import TrainingData
from jumpboard.training.recipe import Recipe


@dataclass(frozen=True)
class Setting:
    """`data` holds all samples of each split, and of the fresh ones as many as are asked for; `recipe` is that of the
    expansion, `scratch` the baseline's for the steps of both; `arms` is a context that is not yet entered."""

    cell: dict[str, Any]
    net: Net
    reference: Reference
    data: dict[str, Tensors]
    recipe: Recipe
    scratch: Recipe
    arms: Arms

    @property
    def training(self) -> TrainingData:
        return TrainingData(*self.data["train"], *self.data["validation"])

    def first(self, split: str, count: int) -> Tensors:
        """The first `count` samples of a split, or all where it has fewer."""
        x, y = self.data[split]
        return x[:count], y[:count]


def open_setting(job: Job) -> Setting:
    """Read a job's inputs, and enter device, seeds and packages into it.

    Raises InputError for files that are damaged or do not fit the parameters.
    """
    params, spec = job.params, job.params["expansion"]
    cell = {name: params[name] for name in paths.CELL_KEYS}
    torch.set_num_threads(job.threads)
    device = choose_device(params["device"])
    job.device, job.seeds = device.type, tuple(params["seeds"])
    sizes: dict[str, int | None] = {**dict.fromkeys(DRAWN), "train": params["samples"]}
    sizes |= {"fresh": spec["splits"]["fresh"]} if "fresh" in spec["splits"] else {}
    splits = read_wanted(job.inputs, sizes)
    data = load_samples(splits, sizes, params["samples"], device)
    net = build_net(params["net"], params["depth"], params["width"], splits["base"].shape, splits["base"].classes)
    job.packages = (*job.packages, "torch", "safetensors", "scipy", *net.packages)
    read_checkpoint_header(job.inputs["checkpoints"], cell)  # refuses those of another cell
    reference = read_reference(job.inputs["checkpoints"], net, job.seeds, spec["reference"], device)
    recipe, baseline = (
        replace(Recipe.parse(params[name]), checkpoint_steps=(), losses=()) for name in ("training", "baseline")
    )
    scratch = replace(baseline, steps=baseline.steps + recipe.steps)
    place = paths.filled(paths.CELL, cell)
    run = config_digest({"code": job.code, "params": params, "parents": job.parents(), "threads": job.threads})
    arms = Arms(job.root / paths.RESUME / job.stage / place, run, place)
    return Setting(cell, net, reference, data, recipe, scratch, arms)
