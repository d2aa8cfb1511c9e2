"""Independent random streams of one seed: `SeedSequence([seed, stream])`, and `[seed, stream, epoch]` for the two that
run along training, so that order and augmentation are functions of the step and need no saved state."""

import numpy as np

WEIGHTS, ORDER, AUGMENTATION, BLOCK, MEASUREMENT = range(5)


def generator(seed: int, stream: int, *epoch: int) -> np.random.Generator:
    """The generator of a stream, PCG64, the same on every platform."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, stream, *epoch])))
