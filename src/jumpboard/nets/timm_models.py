"""timm models by name, built for a data set's pictures and classes, never downloaded."""

import difflib
from typing import Any

from torch import nn

from jumpboard.errors import InputError


def create(name: str, input_shape: tuple[int, ...], classes: int) -> nn.Module:
    """The model with random weights from torch's global generator; on the meta device without weights.

    Raises InputError for a name that timm does not have, with the nearest ones, or that holds the tag of pretrained
    weights, and for pictures that the model cannot take.
    """
    import timm
    from timm.models import get_pretrained_cfg

    known = timm.list_models()
    untagged = name.partition(".")[0]
    if name != untagged and untagged in known:
        raise InputError(
            f"timm: model '{name}' holds the tag of pretrained weights; accepted: '{untagged}', with the file of the"
            " weights under 'weights'"
        )
    if name not in known:
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.0)
        raise InputError(f"timm: model '{name}' is not known; nearest: {', '.join(near)}")
    if len(input_shape) != 3:
        raise InputError(f"timm: input shape {input_shape} must be (channels, height, width)")
    settings = get_pretrained_cfg(name)
    fixed = settings is not None and settings.fixed_input_size
    options: dict[str, Any] = {"img_size": input_shape[1:]} if fixed else {}
    try:
        model: nn.Module = timm.create_model(name, num_classes=classes, in_chans=input_shape[0], **options)
    except Exception as error:  # models written by others raise whatever they like
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise InputError(f"timm: {name} cannot be built for pictures of shape {input_shape}: {reason}") from None
    patch = getattr(getattr(model, "patch_embed", None), "patch_size", None)
    if isinstance(patch, tuple) and any(size % step for size, step in zip(input_shape[1:], patch, strict=True)):
        raise InputError(
            f"timm: {name} cuts pictures into patches of {patch[0]} x {patch[1]}, of which {input_shape} is no multiple"
        )
    return model
