"""The device that a config's `device` means on this machine."""

import torch

from jumpboard.errors import InputError


def choose_device(name: str) -> torch.device:
    """`auto` is the first GPU, or the CPU where there is none. Raises InputError for a GPU that is not there."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise InputError(f"config: device is '{name}', but this machine has {torch.cuda.device_count()} CUDA devices")
    return device
