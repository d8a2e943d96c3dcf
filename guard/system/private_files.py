"""Open state files through a folder that is held open, never through a link, and only if they are the user's own.

A path could be swapped between a check and its use; an open folder cannot. Everything below the workspace is reached from
one descriptor, one name at a time.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import get_ident

from guard.errors import GuardError, StateProblem, StoreUnavailable

_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_FILE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
sync_data = getattr(os, "fdatasync", os.fsync)


class UntrustedFolder(StateProblem):
    """A folder of state is a link, no folder at all, or not the user's alone."""


class Folder:
    """A folder of state, open; closing it twice does no harm."""

    def __init__(self, descriptor: int, path: str) -> None:
        self.descriptor = descriptor
        self.path = path

    def path_of(self, name: str) -> str:
        """Return the path of an entry, for messages."""
        return f"{self.path}/{name}"

    @classmethod
    def open(cls, path: Path) -> "Folder | None":
        """Open the folder at this path, which must be the user's alone; None if there is none."""
        try:
            descriptor = os.open(path, _OPEN_FOLDER)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _refusal(f"{path}", error) from None
        return cls._check(descriptor, f"{path}")

    @classmethod
    def make(cls, path: Path) -> "Folder":
        """Open the folder at this path; create it if there is none."""
        folder = cls.open(path)
        if folder is None:
            _make_folder(path)
            folder = cls.open(path)
        assert folder is not None
        return folder

    @classmethod
    def _check(cls, descriptor: int, path: str) -> "Folder":
        try:
            _refuse_foreign(os.fstat(descriptor), path)
        except GuardError:
            close(descriptor)
            raise
        return cls(descriptor, path)

    def close(self) -> None:
        if self.descriptor >= 0:
            close(self.descriptor)
            self.descriptor = -1

    def __enter__(self) -> "Folder":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def child(self, name: str, *, create: bool = False) -> "Folder | None":
        try:
            descriptor = os.open(name, _OPEN_FOLDER, dir_fd=self.descriptor)
        except FileNotFoundError:
            if not create:
                return None
            with suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=self.descriptor)
            return self.child(name)
        except OSError as error:
            raise _refusal(self.path_of(name), error) from None
        return self._check(descriptor, self.path_of(name))

    def open_file(self, name: str, flags: int = os.O_RDONLY) -> int:
        """Open a regular, singly linked file of ours; FileNotFoundError if there is none."""
        try:
            descriptor = os.open(name, flags | _OPEN_FILE, 0o600, dir_fd=self.descriptor)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise _refusal(self.path_of(name), error) from None
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise _distrust_error(self.path_of(name), "is not a regular file")
            if status.st_nlink > 1:
                raise _distrust_error(self.path_of(name), "has a second hard link")
            _refuse_foreign(status, self.path_of(name))
        except GuardError:
            close(descriptor)
            raise
        return descriptor

    @contextmanager
    def open_if_any(self, name: str) -> Iterator[int | None]:
        """Open a file to read it; yield None if there is none."""
        try:
            descriptor = self.open_file(name)
        except FileNotFoundError:
            yield None
            return
        try:
            yield descriptor
        finally:
            close(descriptor)

    def read(self, name: str) -> bytes | None:
        with self.open_if_any(name) as descriptor:
            return read_from(descriptor, 0)[0] if descriptor is not None else None

    def replace(
        self, name: str, data: bytes, *, durable: bool = False, locked: bool = True
    ) -> None:
        """Put these bytes in place of the file at once, so that a reader sees the old or the new ones.

        Under the lock the temporary name is fixed, so that a killed writer's leftover is reused; without it, each process
        has its own.
        """
        temporary = f".{name}.tmp" if locked else f".{name}.{os.getpid()}.{get_ident()}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        self.remove(temporary)
        descriptor = self.open_file(temporary, flags)
        try:
            try:
                write_all(descriptor, data)
                if durable:
                    os.fsync(descriptor)
            finally:
                close(descriptor)
            self.rename(temporary, name)
        except OSError:
            with suppress(OSError):
                self.remove(temporary)
            raise
        if durable:
            self.sync()

    def rename(self, old: str, new: str) -> None:
        os.rename(old, new, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.descriptor)

    def free_name(self, name: str) -> str:
        """Return a name beside this one under which damaged bytes can be kept."""
        number = 1
        while self.exists(f"{name}.damaged-{number}"):
            number += 1
        return f"{name}.damaged-{number}"

    def set_aside(self, name: str) -> str:
        """Move a file out of the way without losing it; return its new name."""
        free = self.free_name(name)
        self.rename(name, free)
        self.sync()
        return free

    def exists(self, name: str) -> bool:
        try:
            os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def is_same(self, descriptor: int, name: str) -> bool:
        """Tell whether the open file is still the one that has this name."""
        try:
            named = os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return os.path.samestat(named, os.fstat(descriptor))

    def is_folder(self, name: str) -> bool:
        # Links count, so that opening them is refused rather than passed over.
        mode = os.stat(name, dir_fd=self.descriptor, follow_symlinks=False).st_mode
        return stat.S_ISDIR(mode) or stat.S_ISLNK(mode)

    def names(self) -> list[str]:
        return sorted(os.listdir(self.descriptor))

    def sync(self) -> None:
        """Make created and renamed entries survive a power loss."""
        os.fsync(self.descriptor)

    @contextmanager
    def walk(self, path: str, *, create: bool = False) -> Iterator[tuple["Folder | None", str]]:
        """Open the folder that holds this relative path; yield it and the last name of the path.

        Raises `UntrustedFolder` if a folder on the way is not plainly ours.
        """
        *folders, name = path.split("/")
        here: Folder | None = self
        with ExitStack() as opened:
            for folder in folders:
                try:
                    here = here.child(folder, create=create) if here else None
                except StateProblem as error:
                    raise UntrustedFolder(error.message, error.hint) from None
                if here:
                    opened.enter_context(here)
            yield here, name


