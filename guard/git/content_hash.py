"""Identify the contents of files in a work tree, without following links or waiting for pipes."""

import os
import stat
from collections.abc import Callable, Iterable
from hashlib import sha1, sha256
from typing import Literal, NamedTuple

from guard.core.base.first_use import dataclass

MOST_FILE_BYTES = 64 * 1024 * 1024
MOST_BYTES = 1024 * 1024 * 1024
_PIECE = 1024 * 1024
Kind = Literal["file", "executable", "link", "folder", "repository", "special", "missing"]


class Identity(NamedTuple):
    """What tells one content of a path from another."""

    kind: Kind
    content: str | None
    stamp: str


MISSING = Identity("missing", None, "")


@dataclass
class ContentReader:
    """Reads below one folder; once it has read enough bytes, size and time must do."""

    root: int
    """The descriptor of the folder."""
    left: int = MOST_BYTES

    def identity(self, path: bytes) -> Identity:
        try:
            status = os.stat(path, dir_fd=self.root, follow_symlinks=False)
        except (OSError, ValueError):
            return MISSING
        if stat.S_ISLNK(status.st_mode):
            return Identity("link", self._target(path), stamp(status))
        if stat.S_ISDIR(status.st_mode):
            return Identity("folder", None, stamp(status))
        if not stat.S_ISREG(status.st_mode):
            return Identity("special", None, stamp(status))
        kind: Kind = "executable" if status.st_mode & 0o100 else "file"
        return Identity(kind, self._digest(path, status.st_size), stamp(status))

    def _target(self, path: bytes) -> str | None:
        try:
            return sha256(os.readlink(path, dir_fd=self.root)).hexdigest()
        except OSError:
            return None

    def _digest(self, path: bytes, size: int) -> str | None:
        # None for a file that is too large, must not be read, or became something else just now.
        digest = sha256()
        return digest.hexdigest() if self._feed(path, size, digest.update) else None

    def _feed(self, path: bytes, size: int, update: Callable[[bytes], None]) -> bool:
        if size > min(MOST_FILE_BYTES, self.left):
            return False
        self.left -= size
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(path, flags, dir_fd=self.root)
            with open(descriptor, "rb", buffering=0) as file:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    return False
                read = 0
                while read <= MOST_FILE_BYTES and (piece := file.read(_PIECE)):
                    update(piece)
                    read += len(piece)
        except OSError:
            return False
        return True

    def blob(self, path: bytes, like: str) -> str | None:
        """Return the id that git would give the bytes, in the format of the id `like`; None if there is no file to read.

        Line ends are not converted: a file that git would store otherwise than it lies there gets another id.
        """
        try:
            status = os.stat(path, dir_fd=self.root, follow_symlinks=False)
            target = os.readlink(path, dir_fd=self.root) if stat.S_ISLNK(status.st_mode) else None
        except OSError:
            return None
        digest = sha1(usedforsecurity=False) if len(like) == 40 else sha256()
        digest.update(b"blob %d\0" % (status.st_size if target is None else len(target)))
        if target is not None:
            digest.update(target)
        elif not stat.S_ISREG(status.st_mode) or not self._feed(
            path, status.st_size, digest.update
        ):
            return ""
        return digest.hexdigest()

    def hash_stamps(self, paths: Iterable[bytes]) -> str:
        # By names, sizes and times alone.
        digest = sha256()
        for path in paths:
            try:
                status = os.stat(path, dir_fd=self.root, follow_symlinks=False)
                known = f"{stamp(status)}:{status.st_mode:o}"
            except OSError:
                known = ""
            digest.update(b"%s\0%s\0" % (path, known.encode()))
        return digest.hexdigest()


def stamp(status: os.stat_result) -> str:
    return f"{status.st_size}:{status.st_mtime_ns}"
