"""Files from the network: whole, of their published checksum, or not there at all.

A file that is already there is checked and kept; a wrong one is named and fetched again. Mirrors are tried in order. A
host that sends nothing for `STALL` seconds, or that is not done after `LIMIT`, is given up for the next. As only files
of the published checksum are kept, nothing here can change a number, and the code digest leaves this module out.
"""

import hashlib
import http.client
import logging
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jumpboard.artefacts.files import replacing
from jumpboard.errors import InputError

STALL, LIMIT = 30.0, 3600.0
ALGORITHMS = ("sha256", "md5")
BLOCK = 2**16

log = logging.getLogger(__name__)


class _MirrorError(Exception):
    """Why a mirror did not give the file."""


def checksum_of(file: Mapping[str, Any]) -> tuple[str, str]:
    """Algorithm and hex digest of an inventory file: its SHA-256 where one is published, else its MD5."""
    algorithm = next(name for name in ALGORITHMS if name in file)
    return algorithm, file[algorithm]


def _is_whole(path: Path, file: Mapping[str, Any]) -> bool:
    algorithm, wanted = checksum_of(file)
    with open(path, "rb") as handle:
        digest = hashlib.file_digest(handle, lambda: hashlib.new(algorithm, usedforsecurity=False))
    return digest.hexdigest() == wanted


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code}"
    cause = getattr(error, "reason", error)
    if isinstance(cause, TimeoutError):
        return f"nothing for {STALL:g} s"
    return getattr(cause, "strerror", None) or str(cause) or type(cause).__name__


def _blocks(url: str) -> Iterator[bytes]:
    """The bytes that a mirror sends. Raises _MirrorError where it fails, stalls or takes too long."""
    started = time.monotonic()
    request = urllib.request.Request(url, headers={"User-Agent": "jumpboard"})
    try:
        with urllib.request.urlopen(request, timeout=STALL) as response:
            while block := response.read1(BLOCK):  # one receive at a time, or a trickle would never meet the limit
                yield block
                if time.monotonic() - started > LIMIT:
                    raise _MirrorError(f"not done in {LIMIT:g} s")
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _MirrorError(_reason(error)) from None


def _copy(url: str, target: Path, file: Mapping[str, Any]) -> None:
    algorithm, wanted = checksum_of(file)
    digest, size = hashlib.new(algorithm, usedforsecurity=False), 0
    with replacing(target) as temporary:
        with open(temporary, "wb") as handle:
            for block in _blocks(url):
                digest.update(block)
                size += handle.write(block)
        if digest.hexdigest() != wanted:
            raise _MirrorError(f"wrong {algorithm} of {size} bytes")


def fetch(target: Path, file: Mapping[str, Any], mirrors: Sequence[str], remedy: str) -> None:
    """Make `target` the inventory file `file` (its name and checksum), from the first mirror that gives it.

    Raises InputError, naming the file, each mirror with its reason, and `remedy`, where none does.
    """
    if target.is_file():
        if _is_whole(target, file):
            return
        log.info("%s: there, but with a wrong %s; fetched again", target, checksum_of(file)[0])
    reasons = []
    for url in (mirror + file["name"] for mirror in mirrors):
        log.info("%s: from %s", target.name, url)
        try:
            _copy(url, target, file)
            return
        except _MirrorError as error:
            reasons.append(f"{urlsplit(url).netloc}: {error}")
            log.info("%s: %s", target.name, reasons[-1])
    raise InputError(f"{target}: no mirror gives it ({'; '.join(reasons)}); {remedy}")


def local_copy(dataset: str, source: Mapping[str, Any]) -> Path | None:
    """The folder or archive that a data set is read from: its `path`, or `folder` with all of `files` fetched into it.

    None for a data set that needs neither. Raises InputError for a path that is not there and files that no mirror
    gives.
    """
    if "path" in source:
        place = Path(source["path"]).expanduser()
        if not place.exists():
            raise InputError(
                f"{place}: no such folder; accepted: a copy of {dataset}, named by `paths` or `path` of its entry"
            )
        return place
    if "files" not in source:
        return None
    folder = Path(source["folder"])
    remedy = f"put it there by hand, or name a copy of {dataset} by `paths: {{{dataset}: FOLDER}}`"
    for file in source["files"]:
        fetch(folder / file["name"], file, source["mirrors"], remedy)
    return folder
