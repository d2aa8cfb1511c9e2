"""Gradient moments of all sites against one plain forward and backward pass over the same samples, in one run.

    python benchmarks/gradients.py [--samples 10000] [--repeats 7]

Plain is what training does: all parameter gradients of the summed loss, of the same net, in batches of the same size.
Measured are S, V, T, R and the diagonal of every site with their limits, then `signal_feature` too; no pool, no null.
One thread, CPU seconds, medians of ratios taken in turn. Exit status 1 if a bar is missed.

Then peak memory of 10^4 and of 10^6 samples, each in a process of its own, less the samples themselves. Then the
gradients alone against torch.func, vmap of grad over samples: the same quantity, activation gradients of every site
from zero offsets added to the streams of a net written with torch's own functions; both results are held equal.
Per-sample parameter gradients, which such packages are made for, would be N times as many numbers.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy and torch are imported

import argparse
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from jumpboard.measure.features import draw_features
from jumpboard.measure.gradients import site_gradients
from jumpboard.measure.sites import batch_size, measure_sites
from jumpboard.nets.base import Leaves, Net, forward
from jumpboard.nets.resmlp import ResMLP
from jumpboard.nets.resnet import ResNet
from jumpboard.training.evaluation import cross_entropy

CLASSES, DEPTH, INPUTS, BLOCKS = 10, 8, 40, 20
MOMENTS_BAR, FEATURE_BAR = 1.5, 3.0
MEMORY_BAR = 40  # MiB from 10^4 to 10^6 samples, a quarter of the samples; kept rows of all sites would take 549
MLPS = {width: ResMLP(DEPTH, width, (INPUTS,), CLASSES) for width in (8, 16, 32, 64, 256)}
RESNET = ResNet(9, 8, (1, 28, 28), CLASSES, stem_stride=2)
RESNET_SHARE = 5  # its samples are as many times fewer


def problem(net: Net, samples: int) -> tuple[dict[str, Tensor], Tensor, Tensor]:
    """Leaves at step 0, random samples and labels: the time does not depend on what they are."""
    member = net.initial_leaves(np.random.default_rng(0))
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(samples, *net.input_shape, generator=generator)
    y = torch.randint(CLASSES, (samples,), generator=generator)
    return {name: torch.from_numpy(leaf)[None] for name, leaf in member.items()}, x, y


def features_of(net: Net) -> list[Tensor]:
    return [draw_features(site.units, np.random.default_rng(site.index)) for site in net.sites()]


def plain_pass(net: Net, leaves: Leaves, x: Tensor, y: Tensor) -> None:
    """All parameter gradients, batch by batch."""
    trained = {name: leaves[name].clone().requires_grad_() for name in net.parameter_shapes()}
    step = batch_size(net)
    for start in range(0, len(x), step):
        batch = slice(start, start + step)
        loss = cross_entropy(forward(net, {**leaves, **trained}, x[None, batch]), y[None, batch]).sum()
        torch.autograd.grad(loss, list(trained.values()))


def moments_pass(net: Net, leaves: Leaves, x: Tensor, y: Tensor, weights: Sequence[Tensor] = ()) -> None:
    """All that the tables `signal` and `moments` hold of one net and split."""
    measure_sites(net, leaves, x, y, weights=weights, blocks=BLOCKS)


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def medians(repeats: int, *works: Callable[[], object]) -> tuple[list[float], list[float]]:
    """Median seconds of each, and median ratios to the first, from rounds in which all run in turn."""
    rounds = [[seconds(work) for work in works] for _ in range(repeats + 1)][1:]
    times = [statistics.median(column) for column in zip(*rounds, strict=True)]
    return times, [statistics.median(one[i] / one[0] for one in rounds) for i in range(len(works))]


def compare_with_a_plain_pass(samples: int, repeats: int) -> bool:
    """Print the first table; whether all bars hold."""
    print("| net | width | samples | plain, ms | moments, ms | ratio | bar | with feature, ms | ratio | bar |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    cases: list[tuple[str, Net, int]] = [(f"resmlp, depth {DEPTH}", net, samples) for net in MLPS.values()]
    cases.append((f"resnet, depth {RESNET.depth}", RESNET, samples // RESNET_SHARE))
    good = True
    for name, net, count in cases:
        (leaves, x, y), weights = problem(net, count), features_of(net)
        times, ratios = medians(
            repeats,
            lambda: plain_pass(net, leaves, x, y),  # noqa: B023
            lambda: moments_pass(net, leaves, x, y),  # noqa: B023
            lambda: moments_pass(net, leaves, x, y, weights),  # noqa: B023
        )
        plain, moments, feature = (f"{1e3 * one:.0f}" for one in times)
        good &= ratios[1] <= MOMENTS_BAR and ratios[2] <= FEATURE_BAR
        print(
            f"| {name} | {net.width} | {count} | {plain} | {moments} | {ratios[1]:.2f} | {MOMENTS_BAR} "
            f"| {feature} | {ratios[2]:.2f} | {FEATURE_BAR} |",
            flush=True,
        )
    return good


def print_peak(samples: int) -> None:
    """What the process that measures this many samples needs at most, less the samples, in bytes."""
    net = MLPS[16]
    leaves, x, y = problem(net, samples)
    moments_pass(net, leaves, x, y, features_of(net))
    status = Path("/proc/self/status")
    if status.exists():  # where a child's `ru_maxrss` counts its parent's memory too
        peak = 1024 * int(status.read_text().split("VmHWM:")[1].split()[0])
    else:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(peak - x.nbytes - y.nbytes)


def compare_memory() -> bool:
    """Print the second table; whether the bar holds."""
    print("\n| samples | peak less the samples, MiB | the samples, MiB |\n|---|---|---|")
    peaks = []
    for samples in (10**4, 10**6):
        command = [sys.executable, __file__, "--peak", str(samples)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout) / 2**20)
        print(f"| {samples} | {peaks[-1]:.0f} | {samples * (4 * INPUTS + 8) / 2**20:.0f} |", flush=True)
    print(f"\ngrowth {peaks[1] - peaks[0]:.1f} MiB, bar {MEMORY_BAR}")
    return peaks[1] - peaks[0] <= MEMORY_BAR


def offset_loss(offsets: Tensor, x: Tensor, y: Tensor, leaves: dict[str, Tensor]) -> Tensor:
    """The loss of one sample with offsets [L + 1, N] added to its streams."""
    width = (offsets.shape[1],)
    z = functional.rms_norm(functional.linear(x, leaves["stem.weight"]), width, eps=1e-6) + offsets[0]
    for index in range(len(offsets) - 1):
        hidden = torch.relu(functional.linear(z, leaves[f"blocks.{index}.w1"]))
        branch = functional.linear(hidden, leaves[f"blocks.{index}.w2"])
        z = functional.rms_norm(z + branch, width, eps=1e-6) + offsets[index + 1]
    return functional.cross_entropy(functional.linear(z, leaves["head.weight"]), y)


def compare_with_torch_func(repeats: int) -> bool:
    """Print the third table; whether both give the same gradients."""
    print("\n| width | samples | all sites here, ms | torch.func, ms | ratio | largest difference, relative |")
    print("|---|---|---|---|---|---|")
    same = True
    for width, net in MLPS.items():
        leaves, x, y = problem(net, batch_size(net))
        one = {name: leaf[0] for name, leaf in leaves.items()}
        each = torch.func.vmap(torch.func.grad(offset_loss), in_dims=(None, 0, 0, None))
        offsets = torch.zeros(DEPTH + 1, width)
        own = torch.stack([zeta[0, :, 0] for _, zeta in site_gradients(net, leaves, x[None], y[None])], 1)
        other = each(offsets, x, y, one)
        difference = float((own - other).abs().max() / own.abs().max())
        times, ratios = medians(
            5 * repeats,
            lambda: site_gradients(net, leaves, x[None], y[None]),  # noqa: B023
            lambda: each(offsets, x, y, one),  # noqa: B023
        )
        same &= difference < 1e-5
        here, func = (f"{1e3 * time:.1f}" for time in times)
        print(f"| {width} | {len(x)} | {here} | {func} | {ratios[1]:.2f} | {difference:.0e} |", flush=True)
    return same


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--peak", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.peak:
        print_peak(options.peak)
        return 0
    held = [compare_with_a_plain_pass(options.samples, options.repeats), compare_memory()]
    return int(not all([*held, compare_with_torch_func(options.repeats)]))


if __name__ == "__main__":
    sys.exit(main())
