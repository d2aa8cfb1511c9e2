"""All that a running training is: one object that can be written down and taken up again without a trace."""

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor


@dataclass
class TrainingState:
    """Everything is per member g of G. `flat` [G, size] holds parameters and buffers; `optimiser` its buffers.

    `smoothed` [2, G] holds the biased running means of batch loss and accuracy; `diverged` [G] the step at which the
    loss became non-finite, or -1; `best` the member as it was at its lowest validation loss so far.
    `snapshots` maps (member, checkpoint) to (step, flat vector); `history` holds one entry per evaluated step:
    (step, [4, G]) with training loss and accuracy (smoothed) and validation loss and accuracy.
    """

    flat: Tensor
    optimiser: dict[str, Tensor]
    step: int = 0
    smoothed: np.ndarray = field(default_factory=lambda: np.zeros((2, 0)))
    diverged: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    best: Tensor = field(default_factory=lambda: torch.empty(0))
    best_loss: np.ndarray = field(default_factory=lambda: np.zeros(0))
    best_step: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    snapshots: dict[tuple[int, str], tuple[int, Tensor]] = field(default_factory=dict)
    history: list[tuple[int, np.ndarray]] = field(default_factory=list)
    tier: str = "bytes"

    @classmethod
    def start(cls, flat: Tensor, optimiser: dict[str, Tensor]) -> "TrainingState":
        """The state before the first step."""
        members = flat.shape[0]
        return cls(
            flat=flat,
            optimiser=optimiser,
            smoothed=np.zeros((2, members)),
            diverged=np.full(members, -1, dtype=np.int64),
            best=flat.clone(),
            best_loss=np.full(members, np.inf),
            best_step=np.zeros(members, dtype=np.int64),
        )

    @property
    def alive(self) -> np.ndarray:
        return self.diverged < 0

    def snapshot(self, member: int, name: str) -> None:
        """Keep the member as it is now under the checkpoint's name, once."""
        self.snapshots.setdefault((member, name), (self.step, self.flat[member].clone()))

    def pack(self) -> tuple[dict[str, Tensor], str]:
        """Tensors by name and one JSON text, from which `unpack` makes the same state."""
        tensors = {"flat": self.flat, "best": self.best}
        tensors |= {f"optimiser/{name}": value for name, value in self.optimiser.items()}
        for name in ("smoothed", "diverged", "best_loss", "best_step"):
            tensors[name] = torch.from_numpy(getattr(self, name))
        tensors |= {f"snapshot/{member}/{name}": value for (member, name), (_, value) in self.snapshots.items()}
        tensors |= {f"history/{step}": torch.from_numpy(values) for step, values in self.history}
        facts = {
            "step": self.step,
            "tier": self.tier,
            "snapshots": [[member, name, step] for (member, name), (step, _) in self.snapshots.items()],
            "history": [step for step, _ in self.history],
        }
        return tensors, json.dumps(facts, sort_keys=True)

    @classmethod
    def unpack(cls, tensors: dict[str, Tensor], text: str, device: torch.device) -> "TrainingState":
        """The state that `pack` wrote, its large tensors on `device`."""
        facts: dict[str, Any] = json.loads(text)
        return cls(
            flat=tensors["flat"].to(device),
            optimiser={
                name.split("/", 1)[1]: value.to(device)
                for name, value in tensors.items()
                if name.startswith("optimiser/")
            },
            step=facts["step"],
            smoothed=tensors["smoothed"].numpy(),
            diverged=tensors["diverged"].numpy(),
            best=tensors["best"].to(device),
            best_loss=tensors["best_loss"].numpy(),
            best_step=tensors["best_step"].numpy(),
            snapshots={
                (member, name): (step, tensors[f"snapshot/{member}/{name}"].to(device))
                for member, name, step in facts["snapshots"]
            },
            history=[(step, tensors[f"history/{step}"].numpy()) for step in facts["history"]],
            tier=facts["tier"],
        )
