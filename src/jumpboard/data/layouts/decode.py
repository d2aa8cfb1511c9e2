"""One picture file -> [C, H, W] uint8, as the data set's entry wants it.

Pictures must be of the entry's colours: RGB for 3 channels, 8-bit grey for 1; with `options.convert` others of 8 bits a
value are converted. A file must hold one picture, of no more pixels than Pillow's limit. With `options.resize` and
`options.crop` the short side is resized (bilinear, antialiased) and the centre cut out, as pretrained nets are
evaluated.
"""

import io
import warnings

import numpy as np
from PIL import Image, UnidentifiedImageError

from jumpboard.data.layouts.options import MODES
from jumpboard.data.layouts.source import Spec
from jumpboard.errors import InputError

SUFFIXES = (".bmp", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")
FORMATS = ("BMP", "JPEG", "PNG", "PPM", "TIFF", "WEBP")  # decoders that run no other program
WIDE = ("I", "F")  # first letters of the modes of more than 8 bits a value, which Pillow cuts off at 255
LARGEST = 2**26  # pixels of a resized picture
BOMBS = (Image.DecompressionBombWarning, Image.DecompressionBombError)


def decode(data: bytes, name: str, spec: Spec) -> np.ndarray:
    """The picture in `data`, [C, H, W] uint8. Raises InputError, naming `name`, for one that cannot be decoded, is of
    other colours or too large, and for several in one file."""
    options, mode = spec.get("options", {}), MODES[spec["shape"][0]]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            picture: Image.Image = Image.open(io.BytesIO(data), formats=FORMATS)
            frames = getattr(picture, "n_frames", 1)
            if frames == 1:
                picture.load()
    except UnidentifiedImageError:
        raise InputError(f"{name}: is no picture; accepted: a whole {', '.join(FORMATS)}, or no such file") from None
    except BOMBS:
        raise InputError(f"{name}: picture of more than {Image.MAX_IMAGE_PIXELS} pixels; make it smaller") from None
    except (OSError, EOFError, SyntaxError, ValueError) as error:
        raise InputError(f"{name}: picture cannot be decoded ({error}); remove it or copy it again") from None
    if frames > 1:
        raise InputError(f"{name}: holds {frames} pictures (frames or pages); accepted: one")
    if picture.mode.startswith(WIDE):
        raise InputError(f"{name}: picture of mode {picture.mode}, more than 8 bits a value; accepted: 8 bits a value")
    if picture.mode != mode:
        if not options.get("convert", False):
            raise InputError(
                f"{name}: picture of colours {picture.mode}; accepted: {mode}, or any with options.convert true"
            )
        picture = picture.convert(mode)
    if "resize" in options:
        short, long = sorted(picture.size)
        if options["resize"] ** 2 * long > LARGEST * short:
            raise InputError(f"{name}: picture of {short} x {long}, too long to be resized to {options['resize']}")
        from torchvision.transforms.functional import center_crop, resize

        picture = center_crop(resize(picture, options["resize"]), options["crop"])
    return np.atleast_3d(np.asarray(picture)).transpose(2, 0, 1)
