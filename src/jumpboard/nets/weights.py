"""Weights of one model from a local file: `.safetensors`, or `.pth` and `.pt` as torch writes them.

Of a file of torch only tensors and plain containers are read (`weights_only`): code in it does not run. Tensors may
stand below `state_dict` or `model`, and their names may begin with `module.`, as data-parallel training leaves them. A
file that also holds the average of the weights along training is two nets, and refused.
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
AVERAGES = ("state_dict_ema", "model_ema")
PREFIX = "module."
VARIANCE = "running_var"


def read_weights(path: Path) -> dict[str, Tensor]:
    """Tensors by name, floating-point ones as float32.

    Raises InputError for a file that is not there, of another kind, damaged, that holds more than one net, or that
    holds anything but dense tensors.
    """
    if path.is_dir():
        raise InputError(f"{path}: is a folder; accepted: one file, {', '.join(SUFFIXES)}")
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path}: weights of this kind are not read; accepted: {', '.join(SUFFIXES)}")
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    tensors = _unwrapped(path, _loaded(path))
    if all(name.startswith(PREFIX) for name in tensors):
        tensors = {name.removeprefix(PREFIX): tensor for name, tensor in tensors.items()}
    plain = {name: tensor.detach() for name, tensor in tensors.items()}
    return {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in plain.items()}


def check_numbers(path: Path, leaves: Mapping[str, Tensor]) -> None:
    """Raise InputError, naming the file and the leaf, unless all leaves [...] are of floating point and finite as
    float32, and running variances not negative."""
    for name, leaf in leaves.items():
        if not leaf.is_floating_point():
            raise InputError(f"{path}: leaf '{name}' is of {leaf.dtype}; accepted: floating point")
        if not bool(leaf.isfinite().all()):
            raise InputError(f"{path}: leaf '{name}' holds NaN or infinite values; accepted: finite float32")
        if name.endswith(VARIANCE) and bool((leaf < 0).any()):
            raise InputError(f"{path}: leaf '{name}' holds the variance {float(leaf.min())}; accepted: 0 or more")


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
        nets = [key for key in (*WRAPPERS, *AVERAGES) if isinstance(content.get(key), Mapping)]
        if len(nets) > 1:
            raise InputError(
                f"{path}: holds weights under '{nets[0]}' and '{nets[1]}'; accepted: one of them, saved to its own file"
            )
        content = content[nets[0]] if nets and nets[0] in WRAPPERS else content
    if not isinstance(content, Mapping) or not content:
        raise InputError(f"{path}: holds {type(content).__name__}; accepted: tensors by name")
    for name, value in content.items():
        if not isinstance(name, str) or not isinstance(value, Tensor):
            raise InputError(f"{path}: key '{name}' holds {type(value).__name__}; accepted: tensors by name")
        kind = _unusual(value)
        if kind:
            raise InputError(f"{path}: leaf '{name}' is a {kind} tensor; accepted: dense tensors with values")
    return dict(content)


def _unusual(tensor: Tensor) -> str:
    """What keeps a tensor from being read as an array; empty for most."""
    if tensor.is_nested:
        return "nested"
    if tensor.is_meta:
        return "meta"
    if tensor.is_quantized:
        return "quantised"
    return "" if tensor.layout == torch.strided else "sparse"
