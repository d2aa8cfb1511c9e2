"""`train_baseline`: all seeds of one cell trained together.

Writes the tables `curves` (course of training) and `metrics` (what the final net and the one of lowest validation loss
attain on each split), and the cell's checkpoints: init, configured steps, the first crossings of loss levels, final,
and best_validation. Where the net begins with weights from a file (input `weights`), every seed begins with those. With
0 steps init and final are the net as it began.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from jumpboard.artefacts import paths
from jumpboard.artefacts.checkpoints import write_checkpoints
from jumpboard.artefacts.files import sha256_of
from jumpboard.artefacts.job import Job, run_stage
from jumpboard.artefacts.provenance import config_digest
from jumpboard.artefacts.tables import write_table
from jumpboard.data.samples import Tensors, load_samples, read_wanted
from jumpboard.nets.registry import build_net
from jumpboard.schemas.curves import CURVES
from jumpboard.schemas.metrics import METRICS
from jumpboard.training.device import choose_device
from jumpboard.training.engine import Training, TrainingData
from jumpboard.training.recipe import Recipe
from jumpboard.training.resume import ResumeStore
from jumpboard.training.state import TrainingState


def curve_rows(cell: dict[str, Any], seeds: list[int], state: TrainingState) -> Iterator[dict[str, Any]]:
    """Rows of `curves`; the training loss is undefined at step 0 and begins at the first evaluated step after it."""
    for step, values in state.history:
        for member, seed in enumerate(seeds):
            for split, loss, accuracy in (("train", *values[:2, member]), ("validation", *values[2:, member])):
                if split != "train" or step > 0:
                    yield {
                        **cell, "seed": seed, "split": split, "step": step,
                        "loss": float(loss), "accuracy": float(accuracy),
                    }  # fmt: skip


def metric_rows(
    cell: dict[str, Any], training: Training, seeds: list[int], data: dict[str, Tensors]
) -> Iterator[dict[str, Any]]:
    """Rows of `metrics`, one per seed and checkpoint."""
    state, net = training.state, training.net
    seen = training.batches.batch * net.forward_flops() * 3
    final_step = np.where(state.alive, state.step, state.diverged)
    moments = (("best_validation", state.best, state.best_step), ("final", state.flat, final_step))
    for checkpoint, flat, steps in moments:
        measured = {name: training.evaluate(flat, *part) for name, part in data.items()}
        for member, seed in enumerate(seeds):
            losses = {f"{name}_loss": float(loss[member]) for name, (loss, _) in measured.items()}
            accuracies = {f"{name}_accuracy": float(share[member]) for name, (_, share) in measured.items()}
            yield {
                **cell,
                "seed": seed,
                "checkpoint": checkpoint,
                "status": "trained" if state.alive[member] else "diverged",
                "step": int(steps[member]),
                "parameters": net.parameter_count(),
                "forward_flops": net.forward_flops(),
                "training_flops": float(seen * int(steps[member])),
                **losses,
                **accuracies,
                "generalisation_gap": losses["test_loss"] - losses["train_loss"],
            }


def body(job: Job) -> None:
    params = job.params
    seeds = list(params["seeds"])
    cell = {name: params[name] for name in paths.CELL_KEYS}
    torch.set_num_threads(job.threads)
    device = choose_device(params["device"])
    job.device, job.seeds, job.packages = device.type, tuple(seeds), (*job.packages, "torch", "safetensors")

    sizes = {"train": params["samples"], "validation": None, "test": None}
    files = read_wanted({"base": job.inputs["splits"]}, sizes)
    splits, data = files["base"], load_samples(files, sizes, params["samples"], device)
    weights = {"weights": str(job.inputs["weights"])} if "weights" in job.inputs else {}
    net = build_net({**params["net"], **weights}, params["depth"], params["width"], splits.shape, splits.classes)
    job.packages = (*job.packages, *net.packages)
    training = Training(net, TrainingData(*data["train"], *data["validation"]), Recipe.parse(params["training"]), seeds)

    place = paths.filled(paths.CELL, cell)
    run = config_digest({"code": job.code, "params": params, "parents": job.parents(), "threads": job.threads})
    with ResumeStore(job.root / paths.RESUME / job.stage / place, run) as store:
        state = training.run(store, label=place)
        metrics = list(metric_rows(cell, training, seeds, data))
        job.tier = state.tier
        kept = dict(state.snapshots)
        for member in np.flatnonzero(np.isfinite(state.best_loss)):
            kept[int(member), "best_validation"] = (int(state.best_step[member]), state.best[member])
        members = {
            (seeds[member], checkpoint): (
                step,
                {name: leaf[0].cpu().numpy() for name, leaf in training.layout.leaves(flat.unsqueeze(0)).items()},
            )
            for (member, checkpoint), (step, flat) in kept.items()
        }
        ancestor = sha256_of(job.inputs.get("weights", job.inputs["splits"]))
        write_table(job.outputs["curves"], CURVES, curve_rows(cell, seeds, state), job.provenance())
        write_table(job.outputs["metrics"], METRICS, metrics, job.provenance())
        write_checkpoints(job.outputs["checkpoints"], members, ancestor, job.provenance())
        store.clear()


if __name__ == "__main__":
    run_stage("train_baseline", body)
