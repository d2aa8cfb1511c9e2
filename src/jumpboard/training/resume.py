"""State of running trainings on disk, so that a killed job goes on where it was.

A store is a folder with two slots that are written in turn, each whole or not at all, under a lock that a successor
waits for as long as an orphaned predecessor lives. A slot holds the SHA-256 of what follows it and a safetensors
body whose header names the run's digest: a damaged or foreign slot is refused, and said so, and the other one used.
"""

import fcntl
import hashlib
import json
import logging
import os
import stat
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from jumpboard.artefacts.files import remove_leftovers, replacing
from jumpboard.errors import InputError

SLOTS = ("a.state", "b.state")
log = logging.getLogger(__name__)


def _refuse_obstacle(path: Path) -> None:
    """Raise InputError where something on the way to `path` will never be a folder: a file, a link to nowhere."""
    for place in (path, *path.parents):
        try:
            mode = place.stat().st_mode
            found = "" if place == path or stat.S_ISDIR(mode) else "no folder"
        except (FileNotFoundError, NotADirectoryError):
            found = "a link to nowhere" if place.is_symlink() else ""
        if found:
            raise InputError(f"{place}: {found}, so no state can be kept there; accepted: a folder, or nothing")


class ResumeStore:
    """Use as a context: the lock is held inside. `digest` identifies what is trained; other states are refused."""

    def __init__(self, folder: Path, digest: str) -> None:
        self.folder = folder
        self.digest = digest
        self._lock = -1
        self._next = 0

    def __enter__(self) -> "ResumeStore":
        path = self.folder / "lock"
        while True:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                self._lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
            except (FileNotFoundError, FileExistsError, NotADirectoryError):
                _refuse_obstacle(path)
                continue  # a predecessor removed the folder in between
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                log.info("%s: another process trains this cell; waiting for it to end", self.folder)
                fcntl.flock(self._lock, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):
                if os.fstat(self._lock).st_ino == path.stat().st_ino:
                    return self
            os.close(self._lock)  # the predecessor finished and removed the file that was locked here

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._lock)

    def save(self, tensors: dict[str, Tensor], text: str, step: int) -> None:
        """Write a state over the older slot."""
        header = json.dumps({"digest": self.digest, "step": step, "state": text}, sort_keys=True)
        body = save({name: tensor.contiguous().cpu() for name, tensor in tensors.items()}, {"jumpboard": header})
        with replacing(self.folder / SLOTS[self._next]) as temporary, open(temporary, "wb") as handle:
            handle.write(hashlib.sha256(body).digest())
            handle.write(body)
        self._next = 1 - self._next

    def load(self) -> tuple[dict[str, Tensor], str] | None:
        """The newest sound state of this run, or None."""
        found = []
        for index, name in enumerate(SLOTS):
            path = self.folder / name
            if not path.exists():
                continue
            try:
                found.append((*self._read(path), index))
            except ValueError as error:
                log.warning("%s: %s; not used", path, error)
        if not found:
            return None
        step, tensors, text, index = max(found, key=lambda one: one[0])
        self._next = 1 - index
        log.info("going on from step %d, saved in %s", step, self.folder)
        return tensors, text

    def _read(self, path: Path) -> tuple[int, dict[str, Tensor], str]:
        content = path.read_bytes()
        digest, body = content[:32], content[32:]
        if hashlib.sha256(body).digest() != digest:
            raise ValueError("saved state is damaged or cut short")
        try:
            length = int.from_bytes(body[:8], "little")
            header = json.loads(json.loads(body[8 : 8 + length])["__metadata__"]["jumpboard"])
            tensors = load(body)
        except (SafetensorError, KeyError, ValueError):
            raise ValueError("not a saved state") from None
        if header["digest"] != self.digest:
            raise ValueError("saved state of another code, config or data version")
        return header["step"], tensors, header["state"]

    def clear(self) -> None:
        """Remove the states and the lock file; call when the last output is in place, inside the context."""
        for name in (*SLOTS, "lock"):
            remove_leftovers(self.folder / name)
            (self.folder / name).unlink(missing_ok=True)
        for folder in (self.folder, *self.folder.parents):
            try:
                folder.rmdir()
            except OSError:
                return
