"""How many GPUs there are, how many a job asks for and in which words, told without importing torch.

The workflow and its default profile ask before any job runs.
"""

import os
import re
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

from jumpboard.errors import InputError
from jumpboard.training.slots import chosen_names

DEVICE_FILES = Path("/dev")


def gpu_count() -> int:
    """GPUs of this machine: NVIDIA's device files, or fewer where CUDA_VISIBLE_DEVICES names fewer; may be 0."""
    files = sum(path.name.removeprefix("nvidia").isdigit() for path in DEVICE_FILES.glob("nvidia*"))
    chosen = chosen_names(os.environ)
    return files if chosen is None else min(files, len(chosen))


def gpus_asked(device: str, wanted: int, elsewhere: bool) -> int:
    """GPUs that a job asks for under a config's `device`: none on a CPU.

    `auto` asks where this machine has a GPU, and for jobs that run `elsewhere`, on the nodes of a cluster, always: the
    machine that submits them says nothing about those.
    """
    on_gpu = device.startswith("cuda") or (device == "auto" and (elsewhere or gpu_count() > 0))
    return wanted if on_gpu else 0


def take_gres(config: MutableMapping[str, Any]) -> str | None:
    """Take the key `gres` out of a merged config: the name by which a cluster counts its GPUs, `gpu` or `gpu:a100`.

    It says how the cluster is asked, and nothing about the run: the run's own config must not hold it. Raises
    InputError for a name that SLURM would not take.
    """
    name = config.pop("gres", None)
    if name is None:
        return None
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z]\w*(:\w[\w.]*)?", name):
        raise InputError(f"config: gres is '{name}'; accepted: a name, perhaps with a type, as in gpu or gpu:a100")
    return name
