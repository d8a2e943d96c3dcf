"""Read a stream to its end, even if guard is told to stop before.

Ctrl-C goes to every process at the terminal: the agent CLI that writes the stream ends too, and has last lines to write. So
the first one is only noted, and the second ends guard. SIGTERM and SIGHUP are for guard alone: what was written by then is
read.
"""

import os
import select
import signal
from contextlib import ExitStack, suppress
from types import FrameType

from guard.system.signals import handle_signals

_CHUNK = 256 * 1024
_MOST_BYTES_AFTER = 4 * 1024 * 1024
_SECONDS_AFTER = 2.0


class Intake:
    """One descriptor to read: `with Intake(0) as intake:`, then wait and read until a read returns no bytes."""

    def __init__(self, source: int) -> None:
        self._source = source
        self._held = ExitStack()
        self._bell = (-1, -1)
        self._left: int | None = None
        """How many bytes may still be read, once guard was told to stop."""
        self.interrupted = False
        """Whether guard was told to stop."""
        self.at_end = False

    def __enter__(self) -> "Intake":
        self._bell = os.pipe()
        for end in self._bell:
            self._held.callback(os.close, end)
        self._held.enter_context(handle_signals((signal.SIGALRM,), _stop))
        self._held.callback(signal.setitimer, signal.ITIMER_REAL, 0)
        signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        self._held.enter_context(handle_signals(signals, self._on_signal))
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def wait(self, seconds: float | None) -> bool:
        return bool(select.select([self._source, self._bell[0]], [], [], seconds)[0])

    def read(self) -> bytes:
        """Return the bytes that are there; none at the end, or once guard has to stop and all that was there is read."""
        while True:
            readable = select.select([self._source, self._bell[0]], [], [])[0]
            if self._source in readable and self._left != 0:
                with suppress(BlockingIOError):
                    return self._count_bytes(os.read(self._source, _CHUNK))
            elif self._left is not None:
                return b""

    def _count_bytes(self, data: bytes) -> bytes:
        self.at_end = not data
        if self._left is not None:
            self._left = max(0, self._left - len(data))
        return data

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.interrupted:
            _stop(number, frame)
        self.interrupted = True
        if number != signal.SIGINT:
            self._left = _MOST_BYTES_AFTER
            # The reader of guard's output may have stopped reading: then guard ends all the same.
            signal.setitimer(signal.ITIMER_REAL, _SECONDS_AFTER)
            os.write(self._bell[1], b"!")


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
