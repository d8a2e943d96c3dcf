"""Walk everything below a folder, without following a link, trusting a setting or opening a pipe.

Each folder is opened by its name in the folder before it, so that nothing can be swapped for a link meanwhile. No ignore rule
counts, because the agent may have written it; only what a tool makes anew is left out, and every omission is noted.
"""

import errno
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from guard.core.snapshots.paths import why_rebuilt
from guard.system.clock import Deadline
from guard.system.private_files import close

_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_DEPTH = 200
SPECIAL = "a special file"
FOLDER = "a folder"
_NOTHING_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_KEPT = (stat.S_IFREG, stat.S_IFLNK)


class WalkEntry(NamedTuple):
    """A file or a link, by its path below the root, and by its name in a folder that is open."""

    path: bytes
    folder: int
    name: bytes
    is_link: bool


class WalkedFolder(NamedTuple):
    """The files and links in one folder, which is open while it is handed out."""

    prefix: bytes
    folder: int
    files: Mapping[bytes, os.stat_result]

    def entry(self, name: bytes, status: os.stat_result) -> WalkEntry:
        return WalkEntry(self.prefix + name, self.folder, name, stat.S_ISLNK(status.st_mode))


class _Level(NamedTuple):
    folder: int
    prefix: bytes
    below: Iterator[bytes]


@dataclass
class SnapshotWalk:
    """One walk; it notes what it does not hand out."""

    root: Path
    leave_out: frozenset[tuple[int, int]]
    """Folders, by device and inode, that are guard's own."""
    deadline: Deadline
    below: bytes = b""
    """Where to begin; in a folder of git's own nothing is left out."""
    not_needed: dict[bytes, str] = field(default_factory=dict)
    not_read: dict[bytes, str] = field(default_factory=dict)
    empty: list[bytes] = field(default_factory=list)
    nested: list[bytes] = field(default_factory=list)

    def folders(self) -> Iterator[WalkedFolder]:
        """Yield folder by folder, each before those in it, in the order of their names."""
        levels: list[_Level] = []
        try:
            top = _open_folder(self.root, self.below)
        except OSError as error:
            if not self.below or error.errno not in _NOTHING_THERE:
                self.not_read[self.below or b"."] = f"{error.strerror}"
            return
        try:
            yield self._enter(levels, top, self.below, b"")
            while levels:
                name = next(levels[-1].below, None)
                if name is None:
                    close(levels.pop().folder)
                elif self.deadline.has_passed():
                    self.not_read[levels[-1].prefix + name] = "time limit: nothing from here on"
                    return
                elif (descriptor := self._open_below(levels, name)) is not None:
                    yield self._enter(levels, descriptor, levels[-1].prefix + name, name)
        finally:
            for level in levels:
                close(level.folder)

    def entries(self) -> Iterator[WalkEntry]:
        for found in self.folders():
            for name, status in found.files.items():
                yield found.entry(name, status)

    def _open_below(self, levels: list[_Level], name: bytes) -> int | None:
        """Open the folder of this name in the last one, if it is to be looked into."""
        path = levels[-1].prefix + name
        if name == b".git":
            return None
        if len(levels) >= _MOST_DEPTH:
            self.not_read[path] = f"more than {_MOST_DEPTH} folders deep"
            return None
        try:
            descriptor = os.open(name, _OPEN_FOLDER, dir_fd=levels[-1].folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            self.not_read[path] = f"{error.strerror}"
            return None
        status = os.fstat(descriptor)
        if (status.st_dev, status.st_ino) in self.leave_out:
            close(descriptor)
            return None
        return descriptor

    def _enter(
        self, levels: list[_Level], descriptor: int, path: bytes, folder_name: bytes
    ) -> WalkedFolder:
        prefix = path + b"/" if path else b""
        listed = _FolderEntries()
        try:
            listed.fill(descriptor)
        except OSError as error:
            self.not_read[path or b"."] = f"{error.strerror}"
            listed = _FolderEntries()
        else:
            if path and self._is_left_out(path, folder_name, listed):
                listed = _FolderEntries()
        for name, why in listed.others.items():
            self.not_read[prefix + name] = why
        if not path:
            listed.files.pop(b".git", None)
        levels.append(_Level(descriptor, prefix, iter(sorted(listed.folders))))
        return WalkedFolder(prefix, descriptor, listed.files)

    def _is_left_out(self, path: bytes, name: bytes, inside: "_FolderEntries") -> bool:
        why = why_rebuilt(name, inside) if not self.below else None
        if why is not None:
            self.not_needed[path] = why
            return True
        if not inside:
            self.empty.append(path)
        if b".git" in inside:
            self.nested.append(path)
        return False


@dataclass
class _FolderEntries:
    """What is in one folder."""

    files: dict[bytes, os.stat_result] = field(default_factory=dict)
    folders: list[bytes] = field(default_factory=list)
    others: dict[bytes, str] = field(default_factory=dict)
    """What is neither, or cannot be told."""

    def fill(self, descriptor: int) -> None:
        encoding, errors = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()
        with os.scandir(descriptor) as entries:
            for entry in entries:
                name = entry.name.encode(encoding, errors)
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                except OSError as error:
                    self.others[name] = f"{error.strerror}"
                    continue
                kind = stat.S_IFMT(status.st_mode)
                if kind in _KEPT:
                    self.files[name] = status
                elif kind == stat.S_IFDIR:
                    self.folders.append(name)
                else:
                    self.others[name] = SPECIAL

    def __contains__(self, name: object) -> bool:
        return name in self.files or name in self.folders or name in self.others

    def __bool__(self) -> bool:
        return bool(self.files or self.folders or self.others)


@contextmanager
def open_path(root: Path, path: bytes) -> Iterator[tuple[WalkEntry, os.stat_result] | str | None]:
    """Open one path, wherever it lies: yield the entry, or why it is none, or None if there is nothing of that name."""
    folder, _, name = path.rpartition(b"/")
    here = -1
    found: tuple[WalkEntry, os.stat_result] | str | None = None
    try:
        try:
            here = _open_folder(root, folder)
            status = os.stat(name, dir_fd=here, follow_symlinks=False)
        except OSError as error:
            found = None if error.errno in _NOTHING_THERE else f"{error.strerror}"
        else:
            kind = stat.S_IFMT(status.st_mode)
            entry = WalkEntry(path, here, name, kind == stat.S_IFLNK)
            other = FOLDER if kind == stat.S_IFDIR else SPECIAL
            found = (entry, status) if kind in _KEPT else other
        yield found
    finally:
        if here >= 0:
            close(here)


def _open_folder(root: Path, path: bytes) -> int:
    """Open a folder below the root without following a link."""
    here = os.open(root, _OPEN_FOLDER)
    for name in path.split(b"/") if path else ():
        try:
            here, above = os.open(name, _OPEN_FOLDER, dir_fd=here), here
        except OSError:
            close(here)
            raise
        close(above)
    return here
