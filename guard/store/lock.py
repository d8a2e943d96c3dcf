"""Lock a workspace, and keep in the lock file how far the views have been written.

`flock` on a file that is never deleted or replaced. The file also has the holder's name, for those who wait in vain, and the
mark up to which every view on disk is known to be current. Without the mark more has to be read; a mark that the log does not
reach shows that records were cut off. Processes that wait hold a shared lock on a second file, so that the holder sees them.
"""

import fcntl
import os
import random
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from zlib import crc32

from guard.core.log.record import Position
from guard.errors import StoreUnavailable
from guard.system.private_files import Folder, close, try_lock
from guard.system.process_identity import boot_id, process_state

LOCK, QUEUE = "workspace.lock", "workspace.queue"
_HOLDER_BYTES, _MARK_BYTES = 256, 256
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.05


class Lock:
    """One holding of the lock."""

    def __init__(self, descriptor: int, queue: int) -> None:
        self._descriptor = descriptor
        self._queue = queue

    def others_wait(self) -> bool:
        """Tell whether another process has asked for the lock and does not have it yet."""
        try:
            fcntl.flock(self._queue, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        with suppress(OSError):
            fcntl.flock(self._queue, fcntl.LOCK_UN)
        return False

    def mark(self) -> Position | None:
        return _parse_mark(os.pread(self._descriptor, _MARK_BYTES, _HOLDER_BYTES))

    def set_mark(self, position: Position) -> None:
        # Losing the mark costs time, not truth.
        text = f"{_boot()} {position.segment} {position.offset} {position.seq} {position.hash}"
        mark = f"{text} {crc32(text.encode()):08x}".encode()
        _write_hint(self._descriptor, mark, _HOLDER_BYTES, _MARK_BYTES)

    def clear_mark(self) -> None:
        _write_hint(self._descriptor, b"", _HOLDER_BYTES, _MARK_BYTES)


@contextmanager
def hold_lock(folder: Folder, timeout: float) -> Iterator[Lock]:
    """Hold the workspace's lock, waiting for at most `timeout` seconds."""
    deadline = time.monotonic() + timeout
    descriptor = folder.open_file(LOCK, os.O_RDWR | os.O_CREAT)
    queue = -1
    try:
        queue = folder.open_file(QUEUE, os.O_RDWR | os.O_CREAT)
        _acquire(descriptor, queue, folder, timeout)
        while not folder.is_same(descriptor, LOCK):
            # Another process deleted the lock file meanwhile: only the lock of the file that is there now counts.
            close(descriptor)
            descriptor = folder.open_file(LOCK, os.O_RDWR | os.O_CREAT)
            _acquire(descriptor, queue, folder, deadline - time.monotonic())
        _write_hint(descriptor, _describe(os.getpid()), 0, _HOLDER_BYTES)
        yield Lock(descriptor, queue)
    finally:
        # Let go by name, not only by closing: a child that was forked meanwhile holds the descriptor too.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        close(descriptor)
        if queue >= 0:
            close(queue)


def read_mark(folder: Folder) -> Position | None:
    """Read the mark without holding the lock."""
    with folder.open_if_any(LOCK) as descriptor:
        if descriptor is None:
            return None
        return _parse_mark(os.pread(descriptor, _MARK_BYTES, _HOLDER_BYTES))


def _acquire(descriptor: int, queue: int, folder: Folder, timeout: float) -> None:
    if try_lock(descriptor):
        return
    # Polling, because a blocking flock has no time limit. The pauses grow so long that among many writers each makes a row
    # of changes in its turn: to change hands after every one costs all of them more than it gives.
    deadline, pause, queued = time.monotonic() + timeout, _SHORTEST_PAUSE, False
    while not try_lock(descriptor):
        queued = queued or try_lock(queue, fcntl.LOCK_SH)
        if time.monotonic() >= deadline:
            text = os.pread(descriptor, _HOLDER_BYTES, 0).rstrip(b"\0\n ")
            holder = _living_holder(text.decode(errors="replace"))
            raise StoreUnavailable(
                f"guard waited {timeout:g} s for the lock {folder.path_of(LOCK)}, held by {holder}",
                "try again; if that process hangs, end it, which frees the lock",
            )
        time.sleep(random.uniform(pause / 2, pause))  # noqa: S311
        pause = min(pause * 1.5, _LONGEST_PAUSE)
    fcntl.flock(queue, fcntl.LOCK_UN)


def _living_holder(text: str) -> str:
    # A process that dies leaves its name in the file; one that it started may hold the lock on.
    number = text.removeprefix("pid ").partition(" ")[0]
    if number.isdecimal() and process_state(int(number), None) != "gone":
        return text
    return "a process that did not leave its name"


@cache
def _describe(pid: int) -> bytes:
    command = " ".join(os.path.basename(word) for word in sys.argv[:3])
    safe = "".join(c if c.isprintable() else "?" for c in command)
    return f"pid {pid} ({safe[:180]})".encode("ascii", "replace")


def _write_hint(descriptor: int, text: bytes, offset: int, size: int) -> None:
    with suppress(OSError):
        os.pwrite(descriptor, text[: size - 1].ljust(size - 1) + b"\n", offset)


@lru_cache(maxsize=4)
def _parse_mark(data: bytes) -> Position | None:
    # After a restart of the machine the mark may have reached the disk before the views did: then it says nothing.
    text, _, check = data.decode("ascii", "replace").strip("\0\n ").rpartition(" ")
    words = text.split(" ")
    if len(words) != 5 or check != f"{crc32(text.encode()):08x}" or words[0] != _boot():
        return None
    return Position(int(words[1]), int(words[2]), int(words[3]), words[4])


@cache
def _boot() -> str:
    return boot_id() or f"boot-{int(time.time() - time.monotonic())}"
