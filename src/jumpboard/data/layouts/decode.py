"""One picture file -> [C, H, W] uint8, as the data set's entry wants it.

Pictures must be of the entry's colours: RGB for 3 channels, 8-bit grey for 1; with `options.convert` others are
converted. With `options.resize` and `options.crop` the short side is resized (bilinear, antialiased) and the centre cut
out, as pretrained nets are evaluated.
"""

import io

import numpy as np
from PIL import Image, UnidentifiedImageError

from jumpboard.data.layouts.source import Spec
from jumpboard.errors import InputError

SUFFIXES = (".bmp", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")
FORMATS = ("BMP", "JPEG", "PNG", "PPM", "TIFF", "WEBP")  # decoders that run no other program
MODES = {1: "L", 3: "RGB"}


def decode(data: bytes, name: str, spec: Spec) -> np.ndarray:
    """The picture in `data`, [C, H, W] uint8. Raises InputError, naming `name`, for one that cannot be decoded or is
    of other colours."""
    options, mode = spec.get("options", {}), MODES[spec["shape"][0]]
    try:
        picture: Image.Image = Image.open(io.BytesIO(data), formats=FORMATS)
        picture.load()
    except UnidentifiedImageError:
        raise InputError(f"{name}: is no picture; accepted: a whole {', '.join(FORMATS)}, or no such file") from None
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise InputError(f"{name}: picture cannot be decoded ({error}); remove it or copy it again") from None
    if picture.mode != mode:
        if not options.get("convert", False):
            raise InputError(
                f"{name}: picture of colours {picture.mode}; accepted: {mode}, or any with options.convert true"
            )
        picture = picture.convert(mode)
    if "resize" in options:
        from torchvision.transforms.functional import center_crop, resize

        picture = center_crop(resize(picture, options["resize"]), options["crop"])
    return np.atleast_3d(np.asarray(picture)).transpose(2, 0, 1)
