"""A prompt as a file in the agent's inbox: whole or not at all, never over another file, never through a link."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from guard.core.activity.file_patterns import filled
from guard.system.private_files import write_all

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_NAMES = 100


def find(root: Path, patterns: str, agent: str, task: str) -> tuple[str, ...] | None:
    """The first of these folders that exists below the work tree, by the names on the way; None if none does."""
    for levels in filled(patterns, agent, task):
        with suppress(OSError, ValueError), _opened(root, levels):
            return levels
    return None


def put(root: Path, levels: tuple[str, ...], name: str, text: str) -> str:
    """Write a new file; its name, which is another where that is taken. An OSError if it cannot be written."""
    with _opened(root, levels) as folder:
        temporary = f".{name}.{os.getpid()}.tmp"
        descriptor = os.open(temporary, _NEW, 0o600, dir_fd=folder)
        try:
            try:
                write_all(descriptor, text.encode(errors="backslashreplace"))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            return _linked(folder, temporary, name)
        finally:
            os.unlink(temporary, dir_fd=folder)


def _linked(folder: int, temporary: str, name: str) -> str:
    """Give the file its name: a link, unlike a rename, never replaces what is there."""
    stem, dot, ending = name.rpartition(".")
    for number in range(_MOST_NAMES):
        tried = f"{stem}-{number}{dot}{ending}" if number else name
        with suppress(FileExistsError):
            os.link(temporary, tried, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
            os.fsync(folder)
            return tried
    raise FileExistsError(f"{name} and {_MOST_NAMES} names like it are taken")


@contextmanager
def _opened(root: Path, levels: tuple[str, ...]) -> Iterator[int]:
    """The folder, reached from the work tree one name at a time."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for level in levels:
            below = os.open(level, _FOLDER, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)
