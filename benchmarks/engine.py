"""Members trained together against a plain loop over seeds: the same nets, batches and optimiser, in one run.

    python benchmarks/engine.py [--steps 60] [--repeats 5]

The loop is what one would write without this engine: a torch.nn module and a torch.optim.AdamW per seed, one thread.
Prints milliseconds per step of all members, the ratio and the bar it is held against; exit status 1 if one is missed.
Then the time of two one-thread processes at once against one two-thread process. The GPU part runs where there is one.
"""

import argparse
import multiprocessing
import statistics
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from jumpboard.nets.resmlp import ResMLP
from jumpboard.training.engine import Training, TrainingData
from jumpboard.training.recipe import Optimiser, Recipe

DEPTH, BATCH, SAMPLES, INPUTS, CLASSES = 8, 100, 4000, 40, 10
CPU_BARS = {16: 4.0, 32: 3.0, 64: 1.8}  # width -> least ratio for 8 members
GPU_BAR = 8.0  # for 16 members
RECIPE = Recipe(Optimiser("adamw", 3e-3, 0.05), "cosine", 50, BATCH, 10**6, 10**6, 10**6)


class PlainResMLP(nn.Module):
    """The same net as a torch module, one per seed."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.stem = nn.Linear(INPUTS, width, bias=False)
        self.first = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(DEPTH))
        self.second = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(DEPTH))
        self.head = nn.Linear(width, CLASSES, bias=False)
        self.width = width

    def forward(self, x: Tensor) -> Tensor:
        z = functional.rms_norm(self.stem(x), (self.width,), eps=1e-6)
        for first, second in zip(self.first, self.second, strict=True):
            z = functional.rms_norm(z + second(torch.relu(first(z))), (self.width,), eps=1e-6)
        return self.head(z)


def data(device: torch.device) -> TrainingData:
    """Random samples: the time of a step does not depend on what they are."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(SAMPLES, INPUTS, generator=generator).to(device)
    y = torch.randint(CLASSES, (SAMPLES,), generator=generator).to(device)
    return TrainingData(x, y, x[:100], y[:100])


def batched_step(members: int, width: int, device: torch.device) -> Callable[[], None]:
    """One step of the engine for all members."""
    return Training(ResMLP(DEPTH, width, (INPUTS,), CLASSES), data(device), RECIPE, range(members)).step


def looped_step(members: int, width: int, device: torch.device) -> Callable[[], None]:
    """One step of every member in turn, each with its own order of the data."""
    samples = data(device)
    nets = [PlainResMLP(width).to(device) for _ in range(members)]
    optimisers = [torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.05) for net in nets]
    orders = [torch.randperm(SAMPLES).to(device) for _ in range(members)]
    position = 0

    def step() -> None:
        nonlocal position
        for net, optimiser, order in zip(nets, optimisers, orders, strict=True):
            index = order[position : position + BATCH]
            loss = functional.cross_entropy(net(samples.x[index]), samples.y[index])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            loss.item()
        position = (position + BATCH) % SAMPLES

    return step


def milliseconds(step: Callable[[], None], steps: int, device: torch.device) -> float:
    """Mean time of a step."""
    for _ in range(5):
        step()
    if device.type == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(steps):
        step()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / steps * 1e3


def compare(members: int, width: int, device: torch.device, steps: int, repeats: int) -> tuple[float, float, float]:
    """Medians of both sides, measured in turn, and the median of their ratios."""
    batched, looped = batched_step(members, width, device), looped_step(members, width, device)
    pairs = [(milliseconds(batched, steps, device), milliseconds(looped, steps, device)) for _ in range(repeats)]
    return (
        statistics.median(one for one, _ in pairs),
        statistics.median(other for _, other in pairs),
        statistics.median(other / one for one, other in pairs),
    )


def train_for(threads: int, steps: int) -> float:
    """Seconds that a process with this many threads needs for `steps` steps of 4 members of width 64."""
    torch.set_num_threads(threads)
    return milliseconds(batched_step(4, 64, torch.device("cpu")), steps, torch.device("cpu")) * steps / 1e3


def processes_against_threads(steps: int) -> tuple[float, float]:
    """Steps per second of two one-thread processes together, and of one two-thread process."""
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        seconds = max(pool.starmap(train_for, [(1, steps), (1, steps)]))
        alone = pool.apply(train_for, (2, steps))
    return 2 * steps / seconds, steps / alone


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    cpu, missed = torch.device("cpu"), False
    print("| device | members | width | batched, ms | looped, ms | ratio | bar |\n|---|---|---|---|---|---|---|")
    plans = [(cpu, 8, width, bar) for width, bar in CPU_BARS.items()]
    if torch.cuda.is_available():
        plans += [(torch.device("cuda"), 16, width, GPU_BAR) for width in CPU_BARS]
    for device, members, width, bar in plans:
        batched, looped, ratio = compare(members, width, device, options.steps, options.repeats)
        missed |= ratio < bar
        print(f"| {device} | {members} | {width} | {batched:.2f} | {looped:.2f} | {ratio:.1f} | {bar} |", flush=True)
    if not torch.cuda.is_available():
        print("\nno GPU here: the GPU part is skipped")
    together, alone = processes_against_threads(options.steps)
    print(f"\nsteps per second: two processes of one thread {together:.0f}, one process of two threads {alone:.0f}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
