"""ResNet-20 at CIFAR's shape against what one would write without this library: the same net, steps and pictures, one
process, one thread, both sides in turn.

    python benchmarks/resnet.py [--repeats 5] [--steps 4] [--threads 1]

1. Training: a step of the engine against one of a torch.nn module with torch.optim.SGD, under bfloat16 autocast and
   channels-last, from pictures in memory, without augmentation; the nets are held equal first. Bar: as many pictures/s.
2. Members: BatchNorm nets folded into one, against one after the other, by width and size, 4 members in float32, and
   which of the two the net chooses.
3. Data: pictures normalised and augmented from decoded tensors, against a DataLoader that decodes PNG files held in
   memory and augments with torchvision, picture by picture, as a training script does.
4. Both: a step from each side's own data. Bar: as many pictures/s.

Medians of ratios over rounds in which all sides run in turn; exit status 1 if a bar is missed.
"""

import argparse
import io
import statistics
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2

from jumpboard.nets.base import forward
from jumpboard.nets.resnet import ResNet
from jumpboard.training.engine import Training, TrainingData
from jumpboard.training.recipe import Optimiser, Recipe

DEPTH, WIDTH, SHAPE, CLASSES, BATCH, SAMPLES, MEMBERS = 9, 16, (3, 32, 32), 10, 128, 2048, 4
BAR = 1.0
MEAN, SD = 120.0, 60.0


