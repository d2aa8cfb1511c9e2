"""Progress of long work: a bar on a terminal, a plain line now and then in a log."""

import sys
import time

from tqdm import tqdm

SECONDS_BETWEEN_LINES = 10.0


class Progress:
    """Shows steps done, loss and time left on standard error."""

    def __init__(self, label: str, total: int, done: int) -> None:
        self._label, self._total, self._started_at = label, total, done
        self._start = self._last = time.monotonic()
        self._bar = tqdm(total=total, initial=done, desc=label, unit="step") if sys.stderr.isatty() else None

    def update(self, done: int, loss: float) -> None:
        """Say where the work is, if it is time to."""
        if self._bar is not None:
            self._bar.set_postfix(loss=f"{loss:.3f}", refresh=False)
            self._bar.update(done - self._bar.n)
            return
        now = time.monotonic()
        if now - self._last >= SECONDS_BETWEEN_LINES or done == self._total:
            self._last = now
            left = (now - self._start) / max(1, done - self._started_at) * (self._total - done)
            print(f"{self._label}: step {done}/{self._total}, loss {loss:.3f}, {left:.0f} s left", file=sys.stderr)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
