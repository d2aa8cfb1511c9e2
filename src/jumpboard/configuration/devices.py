"""How many GPUs this machine has, told without importing torch: the workflow asks before any job runs."""

from pathlib import Path


def gpu_count() -> int:
    """Number of NVIDIA device files; 0 where there are none."""
    return sum(path.name.removeprefix("nvidia").isdigit() for path in Path("/dev").glob("nvidia*"))


def gpus_asked(device: str, wanted: int) -> int:
    """GPUs that a job reserves under a config's `device`: none where it runs on a CPU."""
    on_gpu = device.startswith("cuda") or (device == "auto" and gpu_count() > 0)
    return wanted if on_gpu else 0
