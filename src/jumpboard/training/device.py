"""The device that a config's `device` means on this machine, and on several GPUs in this process."""

import logging
import os

import torch

from jumpboard.errors import InputError
from jumpboard.training.slots import device_names, take_slot

log = logging.getLogger(__name__)


def choose_device(name: str) -> torch.device:
    """`auto` is a GPU, or the CPU where there is none; `cuda` a GPU; `cuda:1` the second that this process sees.

    Where a process sees several GPUs, `auto` and `cuda` take the first that no other process has, and wait for one;
    `cuda:1` waits for that one. The device stays this process's until it ends. Where it sees one, that was chosen for
    it (by a scheduler, or there is no other), and nothing is locked. Raises InputError for a GPU that is not there.
    """
    if name == "cpu" or (name == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    count, number = torch.cuda.device_count(), name.partition(":")[2]
    asked = int(number) if number else None
    if (asked or 0) >= count:
        raise InputError(f"config: device is '{name}', but this machine has {count} CUDA devices")
    names = device_names(count, os.environ)
    index = asked or 0
    if count > 1:
        index = take_slot(names) if asked is None else asked + take_slot(names[asked : asked + 1])
    log.info("device: cuda:%d, GPU %s", index, names[index])
    return torch.device("cuda", index)
