"""Wait for file changes and process exits (inotify and pidfds, kqueue, or polling).

A bell may ring for nothing: it says when to look, not what happened. What the system misses is found by looking now and then.
"""

import ctypes
import os
import select
import selectors
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from guard.system.process_identity import process_state

_MODIFY, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x2, 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF, _ONLYDIR = 0x400, 0x800, 0x1000000
_MASK = _MODIFY | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF | _ONLYDIR
_BUFFER = 65536


def make_bell(files: Iterable[Path], pids: Iterable[int]) -> "Bell":
    """Make the best bell that this system has; where a limit is reached or a folder is missing, one that polls."""
    try:
        if sys.platform == "linux":
            return Inotify(files, pids)
        if sys.platform == "darwin" or sys.platform.startswith("freebsd"):
            return Kqueue(files, pids)
    except (OSError, AttributeError):
        pass
    return PollingBell()


class Bell(Protocol):
    """Rings when a file or a process may have changed."""

    @property
    def patience(self) -> float:
        """How many seconds to wait for it before looking all the same."""
        ...

    def wait(self, seconds: float) -> None: ...

    def close(self) -> None: ...


class PollingBell:
    """Never rings: the caller looks again when its time is over."""

    patience = 0.5

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def close(self) -> None:
        pass


class Inotify:
    """Linux: watches the folders of the files, so that a file may come, go and be replaced; and a descriptor per process.

    It does not hear what other machines write to a shared folder.
    """

    patience = 5.0

    def __init__(self, files: Iterable[Path], pids: Iterable[int]) -> None:
        self._selector = selectors.DefaultSelector()
        self._descriptors: list[int] = []
        try:
            self._watch_folders({file.parent for file in files})
            for pid in pids:
                self._watch_process(pid)
        except BaseException:
            self.close()
            raise

    def wait(self, seconds: float) -> None:
        for key, _ in self._selector.select(seconds):
            if key.data == "folders":
                with suppress(BlockingIOError):
                    while os.read(key.fd, _BUFFER):
                        pass
            else:
                # It stays readable for ever.
                self._selector.unregister(key.fd)

    def close(self) -> None:
        self._selector.close()
        while self._descriptors:
            os.close(self._descriptors.pop())

    def _watch_folders(self, folders: set[Path]) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        watch = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if watch < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        self._descriptors.append(watch)
        for folder in folders:
            if libc.inotify_add_watch(watch, os.fsencode(folder), ctypes.c_uint32(_MASK)) < 0:
                raise OSError(ctypes.get_errno(), "inotify_add_watch", str(folder))
        self._selector.register(watch, selectors.EVENT_READ, "folders")

    def _watch_process(self, pid: int) -> None:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        self._descriptors.append(descriptor)
        self._selector.register(descriptor, selectors.EVENT_READ, "process")


if sys.platform == "darwin" or sys.platform.startswith("freebsd"):

    class Kqueue:
        """macOS and FreeBSD: each file with its folder, and each process; a file that comes later is not heard."""

        patience = 0.5

        def __init__(self, files: Iterable[Path], pids: Iterable[int]) -> None:
            self._queue = select.kqueue()
            self._descriptors: list[int] = []
            try:
                for path in {place for file in files for place in (file, file.parent)}:
                    self._watch_file(path)
                for pid in pids:
                    self._watch_process(pid)
            except BaseException:
                self.close()
                raise

        def wait(self, seconds: float) -> None:
            self._queue.control(None, 64, seconds)

        def close(self) -> None:
            self._queue.close()
            while self._descriptors:
                os.close(self._descriptors.pop())

        def _watch_file(self, path: Path) -> None:
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return
            self._descriptors.append(descriptor)
            notes = select.KQ_NOTE_WRITE | select.KQ_NOTE_EXTEND
            notes |= select.KQ_NOTE_DELETE | select.KQ_NOTE_RENAME
            self._add(descriptor, select.KQ_FILTER_VNODE, notes)

        def _watch_process(self, pid: int) -> None:
            with suppress(ProcessLookupError):
                self._add(pid, select.KQ_FILTER_PROC, select.KQ_NOTE_EXIT)

        def _add(self, ident: int, kind: int, notes: int) -> None:
            flags = select.KQ_EV_ADD | select.KQ_EV_CLEAR
            event = select.kevent(ident, filter=kind, flags=flags, fflags=notes)
            self._queue.control([event], 0, 0)


_Sign = tuple[int, int, int] | None
"""What changes with a file: which it is, its size, and its time; None while there is none."""


class LogBell(Protocol):
    """Tells of a log that it has grown."""

    @property
    def files(self) -> tuple[Path, ...]:
        """The files whose change may mean it, for those who watch files."""
        ...

    @property
    def patience(self) -> float:
        """How many seconds at most to wait before looking at the stamp again."""
        ...

    def stamp(self) -> object:
        """Return a value that is another one when the log has grown."""
        ...

    def close(self) -> None: ...


class FileBell:
    """The bell of a log that is a file."""

    patience = 60.0

    def __init__(self, path: Path) -> None:
        self.files = (Path(os.path.abspath(path)),)

    def stamp(self) -> object:
        return _sign(self.files[0])

    def close(self) -> None:
        pass


class News:
    """A log that grows, files that are appended to, replaced, made or deleted, and processes that end; all since the last news.

    What happens between making it and the first wait is news, too: make it first, then read, then wait.
    """

    def __init__(
        self,
        files: Iterable[Path],
        processes: Iterable[tuple[int, str]] = (),
        log: LogBell | None = None,
    ) -> None:
        self._files = [Path(os.path.abspath(file)) for file in files]
        self._running = set(processes)
        self._log = log
        watched = [*self._files, *(log.files if log is not None else ())]
        self._bell: Bell = make_bell(watched, [pid for pid, _ in self._running])
        self._patience = min(self._bell.patience, log.patience if log is not None else 60.0)
        self._signs = self._look()

    def wait(self, seconds: float) -> bool:
        """Wait for news, which there may be at once; False after this time."""
        deadline = time.monotonic() + seconds
        while not self._is_news():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._bell.wait(min(left, self._patience))
        return True

    def close(self) -> None:
        self._bell.close()
        if self._log is not None:
            self._log.close()

    def _look(self) -> list[object]:
        signs: list[object] = [_sign(file) for file in self._files]
        return [*signs, self._log.stamp()] if self._log is not None else signs

    def __enter__(self) -> "News":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _is_news(self) -> bool:
        ended = {
            process for process in self._running if process_state(*process) in ("gone", "reused")
        }
        self._running -= ended
        before, self._signs = self._signs, self._look()
        return bool(ended) or before != self._signs


def _sign(file: Path) -> _Sign:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
