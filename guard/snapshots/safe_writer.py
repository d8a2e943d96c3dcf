"""Write into a folder without following a link, and without ever leaving half a file in it.

Each folder is opened by its name in the one before, so that nothing can be swapped for a link meanwhile. A file is written
beside its place and moved there.
"""

import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path

from guard.core.snapshots.paths import LINK
from guard.core.snapshots.restore import CurrentFile
from guard.snapshots.objects import blob_digest
from guard.snapshots.read_file import read_pieces
from guard.system.private_files import close, write_all

_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_TEMPORARY = re.compile(r"\.guard-restore-(\d{1,10})-[0-9a-f]{12}\.tmp")
_LINK_BITS = 0o644
NOT_A_FOLDER = "a link or a file stands where its folder should be"


class PathRefused(Exception):
    """A path that is left as it is; the message says why."""


def refusal(error: Exception) -> str:
    """Say why a path was left as it is."""
    return f"{error.strerror}" if isinstance(error, OSError) else str(error)


class SafeFolder:
    """One folder while files are compared with it or written to it."""

    def __init__(
        self,
        root: Path,
        *,
        forbidden: frozenset[tuple[int, int]] = frozenset(),
        durable: bool = False,
    ) -> None:
        """`forbidden` are folders, by device and inode, that nothing is written to."""
        self.root = root
        self._forbidden, self._durable = forbidden, durable
        self._open: list[tuple[bytes, int]] = [(b"", os.open(root, _OPEN_FOLDER))]
        self._swept: set[tuple[int, int]] = set()

    def close(self) -> None:
        while self._open:
            close(self._open.pop()[1])

    def look(self, path: bytes, like: str) -> CurrentFile | None:
        """What is at a path, with an id of the same kind as `like`; `PathRefused` for what no snapshot can have."""
        folder, name = self._open_parent(path), path.rpartition(b"/")[2]
        if folder is None:
            return None
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        if stat.S_ISLNK(status.st_mode):
            text = os.readlink(name, dir_fd=folder)
            digest = blob_digest(like, len(text))
            digest.update(text)
            return CurrentFile(LINK, digest.hexdigest(), _LINK_BITS)
        if stat.S_ISDIR(status.st_mode):
            raise PathRefused("a folder stands in its place")
        with self._open_file(folder, name) as descriptor:
            status = os.fstat(descriptor)
            digest = blob_digest(like, status.st_size)
            for piece in read_pieces(descriptor, status.st_size):
                digest.update(piece)
        mode = b"100755" if status.st_mode & 0o100 else b"100644"
        return CurrentFile(mode, digest.hexdigest(), stat.S_IMODE(status.st_mode))

    def has(self, path: bytes) -> bool:
        """Tell whether anything is there, or in the way."""
        try:
            folder = self._open_parent(path)
        except (PathRefused, OSError):
            return True
        return folder is not None and _exists(folder, path.rpartition(b"/")[2])

    def read(self, path: bytes, most: int) -> bytes | None:
        """The bytes of a file, or the text of a link; None if they are more than that."""
        folder, name = self._open_parent(path), path.rpartition(b"/")[2]
        if folder is None:
            return b""
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            return os.readlink(name, dir_fd=folder)
        with self._open_file(folder, name) as descriptor:
            data = b"".join(read_pieces(descriptor, most + 1))
        return data if len(data) <= most else None

    @contextmanager
    def _open_file(self, folder: int, name: bytes) -> Iterator[int]:
        try:
            descriptor = os.open(name, _READ, dir_fd=folder)
        except OSError as error:
            raise PathRefused(f"guard cannot read what is there: {error.strerror}") from None
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise PathRefused("a special file stands in its place")
            yield descriptor
        finally:
            close(descriptor)

    def put(
        self, path: bytes, bits: int, content: Iterable[bytes], before: CurrentFile | None
    ) -> None:
        """Write a file in place of what was there before; `PathRefused` if that has changed."""
        with self._write_beside(path, before) as (folder, temporary):
            descriptor = os.open(temporary, _WRITE, 0o600, dir_fd=folder)
            try:
                for piece in content:
                    write_all(descriptor, piece)
                os.fchmod(descriptor, bits)
                if self._durable:
                    os.fsync(descriptor)
            finally:
                close(descriptor)

    def link(self, path: bytes, text: bytes, before: CurrentFile | None) -> None:
        """Write a link in place of what was there before; `PathRefused` if that has changed."""
        with self._write_beside(path, before) as (folder, temporary):
            os.symlink(text, temporary, dir_fd=folder)

    @contextmanager
    def _write_beside(self, path: bytes, before: CurrentFile | None) -> Iterator[tuple[int, bytes]]:
        """Yield the folder of a path and a temporary name in it; move what the block writes there to the path."""
        folder = self._make_parent(path)
        temporary = self._temporary(folder)
        try:
            yield folder, temporary
            self._move(folder, path, temporary, before)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise

    def _move(self, folder: int, path: bytes, temporary: bytes, before: CurrentFile | None) -> None:
        name = path.rpartition(b"/")[2]
        if before is None:
            if _exists(folder, name):
                raise PathRefused("something else stands in its place by now")
        elif self.look(path, before.oid) != before:
            raise PathRefused("what stood there has changed meanwhile")
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        if self._durable:
            os.fsync(folder)

    def set_bits(self, path: bytes, bits: int) -> None:
        with self._open_file(self._make_parent(path), path.rpartition(b"/")[2]) as descriptor:
            os.fchmod(descriptor, bits)

    def make_folder(self, path: bytes) -> bool:
        """Make a folder; return whether there was none."""
        try:
            os.mkdir(path.rpartition(b"/")[2], dir_fd=self._make_parent(path))
        except FileExistsError:
            self._make_parent(path + b"/inside")
            return False
        return True

    def remove(self, path: bytes, before: CurrentFile) -> None:
        """Delete a file; `PathRefused` if it is no longer what it was."""
        folder = self._open_parent(path)
        if folder is None or self.look(path, before.oid) != before:
            raise PathRefused("what stood there has changed meanwhile")
        os.unlink(path.rpartition(b"/")[2], dir_fd=folder)
        if self._durable:
            os.fsync(folder)

    def remove_folder(self, path: bytes) -> bool:
        """Delete a folder if it is empty; return whether there is none now."""
        with suppress(OSError, PathRefused):
            folder = self._open_parent(path)
            if folder is None:
                return True
            with suppress(FileNotFoundError):
                os.rmdir(path.rpartition(b"/")[2], dir_fd=folder)
            return True
        return False

    def sweep(self, path: bytes) -> None:
        with suppress(OSError, PathRefused):
            folder = self._open_parent(path)
            if folder is not None:
                self._temporary(folder)

    def _make_parent(self, path: bytes) -> int:
        folder = self._open_parent(path, create=True)
        if folder is None:
            raise PathRefused("its folder is deleted again and again")
        return folder

    def _open_parent(self, path: bytes, *, create: bool = False) -> int | None:
        """Open the folder that holds a path; None if there is none."""
        folders = path.split(b"/")[:-1]
        pairs = zip(folders, (name for name, _ in self._open[1:]), strict=False)
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        while len(self._open) > shared + 1:
            close(self._open.pop()[1])
        entered = (self._enter(folder, create=create) for folder in folders[shared:])
        return self._open[-1][1] if all(entered) else None

    def _enter(self, name: bytes, *, create: bool) -> bool:
        here = self._open[-1][1]
        try:
            if create:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=here)
            descriptor = os.open(name, _OPEN_FOLDER, dir_fd=here)
        except FileNotFoundError:
            return False
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP):
                raise PathRefused(NOT_A_FOLDER) from None
            raise
        status = os.fstat(descriptor)
        if (status.st_dev, status.st_ino) in self._forbidden:
            close(descriptor)
            raise PathRefused("it lies in a git directory or in guard's own state")
        self._open.append((name, descriptor))
        return True

    def _temporary(self, folder: int) -> bytes:
        """A name of guard's own; files that a killed restore left under such a name are deleted."""
        status = os.fstat(folder)
        if (status.st_dev, status.st_ino) not in self._swept:
            self._swept.add((status.st_dev, status.st_ino))
            for name in os.listdir(folder):
                found = _TEMPORARY.fullmatch(name)
                if found and not _lives(int(found[1])):
                    with suppress(OSError):
                        os.unlink(name, dir_fd=folder)
        return b".guard-restore-%d-%s.tmp" % (os.getpid(), os.urandom(6).hex().encode())


def _exists(folder: int, name: bytes) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
