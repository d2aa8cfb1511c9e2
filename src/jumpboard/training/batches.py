"""Which samples a member sees at a step: a pure function of its seed and the step.

Each epoch is one permutation of the M samples from the order stream, cut into whole batches; what is left over of an
epoch is dropped. A batch larger than M is cut to M.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from jumpboard.data.augmentation import Augmentation, draw_augmentation
from jumpboard.streams import AUGMENTATION, ORDER, generator


@dataclass
class Batches:
    """Indices and augmentation of all members, remembering the current epoch's draws only for speed."""

    seeds: Sequence[int]
    samples: int
    batch: int
    crop: int = 0
    flip: bool = False
    _epoch: int = field(default=-1, init=False)
    _orders: np.ndarray = field(init=False)
    _augmentations: list[Augmentation] = field(init=False)

    def __post_init__(self) -> None:
        self.batch = min(self.batch, self.samples)

    def _draw(self, epoch: int) -> None:
        if epoch == self._epoch:
            return
        self._orders = np.stack([generator(seed, ORDER, epoch).permutation(self.samples) for seed in self.seeds])
        self._augmentations = [
            draw_augmentation(generator(seed, AUGMENTATION, epoch), self.samples, self.crop, self.flip)
            for seed in self.seeds
            if self.crop or self.flip
        ]
        self._epoch = epoch

    def at(self, step: int) -> tuple[np.ndarray, list[Augmentation]]:
        """Indices [G, batch] into the training samples, and each member's augmentation (none if it is off)."""
        epoch, position = divmod(step, self.samples // self.batch)
        self._draw(epoch)
        part = slice(position * self.batch, (position + 1) * self.batch)
        return self._orders[:, part], [Augmentation(one.offsets[part], one.flips[part]) for one in self._augmentations]
