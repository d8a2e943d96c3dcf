"""Read the bytes of one file or link: at once if they fit in memory, else from its open descriptor.

A file that changes while it is read is read again; if it will not keep still, what was read is kept and marked.
"""

import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from guard.core.snapshots.paths import LINK
from guard.snapshots.walk import WalkEntry
from guard.system.private_files import close

IN_MEMORY = 50 * 1024**2
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CHUNK = 1024**2
_TRIES = 3


class Content(NamedTuple):
    """What one read found."""

    data: bytes
    status: os.stat_result
    steady: bool


class Large(NamedTuple):
    """A file too large for memory; the caller closes the descriptor."""

    descriptor: int
    status: os.stat_result


def read_entry(entry: WalkEntry, most_bytes: int) -> Content | Large | str | None:
    """Read the content; a text says why there is none, None means that the file is gone by now."""
    try:
        if entry.is_link:
            return _read_link(entry)
        return _read_file(entry, most_bytes)
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"{error.strerror}"


def _read_link(entry: WalkEntry) -> Content:
    target = os.readlink(entry.name, dir_fd=entry.folder)
    status = os.stat(entry.name, dir_fd=entry.folder, follow_symlinks=False)
    return Content(target, status, steady=stat.S_ISLNK(status.st_mode))


def _read_file(entry: WalkEntry, most_bytes: int) -> Content | Large | str:
    descriptor = os.open(entry.name, _FLAGS, dir_fd=entry.folder)
    found: Content | Large | str = ""
    try:
        found = _read_descriptor(descriptor, most_bytes)
        return found
    finally:
        if not isinstance(found, Large):
            close(descriptor)


def _read_descriptor(descriptor: int, most_bytes: int) -> Content | Large | str:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        return "a special file"
    if status.st_size > most_bytes:
        return f"larger than {most_bytes} bytes"
    if status.st_size > IN_MEMORY:
        return Large(descriptor, status)
    for _ in range(_TRIES):
        data = os.pread(descriptor, status.st_size + 1, 0)
        before, status = status, os.fstat(descriptor)
        if len(data) == before.st_size and is_unchanged(before, status):
            return Content(data, status, steady=True)
    return Content(data, status, steady=False)


def is_unchanged(before: os.stat_result, after: os.stat_result) -> bool:
    stamps = [
        (status.st_size, status.st_mtime_ns, status.st_ctime_ns) for status in (before, after)
    ]
    return stamps[0] == stamps[1]


def git_mode(mode: int) -> bytes:
    if stat.S_ISLNK(mode):
        return LINK
    return b"100755" if mode & 0o100 else b"100644"


def read_pieces(descriptor: int, most: int) -> Iterator[bytes]:
    at = 0
    while at < most:
        piece = os.pread(descriptor, min(_CHUNK, most - at), at)
        if not piece:
            return
        yield piece
        at += len(piece)
