"""Waits for news of files and processes: woken by the system where it can, and looking now and then for what it misses."""

import os
import time
from collections.abc import Iterable
from pathlib import Path

from guard.system.file_events import Bell, bell_for
from guard.system.process_standing import standing

_Sign = tuple[int, int, int] | None
"""What changes with a file: which it is, its size, and its time; None while there is none."""


class News:
    """Files that are appended to, replaced, made or deleted, and processes that end; all since the last news.

    What happens between making it and the first wait is news, too: make it first, then read, then wait.
    """

    def __init__(self, files: Iterable[Path], processes: Iterable[tuple[int, str]] = ()) -> None:
        self._files = [Path(os.path.abspath(file)) for file in files]
        self._running = set(processes)
        self._bell: Bell = bell_for(self._files, [pid for pid, _ in self._running])
        self._signs = [_sign(file) for file in self._files]

    def wait(self, seconds: float) -> bool:
        """Whether there is news, which there may be at once; False after this time."""
        deadline = time.monotonic() + seconds
        while not self._is_news():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._bell.wait(min(left, self._bell.patience))
        return True

    def close(self) -> None:
        """Stop watching."""
        self._bell.close()

    def __enter__(self) -> "News":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _is_news(self) -> bool:
        ended = {one for one in self._running if standing(*one) in ("gone", "reused")}
        self._running -= ended
        before, self._signs = self._signs, [_sign(file) for file in self._files]
        return bool(ended) or before != self._signs


def _sign(file: Path) -> _Sign:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
