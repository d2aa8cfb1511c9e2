"""One GPU for one process: several jobs on a machine without a scheduler each take a device of their own.

A device is taken by an exclusive lock (flock) on a file that bears its name, in a folder of this user's under the
folder for temporary files. The lock lasts as long as the process: the kernel releases it at its end, however it ends.
The files are never removed, so that a name always means one file. Knows nothing of CUDA: the caller names the devices.
"""

import fcntl
import logging
import os
import stat
import tempfile
import time
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from urllib.parse import quote

from jumpboard.errors import InputError

POLL = 0.5  # seconds between two looks at devices that are all taken
log = logging.getLogger(__name__)
_held: list[int] = []  # descriptors, open until the process ends


def chosen_names(environ: Mapping[str, str]) -> list[str] | None:
    """The numbers or UUIDs in CUDA_VISIBLE_DEVICES, by which a scheduler or user chooses; None where all are visible.

    As CUDA reads it: the list ends before the first entry that names nothing.
    """
    if "CUDA_VISIBLE_DEVICES" not in environ:
        return None
    entries = (entry.strip() for entry in environ["CUDA_VISIBLE_DEVICES"].split(","))
    return list(takewhile(lambda entry: entry and not entry.startswith("-"), entries))


def device_names(count: int, environ: Mapping[str, str]) -> list[str]:
    """The names of the `count` devices that CUDA shows a process, in its order, as other processes know them."""
    chosen = chosen_names(environ) or []
    return chosen[:count] if len(chosen) >= count else [str(index) for index in range(count)]


def slot_folder() -> Path:
    """Where the lock files lie: one folder per user, made when missing."""
    return Path(tempfile.gettempdir()) / f"jumpboard-{os.getuid()}"


def take_slot(names: Sequence[str]) -> int:
    """Take the first free device of `names` for the life of this process, and give its place among them.

    Waits while all are taken. Raises InputError where the folder of locks is not this user's alone, so that nobody
    can lead a lock file elsewhere.
    """
    folder = _opened_folder()
    try:
        waiting = False
        while True:
            for place, name in enumerate(names):
                if _taken(folder, name):
                    return place
            if not waiting:
                log.info("GPU %s: taken by other processes; waiting for one to end", ", ".join(names))
                waiting = True
            time.sleep(POLL)
    finally:
        os.close(folder)


def _opened_folder() -> int:
    """A descriptor of the folder of locks, checked to be a folder of this user that no other can write to."""
    path = slot_folder()
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise InputError(f"{path}: no folder for the locks of GPUs: {error.strerror}") from None
    found = os.fstat(folder)
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o022:
        os.close(folder)
        raise InputError(f"{path}: others can write there; accepted: a folder of user {os.getuid()} with mode 700")
    return folder


def _taken(folder: int, name: str) -> bool:
    """Whether the lock of a device was free and is now held."""
    file = f"gpu-{quote(name, safe='')}.lock"
    try:
        lock = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600, dir_fd=folder)
    except OSError as error:
        raise InputError(f"{slot_folder() / file}: no lock of a GPU: {error.strerror}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return False
    _held.append(lock)
    return True
