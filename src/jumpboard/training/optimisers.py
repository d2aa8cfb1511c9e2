"""AdamW and SGD on the flat matrix of members [G, P]: every member has its own rate, all share one update.

AdamW (Loshchilov and Hutter 2019) and SGD with momentum as in torch.optim, of which both are tested copies.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from jumpboard.training.recipe import Optimiser

BUFFERS = {"adamw": ("exp_avg", "exp_avg_sq"), "sgd": ("momentum_buffer",)}


@dataclass(frozen=True)
class FlatOptimiser:
    """Updates `parameters` in place. `decay` [P] or [1] is the weight decay of each entry."""

    settings: Optimiser
    decay: Tensor

    @classmethod
    def of(cls, settings: Optimiser, decayed: Tensor) -> "FlatOptimiser":
        """`decayed` [P] holds 1 where weight decay acts; a uniform one is kept as one number."""
        uniform = bool((decayed == decayed[0]).all())
        return cls(settings, settings.weight_decay * (decayed[:1] if uniform else decayed))

    def initial_state(self, parameters: Tensor) -> dict[str, Tensor]:
        """Zeros shaped like `parameters`, by the names of `BUFFERS`."""
        return {name: torch.zeros_like(parameters) for name in BUFFERS[self.settings.name]}

    def update(self, parameters: Tensor, gradients: Tensor, state: dict[str, Tensor], rates: Tensor, step: int) -> None:
        """One step (0-based) with the learning rates `rates` [G, 1]; a member with rate 0 stands still."""
        if self.settings.name == "adamw":
            self._adamw(parameters, gradients, state, rates, step)
        else:
            self._sgd(parameters, gradients, state, rates, step)

    def _adamw(self, parameters: Tensor, gradients: Tensor, state: dict[str, Tensor], rates: Tensor, step: int) -> None:
        first, second = self.settings.betas
        mean = state["exp_avg"].lerp_(gradients, 1 - first)
        square = state["exp_avg_sq"].mul_(second).addcmul_(gradients, gradients, value=1 - second)
        root = square.sqrt().div_((1 - second ** (step + 1)) ** 0.5).add_(self.settings.eps)
        parameters.mul_(1 - rates * self.decay)
        parameters.sub_((mean / root).mul_(rates / (1 - first ** (step + 1))))

    def _sgd(self, parameters: Tensor, gradients: Tensor, state: dict[str, Tensor], rates: Tensor, step: int) -> None:
        gradients = gradients + parameters * self.decay
        velocity = state["momentum_buffer"].mul_(self.settings.momentum).add_(gradients)
        direction = gradients + self.settings.momentum * velocity if self.settings.nesterov else velocity
        parameters.sub_(direction * rates)