def free_path(path: Path) -> Path:
    """Return a path beside this one under which what is there can be kept."""
    number = 1
    while os.path.lexists(f"{path}.damaged-{number}"):
        number += 1
    return path.with_name(f"{path.name}.damaged-{number}")


def close(descriptor: int) -> None:
    # Whatever had to be on the disk was synced before, so an error here says nothing that a caller could act on.
    with suppress(OSError):
        os.close(descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    # One write; more only where the system took less than it was given.
    written = os.write(descriptor, data)
    while written < len(data):
        written += os.write(descriptor, memoryview(data)[written:])


def read_from(descriptor: int, offset: int, limit: int | None = None) -> tuple[bytes, bool]:
    """Read bytes from this offset, at most `limit`; return them and whether that was all up to the end."""
    size = os.fstat(descriptor).st_size
    stop = size if limit is None else min(size, offset + limit)
    chunks, at = [], offset
    while at < stop:
        chunk = os.pread(descriptor, stop - at, at)
        if not chunk:
            break
        chunks.append(chunk)
        at += len(chunk)
    return b"".join(chunks), at >= size or at < stop


def _make_folder(path: Path) -> None:
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        return
    except OSError as error:
        raise StoreUnavailable(
            f"cannot create {path}: {error.strerror}",
            "check the path and its permissions, or name another folder with --workspace",
        ) from None


def _refuse_foreign(status: os.stat_result, path: str) -> None:
    if status.st_uid != os.geteuid():
        raise _distrust_error(path, f"belongs to user {status.st_uid}")
    if status.st_mode & 0o022:
        raise _distrust_error(path, "can be written by other users")


def _distrust_error(path: str, what: str) -> StateProblem:
    return StateProblem(
        f"{path} {what}, so guard does not trust it",
        "find out which program changed it, fix or move it, then run `guard verify`",
    )


def _refusal(path: str, error: OSError) -> GuardError:
    if error.errno == errno.ELOOP:
        return _distrust_error(path, "is a symbolic link")
    if error.errno == errno.ENOTDIR:
        return _distrust_error(path, "is not a folder, or is a symbolic link")
    if error.errno in (errno.EISDIR, errno.ENXIO):
        return _distrust_error(path, "is not a regular file")
    return StoreUnavailable(f"cannot open {path}: {error.strerror}", "run `guard doctor`")


def try_lock(descriptor: int, mode: int = fcntl.LOCK_EX) -> bool:
    """Lock an open file at once; return False if another process holds its lock."""
    try:
        fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
