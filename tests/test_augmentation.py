"""Batched crop and flip against an image-by-image loop, and the law of the draws."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from jumpboard.data.augmentation import augment, draw_augmentation
from jumpboard.errors import InputError


def loop(x: Tensor, offsets: Tensor, flips: Tensor, crop: int) -> Tensor:
    """The obvious implementation: pad one image, cut one window, mirror it."""
    out = []
    for image, (down, right), flip in zip(x, offsets.tolist(), flips.tolist(), strict=True):
        channels, height, width = image.shape
        padded = torch.zeros(channels, height + 2 * crop, width + 2 * crop, dtype=x.dtype)
        padded[:, crop : crop + height, crop : crop + width] = image
        window = padded[:, down : down + height, right : right + width]
        out.append(window.flip(-1) if flip else window)
    return torch.stack(out)


@settings(max_examples=60, deadline=None)
@given(
    batch=st.integers(1, 6),
    channels=st.integers(1, 3),
    height=st.integers(1, 7),
    width=st.integers(1, 7),
    crop=st.integers(0, 4),
    seed=st.integers(0, 2**32 - 1),
    dtype=st.sampled_from([torch.float32, torch.float64, torch.bfloat16]),
    channels_last=st.booleans(),
)
def test_batched_equals_the_loop(
    batch: int, channels: int, height: int, width: int, crop: int, seed: int, dtype: torch.dtype, channels_last: bool
) -> None:
    """Every pixel is moved, mirrored or padded exactly as for one image alone, for any shape, type and layout."""
    generator = np.random.default_rng(seed)
    x = torch.from_numpy(generator.standard_normal((batch, channels, height, width))).to(dtype)
    if channels_last:
        x = x.to(memory_format=torch.channels_last)
    drawn = draw_augmentation(generator, batch, crop, flip=True)
    before = x.clone()
    torch.testing.assert_close(
        augment(x, drawn.offsets, drawn.flips, crop), loop(x, drawn.offsets, drawn.flips, crop), rtol=0, atol=0
    )
    assert torch.equal(x, before)


def test_the_middle_offset_without_flip_changes_nothing() -> None:
    """Evaluation and training agree on what an unmoved image is; offset 0 moves the image down and to the right."""
    x = torch.arange(2 * 3 * 5 * 4, dtype=torch.float32).view(2, 3, 5, 4) + 1
    kept = torch.zeros(2, dtype=torch.bool)
    assert torch.equal(augment(x, torch.full((2, 2), 2), kept, 2), x)
    moved = augment(x, torch.zeros(2, 2, dtype=torch.int64), kept, 2)
    assert torch.equal(moved[:, :, 2:, 2:], x[:, :, :-2, :-2])
    assert not moved[:, :, :2].any()
    assert not moved[:, :, :, :2].any()


def test_each_sample_has_its_own_draw() -> None:
    """Offsets and flips are uniform, and independent of each other: with one draw per batch, or with flips tied to
    offsets, the net would see far fewer pictures than it is said to."""
    count, crop = 40_000, 2
    drawn = draw_augmentation(np.random.default_rng(0), count, crop, flip=True)
    assert drawn.offsets.dtype == torch.int64
    assert drawn.flips.dtype == torch.bool
    cells = (drawn.offsets[:, 0] * 5 + drawn.offsets[:, 1]) * 2 + drawn.flips
    counts = torch.bincount(cells, minlength=50).double()
    expected = count / 50
    chi_squared = ((counts - expected).square() / expected).sum().item()
    assert chi_squared < 94  # the 99.99 % point with 49 degrees of freedom


def test_draws_are_a_function_of_the_generator() -> None:
    """A resumed run draws an epoch again and must see the same pictures; without flip none is mirrored."""
    first, again = (draw_augmentation(np.random.default_rng([7, 2, 3]), 50, 4, flip=True) for _ in range(2))
    other = draw_augmentation(np.random.default_rng([7, 2, 4]), 50, 4, flip=True)
    assert torch.equal(first.offsets, again.offsets)
    assert torch.equal(first.flips, again.flips)
    assert not torch.equal(first.offsets, other.offsets)
    unflipped = draw_augmentation(np.random.default_rng([7, 2, 3]), 50, 4, flip=False)
    assert not unflipped.flips.any()
    assert torch.equal(unflipped.offsets, first.offsets)


def test_vectors_and_negative_crops_are_refused() -> None:
    """Crop and flip mean nothing for mnist1d's vectors; a crop below 0 would cut pixels away."""
    drawn = draw_augmentation(np.random.default_rng(0), 3, 1, flip=True)
    with pytest.raises(InputError, match=r"\[3, 40\]"):
        augment(torch.zeros(3, 40), drawn.offsets, drawn.flips, 1)
    with pytest.raises(InputError, match="crop is -1"):
        draw_augmentation(np.random.default_rng(0), 3, -1, flip=True)
