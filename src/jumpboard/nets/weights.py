"""Weights of one model from a local file: `.safetensors`, or `.pth` and `.pt` as torch writes them.

Of a file of torch only tensors and plain containers are read (`weights_only`): code in it does not run. Tensors may
stand below `state_dict` or `model`, and their names may begin with `module.`, as data-parallel training leaves them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from jumpboard.errors import InputError

SUFFIXES = (".safetensors", ".pth", ".pt")
WRAPPERS = ("state_dict", "model")
PREFIX = "module."


def read_weights(path: Path) -> dict[str, Tensor]:
    """Tensors by name, floating-point ones as float32.

    Raises InputError for a file that is not there, of another kind, damaged, or that holds anything but tensors.
    """
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path}: weights of this kind are not read; accepted: {', '.join(SUFFIXES)}")
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    tensors = _unwrapped(path, _loaded(path))
    if all(name.startswith(PREFIX) for name in tensors):
        tensors = {name.removeprefix(PREFIX): tensor for name, tensor in tensors.items()}
    return {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in tensors.items()}


def _loaded(path: Path) -> Any:
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        return torch.load(path, map_location="cpu", weights_only=True)
    except SafetensorError as error:
        reason = str(error)
    except Exception as error:  # torch raises many kinds for files that are no archives, cut short or hostile
        reason = f"not a whole file of tensors alone ({type(error).__name__})"
    raise InputError(f"{path}: cannot be read: {reason}")


def _unwrapped(path: Path, content: Any) -> dict[str, Tensor]:
    if isinstance(content, Mapping):
        content = next((content[key] for key in WRAPPERS if isinstance(content.get(key), Mapping)), content)
    if not isinstance(content, Mapping) or not content:
        raise InputError(f"{path}: holds {type(content).__name__}; accepted: tensors by name")
    for name, value in content.items():
        if not isinstance(name, str) or not isinstance(value, Tensor):
            raise InputError(f"{path}: key '{name}' holds {type(value).__name__}; accepted: tensors by name")
    return dict(content)