class Block(nn.Module):
    """A basic block with the parameter-free shortcut of He et al. 2015."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.stride = after // before
        self.conv1 = nn.Conv2d(before, after, 3, self.stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(after)

    def forward(self, z: Tensor) -> Tensor:
        shortcut = z
        if self.stride > 1:
            shortcut = functional.pad(z[:, :, ::2, ::2], (0, 0, 0, 0, 0, z.shape[1]))
        z = functional.relu(self.norm1(self.conv1(z)))
        return functional.relu(self.norm2(self.conv2(z)) + shortcut)


class PlainResNet(nn.Module):
    """ResNet-20 as a torch module; its parameters in the order of the library's leaves."""

    def __init__(self) -> None:
        super().__init__()
        widths = [WIDTH << stage for stage in range(3) for _ in range(DEPTH // 3)]
        self.conv = nn.Conv2d(SHAPE[0], WIDTH, 3, 1, 1, bias=False)
        self.norm = nn.BatchNorm2d(WIDTH)
        self.blocks = nn.Sequential(*map(Block, [WIDTH, *widths], widths))
        self.head = nn.Linear(widths[-1], CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(functional.relu(self.norm(self.conv(x)))).mean((2, 3)))

    def load(self, leaves: dict[str, Tensor]) -> None:
        """Take over the weights of one member."""
        places = {"stem.weight": self.conv.weight, "head.weight": self.head.weight, "head.bias": self.head.bias}
        for index, block in enumerate(self.blocks):
            places |= {f"blocks.{index}.conv1": block.conv1.weight, f"blocks.{index}.conv2": block.conv2.weight}
        with torch.no_grad():
            for name, place in places.items():
                place.copy_(leaves[name][0])


def recipe(augmented: bool, precision: str = "bfloat16") -> Recipe:
    return Recipe(
        Optimiser("sgd", 0.1, 5e-4, momentum=0.9, nesterov=True), "constant", 0, BATCH, 10**6, 10**6, 10**6,
        crop=4 if augmented else 0, flip=augmented, precision=precision, channels_last=True,
    )  # fmt: skip


def pictures() -> tuple[np.ndarray, Tensor]:
    """Random pictures uint8 [n, 3, 32, 32] and labels: the time of a step does not depend on what they are."""
    generator = np.random.default_rng(0)
    coarse = generator.integers(0, 256, (SAMPLES, 3, 8, 8), dtype=np.uint8)
    return coarse.repeat(4, axis=2).repeat(4, axis=3), torch.from_numpy(generator.integers(0, CLASSES, SAMPLES))


def training(
    augmented: bool, members: int = 1, width: int = WIDTH, precision: str = "bfloat16", size: int = SHAPE[1]
) -> Training:
    raw, y = pictures()
    x = torch.from_numpy((raw[:, :, :size, :size].astype(np.float32) - MEAN) / SD)
    net = ResNet(DEPTH, width, (SHAPE[0], size, size), CLASSES)
    return Training(net, TrainingData(x, y, x[:8], y[:8]), recipe(augmented, precision), range(members))


class EncodedPictures(Dataset):  # type: ignore[type-arg]
    """PNG files in memory, decoded and augmented whenever one is asked for."""

    def __init__(self) -> None:
        raw, self.y = pictures()
        self.files = []
        for picture in raw:
            buffer = io.BytesIO()
            Image.fromarray(picture.transpose(1, 2, 0)).save(buffer, "png")
            self.files.append(buffer.getvalue())
        self.change = v2.Compose(
            [
                v2.RandomCrop(32, padding=4),
                v2.RandomHorizontalFlip(),
                v2.ToImage(),
                v2.ToDtype(torch.float32),
                v2.Normalize([MEAN] * 3, [SD] * 3),
            ]
        )

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.change(Image.open(io.BytesIO(self.files[index])).convert("RGB")), int(self.y[index])


def endless(loader: DataLoader) -> Iterator[tuple[Tensor, Tensor]]:  # type: ignore[type-arg]
    while True:
        yield from loader


class PlainLoop:
    """What a training script does at each step."""

    def __init__(self, net: PlainResNet, batches: Iterator[tuple[Tensor, Tensor]]) -> None:
        self.net = net.to(memory_format=torch.channels_last)
        self.batches = batches
        self.optimiser = torch.optim.SGD(net.parameters(), 0.1, 0.9, weight_decay=5e-4, nesterov=True)

    def step(self) -> None:
        x, y = next(self.batches)
        with torch.autocast("cpu", torch.bfloat16):
            logits = self.net(x.contiguous(memory_format=torch.channels_last))
        loss = functional.cross_entropy(logits.float(), y)
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()


def in_memory(training: Training) -> Iterator[tuple[Tensor, Tensor]]:
    """The engine's own batches, without augmentation."""
    step = 0
    while True:
        index = torch.from_numpy(training.batches.at(step)[0][0])
        yield training.data.x[index], training.data.y[index]
        step += 1


def check_equal(ours: Training, plain: PlainResNet) -> None:
    """Both sides must be the same function."""
    leaves = ours.layout.leaves(ours.state.flat)
    plain.load(leaves)
    x = ours.data.x[:16]
    with torch.no_grad():
        torch.testing.assert_close(forward(ours.net, leaves, x[None], train=True)[0], plain(x), rtol=1e-4, atol=1e-4)


def rates(steps: int, repeats: int, *works: Callable[[], object]) -> tuple[list[float], list[float]]:
    """Median batches per second of each, and median ratios to the first, from rounds in which all run in turn."""
    rounds = []
    for _ in range(repeats + 1):
        seconds = []
        for work in works:
            start = time.perf_counter()
            for _ in range(steps):
                work()
            seconds.append((time.perf_counter() - start) / steps)
        rounds.append(seconds)
    measured = rounds[1:]
    medians = [statistics.median(column) for column in zip(*measured, strict=True)]
    return [1 / one for one in medians], [
        statistics.median(one[0] / one[i] for one in measured) for i in range(len(works))
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    good = True

    ours, plain = training(augmented=False), PlainResNet()
    check_equal(ours, plain)
    loop = PlainLoop(plain, in_memory(ours))
    speeds, ratios = rates(options.steps, options.repeats, loop.step, ours.step)
    print(
        "| ResNet-20, width 16, bfloat16 | plain, pictures/s | here, pictures/s | ratio | bar |\n|---|---|---|---|---|"
    )
    print(f"| step, pictures in memory | {speeds[0] * BATCH:.0f} | {speeds[1] * BATCH:.0f} | {ratios[1]:.2f} | {BAR} |")
    good &= ratios[1] >= BAR

    augmented, loader = training(augmented=True), DataLoader(EncodedPictures(), BATCH, shuffle=True, drop_last=True)
    loop = PlainLoop(plain, endless(loader))
    speeds, ratios = rates(options.steps, options.repeats, loop.step, augmented.step)
    print(f"| step, own data path | {speeds[0] * BATCH:.0f} | {speeds[1] * BATCH:.0f} | {ratios[1]:.2f} | {BAR} |")
    good &= ratios[1] >= BAR
    batches = endless(loader)
    speeds, ratios = rates(options.steps, options.repeats, lambda: next(batches), augmented._batch)
    print(f"| data alone | {speeds[0] * BATCH:.0f} | {speeds[1] * BATCH:.0f} | {ratios[1]:.2f} | - |", flush=True)

    print(f"\n| {MEMBERS} members, float32, width, pixels | looped, pictures/s | folded | ratio | taken |")
    print("|---|---|---|---|---|")
    for width, size in ((4, 32), (8, 14), (8, 32), (16, 14), (16, 32)):
        folded, looped = (training(False, MEMBERS, width, "float32", size) for _ in range(2))
        taken = "folded" if folded.net.batches_members else "looped"
        folded.chunk, looped.chunk = MEMBERS, 1
        speeds, ratios = rates(1, options.repeats, looped.step, folded.step)
        pace = [speed * BATCH * MEMBERS for speed in speeds]
        print(f"| {width}, {size} x {size} | {pace[0]:.0f} | {pace[1]:.0f} | {ratios[1]:.2f} | {taken} |", flush=True)
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
