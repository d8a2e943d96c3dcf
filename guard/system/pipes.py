"""Pass bytes on unchanged, at the reader's pace, without holding up the writer.

A reader that pauses, such as a pager, must not keep guard from hearing what the agent says. So up to a cap the bytes wait here;
beyond it the agent has to wait, as it would without guard.
"""

import fcntl
import os
import select
import threading
from collections import deque
from contextlib import suppress
from typing import IO

_SET_SIZE = getattr(fcntl, "F_SETPIPE_SZ", None)
_MOST_AHEAD = 1024 * 1024
_MOST_AHEAD_AT_THE_END = 64 * 1024 * 1024


class Outlet:
    """One descriptor, written to by a thread of its own."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._pieces: deque[bytes] = deque()
        self._taken = self._passed = 0
        """Bytes that were handed over, and those of them that were passed on."""
        self._most = _MOST_AHEAD
        self._gone = False
        self._waiting = 0
        self._changed = threading.Condition()
        threading.Thread(target=self._pass_on, daemon=True).start()

    def put(self, data: bytes) -> None:
        """Hand over bytes; wait while too many are waiting already."""
        with self._changed:
            self._waiting += 1
            self._changed.wait_for(lambda: self._taken - self._passed < self._most or self._gone)
            self._waiting -= 1
            if not self._gone:
                self._pieces.append(data)
                self._taken += len(data)
                self._changed.notify_all()

    def take_the_rest(self) -> None:
        """Take at once all that a writer which has ended still had to say."""
        with self._changed:
            self._most = _MOST_AHEAD_AT_THE_END
            self._changed.notify_all()

    @property
    def is_held_up(self) -> bool:
        """Whether a writer waits for the reader."""
        with self._changed:
            return self._waiting > 0

    def flush(self) -> None:
        """Wait until all bytes handed over by now are passed on, or the reader has gone."""
        with self._changed:
            end = self._taken
            self._changed.wait_for(lambda: self._passed >= end or self._gone)

    def _pass_on(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._pieces))
                data = self._pieces[0]
            written = self._write(data)
            with self._changed:
                self._pieces.popleft()
                self._passed += len(data)
                if not written:
                    # A reader that has gone is no reason to stop the agent, and misses nothing.
                    self._gone, self._passed = True, self._taken
                    self._pieces.clear()
                self._changed.notify_all()
                if self._gone:
                    return

    def _write(self, data: bytes) -> bool:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._target, view) :]
            except BlockingIOError:
                select.select([], [self._target], [], 1.0)
            except OSError:
                return False
        return True


def widen(pipe: IO[bytes], size: int) -> None:
    """Let a pipe hold this many bytes, where the system can and allows it."""
    if _SET_SIZE is not None:
        with suppress(OSError):
            fcntl.fcntl(pipe.fileno(), _SET_SIZE, size)
