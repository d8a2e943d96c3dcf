"""Leases in a folder that several machines or containers may share: a file for each, as old as its last renewal.

Ages are told by the clock of the file system, because the clocks of two machines may differ.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from guard.errors import GuardError
from guard.system.private_files import Folder

FOLDER = "leases.d"
_CLOCK = ".clock"
_KEPT_SECONDS = 86400.0


class FileLeases:
    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace

    def hold(self, name: str, seconds: float) -> None:
        """Hold the lease for so many seconds from now on; it never becomes shorter by that."""
        with self._open(create=True) as folder:
            assert folder is not None
            now = _file_time(folder)
            left = max(seconds, _seconds_left(folder, name, now))
            folder.replace(name, f"{left:.3f}\n".encode(), locked=False)
            _remove_old(folder, now)

    def is_held(self, name: str) -> bool:
        return self.seconds_left(name) > 0

    def seconds_left(self, name: str) -> float:
        """Return for how long the lease is held yet; 0 if it is not."""
        with self._open() as folder:
            if folder is None:
                return 0.0
            return max(0.0, _seconds_left(folder, name, _file_time(folder)))

    def end(self, name: str) -> None:
        with self._open() as folder:
            if folder is not None:
                folder.remove(name)

    @contextmanager
    def _open(self, *, create: bool = False) -> Iterator[Folder | None]:
        workspace = Folder.open(self._workspace)
        if workspace is None and not create:
            yield None
            return
        with workspace or Folder.make(self._workspace) as opened:
            folder = opened.child(FOLDER, create=create)
            if folder is None:
                yield None
                return
            with folder:
                yield folder


def _seconds_left(folder: Folder, name: str, now: float) -> float:
    with suppress(ValueError, OSError, GuardError), folder.open_if_any(name) as descriptor:
        if descriptor is not None:
            granted = float(os.read(descriptor, 64))
            return granted - max(0.0, now - os.fstat(descriptor).st_mtime)
    return 0.0


def _file_time(folder: Folder) -> float:
    # A folder that cannot be written to tells no time: then this machine's clock has to do.
    with suppress(OSError, GuardError):
        descriptor = folder.open_file(_CLOCK, os.O_WRONLY | os.O_CREAT)
        try:
            os.utime(descriptor)
            return os.fstat(descriptor).st_mtime
        finally:
            os.close(descriptor)
    return time.time()


def _remove_old(folder: Folder, now: float) -> None:
    for name in folder.names():
        with suppress(OSError):
            status = os.stat(name, dir_fd=folder.descriptor, follow_symlinks=False)
            if now - status.st_mtime > _KEPT_SECONDS and _seconds_left(folder, name, now) <= 0:
                folder.remove(name)
