"""Walk everything below a folder, without following a link, trusting a setting or opening a pipe.

Each folder is opened by its name in the folder before it, so that nothing can be swapped for a link meanwhile. No ignore rule
counts, because the agent may have written it. A folder that a tool may rebuild is noted and not entered: what of it is work
is for the caller to find out.
"""

import errno
import os
import stat
import sys
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field
from pathlib import Path
from typing import NamedTuple

from guard.core.base.first_use import dataclass
from guard.core.snapshots.paths import (
    ENVIRONMENT,
    ENVIRONMENT_FILES,
    ENVIRONMENT_LIBRARIES,
    is_environment_part,
    may_be_environment,
    why_rebuilt,
)
from guard.system.clock import Deadline
from guard.system.private_files import close

_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_DEPTH = 200
SPECIAL = "a special file"
FOLDER = "a folder"
_NOTHING_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_KEPT = (stat.S_IFREG, stat.S_IFLNK)
_INTERPRETERS = (
    *(b"bin/python", b"bin/python3", b"bin/activate"),
    *(b"Scripts/python.exe", b"Scripts/activate"),
)


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
    """Where to begin; from there on every folder is entered, whatever its name."""
    skip: Container[bytes] = frozenset()
    """Paths that are not handed out."""
    rebuilt: dict[bytes, str] = field(default_factory=dict)
    """Folders that a tool may rebuild, which were not entered, and what they are."""
    rebuilt_files: dict[bytes, str] = field(default_factory=dict)
    """Files that a tool makes beside such folders."""
    not_read: dict[bytes, str] = field(default_factory=dict)
    empty: list[bytes] = field(default_factory=list)
    nested: list[bytes] = field(default_factory=list)
    _libraries: set[bytes] = field(default_factory=set)

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
        if name == b".git" or path in self.skip:
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
            self._note_folder(path, listed)
            if path and not self.below:
                listed = self._without_rebuilt(path, folder_name, listed, descriptor)
        for name, why in listed.others.items():
            self.not_read[prefix + name] = why
        if not path:
            listed.files.pop(b".git", None)
        levels.append(_Level(descriptor, prefix, iter(sorted(listed.folders))))
        files = listed.files
        if self.skip:
            files = {
                name: status for name, status in files.items() if prefix + name not in self.skip
            }
        return WalkedFolder(prefix, descriptor, files)

    def _without_rebuilt(
        self, path: bytes, name: bytes, inside: "_FolderEntries", descriptor: int
    ) -> "_FolderEntries":
        """Return what is to be looked at in a folder: nothing if a tool may rebuild it; without its parts in an environment."""
        why = why_rebuilt(name, inside) if inside else None
        if why is not None:
            self.rebuilt[path] = why
            return _FolderEntries()
        in_library = path in self._libraries
        if in_library or (may_be_environment(inside) and _has_interpreter(descriptor)):
            parts = [n for n in inside.folders if is_environment_part(n, in_library=in_library)]
            self.rebuilt.update((path + b"/" + part, ENVIRONMENT) for part in parts)
            inside.folders = [n for n in inside.folders if n not in parts]
            if not in_library:
                self._libraries.update(path + b"/" + n for n in ENVIRONMENT_LIBRARIES)
                files = (n for n in ENVIRONMENT_FILES if n in inside.files)
                self.rebuilt_files.update((path + b"/" + n, ENVIRONMENT) for n in files)
        return inside

    def _note_folder(self, path: bytes, inside: "_FolderEntries") -> None:
        if path and not inside:
            self.empty.append(path)
        if path and b".git" in inside:
            self.nested.append(path)


def _has_interpreter(environment: int) -> bool:
    """Tell whether a folder that looks like a virtual environment has what makes it one."""
    for name in _INTERPRETERS:
        with suppress(OSError):
            os.stat(name, dir_fd=environment, follow_symlinks=False)
            return True
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


def list_folder(root: Path, path: bytes) -> dict[bytes, bool]:
    """List the names in a folder, and whether each is a folder; nothing if it cannot be read."""
    here, listed = -1, _FolderEntries()
    try:
        here = _open_folder(root, path)
        listed.fill(here)
    except OSError:
        return {}
    finally:
        if here >= 0:
            close(here)
    names = (*listed.files, *listed.others)
    return {**dict.fromkeys(names, False), **dict.fromkeys(listed.folders, True)}


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
