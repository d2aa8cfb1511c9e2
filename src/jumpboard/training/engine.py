"""The one training engine: G members of one net (seeds of a cell) trained side by side on one device.

Members share every operation and nothing else: each has its own weights, order, augmentation, clipping and rate, and a
member whose loss becomes non-finite stands still from then on while its fellows go on. The data lie on the device.
Members are passed through the net `chunk` at a time; memory that runs out halves the chunk. A training stopped at any
moment and taken up from its saved state ends with the same bytes.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from jumpboard.data.augmentation import augment
from jumpboard.nets.base import Leaves, Net, forward
from jumpboard.training.batches import Batches
from jumpboard.training.caps import Projection
from jumpboard.training.evaluation import cross_entropy, evaluate
from jumpboard.training.interruption import Interrupted, stop_request
from jumpboard.training.optimisers import FlatOptimiser
from jumpboard.training.parameters import Layout, initial_members
from jumpboard.training.progress import Progress
from jumpboard.training.recipe import Recipe
from jumpboard.training.resume import ResumeStore
from jumpboard.training.schedules import factor
from jumpboard.training.state import TrainingState

SMOOTHING = 0.98  # decay per step of the running means of batch loss and accuracy: about 50 steps
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrainingData:
    """Training and validation samples on the device: x [n, *input_shape] float, y [n] int64."""

    x: Tensor
    y: Tensor
    x_validation: Tensor
    y_validation: Tensor


class Training:
    """One training of `seeds` on `data`. `run` takes it to its end; everything that changes is in `state`.

    Members begin at their seeds' initial weights, or at `start`, leaves [G, ...] of the net, brought within the caps of
    the recipe. `free` [parameters] holds 1 for each entry of the flat vector that is trained and 0 for each that stays;
    all are trained where it is absent. Raises InputError for caps on a net that they do not cover.
    """

    def __init__(
        self,
        net: Net,
        data: TrainingData,
        recipe: Recipe,
        seeds: Sequence[int],
        *,
        start: Leaves | None = None,
        free: Tensor | None = None,
    ) -> None:
        self.net, self.data, self.recipe = net, data, recipe
        self.device = data.x.device
        self.batches = Batches(seeds, len(data.x), recipe.batch, recipe.crop, recipe.flip)
        self.layout = Layout.of(net)
        self.free = None if free is None else free.to(self.device, data.x.dtype)
        decayed = self.layout.decayed() if free is None else self.layout.decayed() * free
        self.optimiser = FlatOptimiser.of(recipe.optimiser, decayed.to(self.device, data.x.dtype))
        self.chunk = len(seeds) if net.batches_members or self.device.type == "cuda" else 1
        flat = (initial_members(net, seeds) if start is None else self.layout.flat(start)).to(self.device, data.x.dtype)
        self.projection = None if recipe.caps is None else Projection.of(net, recipe.caps, self.device)
        self._project(flat)
        self.state = TrainingState.start(flat, self.optimiser.initial_state(flat[:, : self.layout.trained]))
        self.gradients = torch.zeros_like(flat[:, : self.layout.trained])

    @property
    def members(self) -> int:
        return self.state.flat.shape[0]

    def run(self, store: ResumeStore | None = None, label: str = "training") -> TrainingState:
        """Train from the start, or from the store's newest state, to the last step.

        Raises Interrupted (a SystemExit with status 128 + signal) after SIGTERM or SIGINT, with the state saved.
        """
        saved = store.load() if store is not None else None
        if saved is not None:
            self.state = TrainingState.unpack(*saved, self.device)
        progress = Progress(label, self.recipe.steps, self.state.step)
        with stop_request() as request:
            if self.state.step == 0:
                self._after_step()
            while self.state.step < self.recipe.steps and self.state.alive.any():
                self.step()
                self._after_step()
                progress.update(self.state.step, float(torch.from_numpy(self._running()[0]).nanmean()))
                stopping = request.signal > 0 and self.state.step < self.recipe.steps
                if store is not None and (stopping or self.state.step % self.recipe.state_every == 0):
                    store.save(*self.state.pack(), self.state.step)
                if stopping:
                    raise Interrupted(128 + request.signal)
        progress.close()
        for member in np.flatnonzero(self.state.alive):
            self.state.snapshot(int(member), "final")
        return self.state

    def step(self) -> None:
        """One optimiser step of all members, and the running means."""
        state, recipe = self.state, self.recipe
        losses, correct = self._differentiate(*self._batch())
        state.diverged[state.alive & ~np.isfinite(losses)] = state.step
        rate = recipe.optimiser.lr * factor(recipe.schedule, state.step, recipe.steps, recipe.warmup)
        rates = torch.from_numpy(rate * state.alive).to(self.gradients).unsqueeze(1)
        if self.free is not None:
            self.gradients.mul_(self.free)
        if not state.alive.all():
            self.gradients[torch.from_numpy(~state.alive).to(self.device)] = 0.0
        if recipe.clip is not None:
            norms = self.gradients.norm(dim=1, keepdim=True)
            self.gradients.mul_((recipe.clip / norms.clamp(min=1e-12)).clamp(max=1.0))
        parameters = state.flat[:, : self.layout.trained]
        self.optimiser.update(parameters, self.gradients, state.optimiser, rates, state.step)
        self._project(state.flat)
        state.smoothed = SMOOTHING * state.smoothed + (1 - SMOOTHING) * np.stack([losses, correct])
        state.step += 1

    def _project(self, flat: Tensor) -> None:
        if self.projection is not None:
            self.projection.apply(flat)

    def _batch(self) -> tuple[Tensor, Tensor]:
        """This step's samples x [G, B, *input_shape] and labels [G, B]."""
        order, augmentations = self.batches.at(self.state.step)
        index = torch.from_numpy(order).to(self.device)
        x, y = self.data.x[index], self.data.y[index]
        if augmentations:
            x = torch.stack(
                [
                    augment(member, draw.offsets.to(self.device), draw.flips.to(self.device), self.recipe.crop)
                    for member, draw in zip(x, augmentations, strict=True)
                ]
            )
        return x, y

    def _differentiate(self, x: Tensor, y: Tensor) -> tuple[np.ndarray, np.ndarray]:
        """Fill `gradients`; give each member's batch loss and share correct, [G] each, float64."""
        losses, correct = np.empty(self.members), np.empty(self.members)

        def differentiate(part: slice) -> None:
            losses[part], correct[part] = self._differentiate_chunk(part, x[part], y[part])

        self._in_chunks(differentiate)
        return losses, correct

    def evaluate(self, flat: Tensor, x: Tensor, y: Tensor) -> tuple[np.ndarray, np.ndarray]:
        """Mean loss (nats) and accuracy of the members `flat` [G, size] over x, y, [G] each, in evaluation mode."""
        losses, correct = np.empty(self.members), np.empty(self.members)

        def measure(part: slice) -> None:
            measured = evaluate(self.net, self.layout.leaves(flat[part]), x, y)
            losses[part], correct[part] = (value.cpu().numpy() for value in measured)

        self._in_chunks(measure)
        return losses, correct

    def _in_chunks(self, work: Callable[[slice], None]) -> None:
        """Do `work` for all members, `chunk` of them at a time; memory that runs out halves the chunk."""
        first = 0
        while first < self.members:
            part = slice(first, min(first + self.chunk, self.members))
            try:
                work(part)
            except torch.OutOfMemoryError:
                if self.chunk == 1:
                    raise
                self.chunk = (self.chunk + 1) // 2
                self.state.tier = "statistical"
                log.warning("out of memory: going on with %d members at a time", self.chunk)
                continue
            first = part.stop

    def _differentiate_chunk(self, part: slice, x: Tensor, y: Tensor) -> tuple[np.ndarray, np.ndarray]:
        leaves = self.layout.leaves(self.state.flat[part])
        trained = [leaves[name].detach().requires_grad_() for name in self.net.parameter_shapes()]
        leaves |= dict(zip(self.net.parameter_shapes(), trained, strict=True))
        # running statistics change in the pass: in copies, taken over once it has succeeded
        buffers = {name: leaves[name].clone() for name in self.net.buffer_shapes()}
        places = {name: leaves[name] for name in buffers}
        leaves |= buffers
        autocast = (
            torch.autocast(self.device.type, dtype=torch.bfloat16)
            if self.recipe.precision == "bfloat16"
            else nullcontext()
        )
        if self.recipe.channels_last:
            x = x.flatten(0, 1).contiguous(memory_format=torch.channels_last).view(x.shape)
        with autocast:
            logits = forward(self.net, leaves, x, train=True)
        logits = logits.to(self.gradients.dtype)
        losses = cross_entropy(logits, y).mean(-1)
        gradients = torch.autograd.grad(losses.sum(), trained)
        torch.cat([gradient.flatten(1) for gradient in gradients], dim=1, out=self.gradients[part])
        moving = torch.from_numpy(self.state.alive[part]).to(self.device) & losses.isfinite()
        for name, place in places.items():
            place.copy_(torch.where(moving.view(-1, *[1] * (place.dim() - 1)), buffers[name], place))
        correct = (logits.argmax(-1) == y).double().mean(-1)
        return losses.detach().double().cpu().numpy(), correct.cpu().numpy()

    def _running(self) -> np.ndarray:
        """Smoothed batch loss and accuracy [2, G]; NaN before the first step."""
        weight = 1 - SMOOTHING**self.state.step
        return self.state.smoothed / weight if weight else np.full_like(self.state.smoothed, np.nan)

    def _after_step(self) -> None:
        """Checkpoints that are due, and the evaluation of a step that is to be evaluated."""
        state, recipe = self.state, self.recipe
        running = self._running()
        for member in np.flatnonzero(state.alive):
            if state.step == 0:
                state.snapshot(int(member), "init")
            if state.step in recipe.checkpoint_steps:
                state.snapshot(int(member), f"step_{state.step}")
            for level in recipe.losses:
                if running[0, member] < level:
                    state.snapshot(int(member), f"loss_{level:g}")
        if state.step % recipe.evaluate_every == 0 or state.step == recipe.steps:
            self._evaluate(running)

    def _evaluate(self, running: np.ndarray) -> None:
        state = self.state
        validation = np.stack(self.evaluate(state.flat, self.data.x_validation, self.data.y_validation))
        state.history.append((state.step, np.concatenate([running, validation])))
        better = state.alive & (validation[0] < state.best_loss)
        state.best_loss = np.where(better, validation[0], state.best_loss)
        state.best_step = np.where(better, state.step, state.best_step)
        state.best[torch.from_numpy(better).to(self.device)] = state.flat[torch.from_numpy(better).to(self.device)]
