"""The bytes of one file or link: at once if they fit in memory, else from its open descriptor.

A file that changes while it is read is read again; if it will not keep still, what was read is kept and marked.
"""

import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from guard.core.rescuing import COMMIT_MAX_FILE_BYTES, SNAPSHOT_MAX_FILE_BYTES
from guard.files import close
from guard.rescue.walker import Entry

IN_MEMORY = COMMIT_MAX_FILE_BYTES
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CHUNK = 1024**2
_TRIES = 3
_LINK_BITS = 0o644


class Content(NamedTuple):
    """What one read found."""

    mode: bytes
    """As git's trees have it."""
    bits: int
    data: bytes
    steady: bool


class Large(NamedTuple):
    """A file too large to hold; whoever gets it closes the descriptor."""

    mode: bytes
    bits: int
    descriptor: int
    size: int


def read(entry: Entry) -> Content | Large | str | None:
    """The content, or why there is none; None if the file is gone by now."""
    try:
        if entry.is_link:
            target = os.readlink(entry.name, dir_fd=entry.folder)
            return Content(b"120000", _LINK_BITS, target, steady=True)
        return _read_file(entry)
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"{error.strerror}"


def _read_file(entry: Entry) -> Content | Large | str:
    descriptor = os.open(entry.name, _FLAGS, dir_fd=entry.folder)
    found: Content | Large | str = ""
    try:
        found = _from(descriptor)
        return found
    finally:
        if not isinstance(found, Large):
            close(descriptor)


def _from(descriptor: int) -> Content | Large | str:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        return "a special file"
    if status.st_size > SNAPSHOT_MAX_FILE_BYTES:
        return f"larger than {SNAPSHOT_MAX_FILE_BYTES} bytes"
    mode = b"100755" if status.st_mode & 0o100 else b"100644"
    bits = stat.S_IMODE(status.st_mode)
    if status.st_size > IN_MEMORY:
        return Large(mode, bits, descriptor, status.st_size)
    for _ in range(_TRIES):
        before = os.fstat(descriptor)
        data = b"".join(pieces(descriptor, IN_MEMORY))
        if len(data) == before.st_size and is_unchanged(before, os.fstat(descriptor)):
            return Content(mode, bits, data, steady=True)
    return Content(mode, bits, data, steady=False)


def is_unchanged(before: os.stat_result, after: os.stat_result) -> bool:
    """Whether nobody wrote to the file in between."""
    return (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)


def pieces(descriptor: int, most: int) -> Iterator[bytes]:
    """The file from its beginning to its end, or as far as it was asked for."""
    at = 0
    while at < most:
        piece = os.pread(descriptor, min(_CHUNK, most - at), at)
        if not piece:
            return
        yield piece
        at += len(piece)
