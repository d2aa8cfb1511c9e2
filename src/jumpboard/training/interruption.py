"""SIGTERM and SIGINT ask a training to stop at the next step; it saves its state and leaves with 128 + the signal."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(SystemExit):
    """Raised by the engine after its state is saved."""


class StopRequest:
    """`signal` is the number received, or 0."""

    def __init__(self) -> None:
        self.signal = 0

    def note(self, number: int, frame: FrameType | None) -> None:
        self.signal = number


@contextmanager
def stop_request() -> Iterator[StopRequest]:
    """Catch both signals inside the context; the previous handlers come back after it."""
    request = StopRequest()
    numbers = (signal.SIGTERM, signal.SIGINT)
    previous = {number: signal.signal(number, request.note) for number in numbers}
    try:
        yield request
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
