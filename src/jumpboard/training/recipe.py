"""A training recipe: how a net is trained, parsed from an entry under `trainings` of a validated config."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Optimiser:
    """`adamw` (betas, eps) or `sgd` (momentum, nesterov); weight decay acts on leaves with two or more dimensions,
    decoupled in AdamW, added to the gradient in SGD."""

    name: str
    lr: float
    weight_decay: float = 0.0
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    momentum: float = 0.0
    nesterov: bool = False


@dataclass(frozen=True)
class Caps:
    """The largest spectral norm of a weight matrix, and the largest Frobenius norm of all matrices of a layer."""

    spectral: float
    frobenius: float


@dataclass(frozen=True)
class Recipe:
    """Steps and batches are per member. `clip` bounds each member's gradient norm. `losses` are the levels of the
    smoothed training loss whose first crossing leaves a checkpoint `loss_<level>`; `checkpoint_steps` leave
    `step_<step>`. Members are kept within `caps` at every step, the first included."""

    optimiser: Optimiser
    schedule: str
    warmup: int
    batch: int
    steps: int
    evaluate_every: int
    state_every: int
    clip: float | None = None
    caps: Caps | None = None
    crop: int = 0
    flip: bool = False
    precision: str = "float32"
    channels_last: bool = False
    checkpoint_steps: tuple[int, ...] = ()
    losses: tuple[float, ...] = field(default=())

    @classmethod
    def parse(cls, spec: Mapping[str, Any]) -> "Recipe":
        """From the config's nested form, which the schema has already checked."""
        optimiser = dict(spec["optimiser"])
        if "betas" in optimiser:
            optimiser["betas"] = tuple(optimiser["betas"])
        augmentation, checkpoints = spec.get("augmentation", {}), spec.get("checkpoints", {})
        return cls(
            optimiser=Optimiser(**optimiser),
            schedule=spec["schedule"]["name"],
            warmup=spec["schedule"].get("warmup", 0),
            batch=spec["batch"],
            steps=spec["steps"],
            evaluate_every=spec["evaluate_every"],
            state_every=spec["state_every"],
            clip=spec.get("clip"),
            caps=Caps(**spec["caps"]) if "caps" in spec else None,
            crop=augmentation.get("crop", 0),
            flip=augmentation.get("flip", False),
            precision=spec.get("precision", "float32"),
            channels_last=spec.get("channels_last", False),
            checkpoint_steps=tuple(checkpoints.get("steps", ())),
            losses=tuple(sorted(checkpoints.get("losses", ()), reverse=True)),
        )
