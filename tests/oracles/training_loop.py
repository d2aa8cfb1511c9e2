"""One member trained as anyone would write it: torch modules and optimisers, one sample augmented at a time."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from jumpboard.nets.base import Net
from jumpboard.nets.resnet import ResNet
from jumpboard.nets.timm_net import TimmNet
from jumpboard.training.recipe import Recipe
from oracles.plain_resmlp import plain_logits
from oracles.plain_resnet import own_name, plain_resnet
from oracles.plain_timm import plain_timm


class PlainResMLP(nn.Module):
    def __init__(self, net: Net, leaves: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.net = net
        self.leaves = {name: nn.Parameter(leaf.clone()) for name, leaf in leaves.items()}
        for name, leaf in self.leaves.items():
            self.register_parameter(name.replace(".", "/"), leaf)

    def forward(self, x: Tensor) -> Tensor:
        return plain_logits(self.net, self.leaves, x)


@dataclass(frozen=True)
class Course:
    """Batch losses [steps], and the leaves after 0, 1, ... steps."""

    losses: np.ndarray
    leaves: list[dict[str, Tensor]]


def learning_rate(recipe: Recipe, step: int) -> float:
    if step < recipe.warmup:
        return recipe.optimiser.lr * (step + 1) / recipe.warmup
    share = (step - recipe.warmup) / (recipe.steps - recipe.warmup)
    falls = {"constant": 1.0, "linear": 1 - share, "cosine": (1 + math.cos(math.pi * share)) / 2}
    return recipe.optimiser.lr * falls[recipe.schedule]


def batches(recipe: Recipe, seed: int, x: Tensor, y: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """The batches of one seed without end, by the definition of the streams 1 (order) and 2 (augmentation)."""
    epoch = 0
    while True:
        order = np.random.default_rng([seed, 1, epoch]).permutation(len(x))
        generator = np.random.default_rng([seed, 2, epoch])
        offsets = generator.integers(0, 2 * recipe.crop + 1, (len(x), 2))
        flips = generator.random(len(x)) < 0.5 if recipe.flip else np.zeros(len(x), dtype=bool)
        for start in range(0, len(x) - recipe.batch + 1, recipe.batch):
            rows = range(start, start + recipe.batch)
            chosen = [x[int(order[row])] for row in rows]
            if recipe.crop or recipe.flip:
                draws = zip(chosen, offsets[rows], flips[rows], strict=True)
                chosen = [changed(one, offset, flip, recipe.crop) for one, offset, flip in draws]
            yield torch.stack(chosen), torch.stack([y[int(order[row])] for row in rows])
        epoch += 1


def changed(image: Tensor, offset: np.ndarray, flip: bool, crop: int) -> Tensor:
    """One image [C, H, W], padded, cut at the offset, mirrored."""
    channels, height, width = image.shape
    padded = torch.zeros(channels, height + 2 * crop, width + 2 * crop, dtype=image.dtype)
    padded[:, crop : crop + height, crop : crop + width] = image
    down, right = offset
    cut = padded[:, down : down + height, right : right + width]
    return cut.flip(2) if flip else cut


def optimiser_of(recipe: Recipe, module: nn.Module) -> torch.optim.Optimizer:
    settings = recipe.optimiser
    parameters = list(module.parameters())
    groups = [
        {"params": [one for one in parameters if one.dim() >= 2], "weight_decay": settings.weight_decay},
        {"params": [one for one in parameters if one.dim() < 2], "weight_decay": 0.0},
    ]
    if settings.name == "adamw":
        return torch.optim.AdamW(groups, lr=settings.lr, betas=settings.betas, eps=settings.eps)
    return torch.optim.SGD(groups, lr=settings.lr, momentum=settings.momentum, nesterov=settings.nesterov)


def train(net: Net, leaves: Mapping[str, Tensor], recipe: Recipe, seed: int, x: Tensor, y: Tensor) -> Course:
    """All steps of the recipe from `leaves` (no member dimension)."""
    module: nn.Module
    now: Callable[[], dict[str, Tensor]]
    if isinstance(net, TimmNet):
        module = plain_timm(net, leaves).train()
        now = lambda: {name: module.state_dict()[name].clone() for name in leaves}  # noqa: E731
    elif isinstance(net, ResNet):
        module = plain_resnet(net, leaves).train()
        now = lambda: {name: module.state_dict()[own_name(name)].clone() for name in leaves}  # noqa: E731
    else:
        module = PlainResMLP(net, leaves)
        now = lambda: {name: module.state_dict()[name.replace(".", "/")].clone() for name in leaves}  # noqa: E731
    optimiser = optimiser_of(recipe, module)
    losses, course = [], [now()]
    for step, (inputs, labels) in zip(range(recipe.steps), batches(recipe, seed, x, y), strict=False):
        for group in optimiser.param_groups:
            group["lr"] = learning_rate(recipe, step)
        optimiser.zero_grad()
        loss = functional.cross_entropy(module(inputs), labels)
        loss.backward()
        if recipe.clip is not None:
            norm = math.sqrt(sum(float((one.grad**2).sum()) for one in module.parameters() if one.grad is not None))
            for parameter in module.parameters():
                if parameter.grad is not None:
                    parameter.grad *= min(1.0, recipe.clip / norm)
        optimiser.step()
        losses.append(loss.item())
        course.append(now())
    return Course(np.array(losses), course)
