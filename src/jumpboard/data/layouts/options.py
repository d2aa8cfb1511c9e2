"""What shape and options of a copy's entry must be like, whether or not the copy is there. Imports nothing heavy."""

from collections.abc import Mapping
from typing import Any

from jumpboard.errors import InputError

MODES = {1: "L", 3: "RGB"}  # channels -> Pillow's name of the colours


def check_options(place: str, entry: Mapping[str, Any]) -> None:
    """Hold an entry's shape against its `resize` and `crop`. Raises InputError whose message begins with `place`."""
    shape, options = list(entry["shape"]), entry.get("options", {})
    if len(shape) != 3 or shape[0] not in MODES:
        raise InputError(f"{place}: shape is {shape}; accepted: [1 or 3, height, width]")
    if ("resize" in options) != ("crop" in options):
        raise InputError(f"{place}: options {options}; accepted: resize and crop together, or neither")
    if "crop" in options and not (shape[1:] == [options["crop"]] * 2 and options["crop"] <= options["resize"]):
        raise InputError(
            f"{place}: crop is {options['crop']} and resize {options['resize']}; accepted: a crop of the shape's"
            f" {shape[1:]}, from pictures that are no smaller"
        )
