"""ZIP archives whose bytes depend on nothing but the names and contents in them."""

import zipfile
from collections.abc import Mapping
from pathlib import Path

from jumpboard.artefacts.files import replacing

BEGINNING = (1980, 1, 1, 0, 0, 0)  # the earliest time that the format knows


def write_zip(path: Path, contents: Mapping[str, bytes]) -> None:
    """Write `contents` (name in the archive -> bytes), sorted by name, whole or not at all."""
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(contents):
            entry = zipfile.ZipInfo(name, BEGINNING)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, wherever it is written, for the permissions
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, contents[name])
