"""Everything below a folder, found without following a link, without trusting a setting, and without opening a pipe.

Each folder is opened by its name in the folder before it, so that nothing can be swapped for a link meanwhile. No ignore rule
counts, because the agent may have written it; only what a tool makes anew is left out, and every omission is noted.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from guard.core.rescuing import rebuilt
from guard.files import close
from guard.rescue.deadline import Deadline

_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_DEPTH = 200
_SPECIAL = "a special file"
FOLDER = "a folder"
_NOTHING_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


class Entry(NamedTuple):
    """A file or a link, by its path below the root, and by its name in a folder that is open."""

    path: bytes
    folder: int
    name: bytes
    is_link: bool


class _Level(NamedTuple):
    folder: int
    prefix: bytes
    rest: Iterator[tuple[str, int]]


@dataclass
class Walk:
    """One walk; what it does not hand out is noted here."""

    root: Path
    leave_out: frozenset[tuple[int, int]]
    """Folders, by device and inode, that are guard's own."""
    deadline: Deadline
    not_needed: dict[bytes, str] = field(default_factory=dict)
    not_read: dict[bytes, str] = field(default_factory=dict)
    empty: list[bytes] = field(default_factory=list)
    nested: list[bytes] = field(default_factory=list)

    def entries(self) -> Iterator[Entry]:
        """Files and links, folder by folder, in the order of their names."""
        levels = [self._level(os.open(self.root, _OPEN_FOLDER), b"", "")]
        try:
            while levels:
                folder, prefix, rest = levels[-1]
                name, kind = next(rest, ("", 0))
                if not name:
                    close(levels.pop().folder)
                elif self.deadline.passed():
                    self.not_read[prefix + os.fsencode(name)] = "time limit: nothing from here on"
                    return
                elif kind == stat.S_IFDIR:
                    levels += self._below(levels, name)
                elif kind in (stat.S_IFREG, stat.S_IFLNK):
                    path = prefix + os.fsencode(name)
                    if path != b".git":
                        yield Entry(path, folder, os.fsencode(name), kind == stat.S_IFLNK)
                else:
                    self.not_read[prefix + os.fsencode(name)] = _SPECIAL
        finally:
            for level in levels:
                close(level.folder)

    def _below(self, levels: list[_Level], name: str) -> list[_Level]:
        """The folder of this name in the last one, if it is to be looked into."""
        path = levels[-1].prefix + os.fsencode(name)
        if name == ".git":
            if path != b".git":
                self.not_needed[path] = "the git directory of a nested repository"
            return []
        if len(levels) >= _MOST_DEPTH:
            self.not_read[path] = f"more than {_MOST_DEPTH} folders deep"
            return []
        try:
            descriptor = os.open(name, _OPEN_FOLDER, dir_fd=levels[-1].folder)
        except FileNotFoundError:
            return []
        except OSError as error:
            self.not_read[path] = f"{error.strerror}"
            return []
        status = os.fstat(descriptor)
        if (status.st_dev, status.st_ino) in self.leave_out:
            close(descriptor)
            return []
        return [self._level(descriptor, path, name)]

    def _level(self, descriptor: int, path: bytes, name: str) -> _Level:
        prefix = path + b"/" if path else b""
        try:
            found = _listed(descriptor)
        except OSError as error:
            self.not_read[path] = f"{error.strerror}"
            return _Level(descriptor, prefix, iter(()))
        why = rebuilt(name, found) if path else None
        if why is not None:
            self.not_needed[path] = why
            return _Level(descriptor, prefix, iter(()))
        if path and not found:
            self.empty.append(path)
        if path and ".git" in found:
            self.nested.append(path)
        return _Level(descriptor, prefix, iter(sorted(found.items())))


def _listed(descriptor: int) -> dict[str, int]:
    """Names with the kind of each; what cannot be told is treated like a special file."""
    with os.scandir(descriptor) as entries:
        return {entry.name: _kind(entry) for entry in entries}


def _kind(entry: os.DirEntry[str]) -> int:
    try:
        if entry.is_symlink():
            return stat.S_IFLNK
        if entry.is_dir(follow_symlinks=False):
            return stat.S_IFDIR
        return stat.S_IFREG if entry.is_file(follow_symlinks=False) else stat.S_IFIFO
    except OSError:
        return stat.S_IFIFO


@contextmanager
def reached(root: Path, path: bytes) -> Iterator[Entry | str | None]:
    """One path, wherever it lies: the entry, or why it is none, or None if there is nothing of that name."""
    *folders, name = path.split(b"/")
    here = os.open(root, _OPEN_FOLDER)
    found: Entry | str | None = None
    try:
        try:
            for folder in folders:
                here, above = os.open(folder, _OPEN_FOLDER, dir_fd=here), here
                close(above)
            kind = stat.S_IFMT(os.stat(name, dir_fd=here, follow_symlinks=False).st_mode)
        except OSError as error:
            found = None if error.errno in _NOTHING_THERE else f"{error.strerror}"
        else:
            entry = Entry(path, here, name, kind == stat.S_IFLNK)
            other = FOLDER if kind == stat.S_IFDIR else _SPECIAL
            found = entry if kind in (stat.S_IFREG, stat.S_IFLNK) else other
        yield found
    finally:
        close(here)
