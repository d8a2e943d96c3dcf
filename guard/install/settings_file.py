"""Read and replace settings files: whole, in one step, and never outside of the repository they belong to."""

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from guard.errors import ConfigProblem, GuardError, StoreUnavailable
from guard.system.foreign_files import read_regular
from guard.system.private_files import close, write_all

MOST_BYTES = 1024 * 1024
_LOCK_SECONDS, _PAUSE_SECONDS = 10.0, 0.02
_MADE_MODE = 0o644


def resolve(path: Path, root: Path | None) -> Path:
    """Return the path with all links followed; raise an error if a project's file leads out of the project."""
    try:
        found = Path(os.path.realpath(path))
        if root is not None and not found.is_relative_to(os.path.realpath(root)):
            raise ConfigProblem(
                f"{path} leads to {found}, which is not in the repository",
                "replace the link by a file, or install for the user: --user",
            )
    except (OSError, ValueError) as error:
        raise ConfigProblem(f"{path}: {error}", "fix it, or move it away") from None
    return found


def read_text(path: Path) -> str | None:
    try:
        data = read_regular(path, MOST_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _access_problem("read", path, error) from None
    if len(data) > MOST_BYTES:
        raise ConfigProblem(f"{path} is larger than {MOST_BYTES} bytes", "fix it, or move it away")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ConfigProblem(f"{path} is not UTF-8: {error.reason}", "convert it to UTF-8") from None


def folders_to_make(path: Path) -> tuple[Path, ...]:
    """Return the missing folders above a file, the outermost first."""
    missing = [folder for folder in path.parents if not folder.exists()]
    return tuple(reversed(missing))


def make_folders(folders: tuple[Path, ...]) -> None:
    for folder in folders:
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise _access_problem("make", folder, error) from None


def remove_folders(folders: tuple[Path, ...]) -> None:
    # The innermost first; a folder that is not empty stays.
    for folder in reversed(folders):
        with suppress(OSError):
            folder.rmdir()


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock a folder against other guard processes; the lock leaves no file behind."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _access_problem("open", folder, error) from None
    try:
        _lock(descriptor, folder)
        yield
    finally:
        close(descriptor)


def _lock(descriptor: int, folder: Path) -> None:
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES, errno.EINTR):
                raise _access_problem("lock", folder, error) from None
        if time.monotonic() >= deadline:
            raise StoreUnavailable(f"{folder} is locked by another process", "try again")
        time.sleep(_PAUSE_SECONDS)


def replace_text(path: Path, before: str | None, after: str | None) -> None:
    """Replace the text of a file in one step, or remove the file; a reader sees the old or the new."""
    status = _status(path)
    if status is not None and not status.st_mode & 0o222:
        raise ConfigProblem(f"{path} is read-only", f"make it writable: chmod u+w {path}")
    if read_text(path) != before:
        raise StoreUnavailable(f"{path} was changed by another program meanwhile", "try again")
    try:
        if after is None:
            path.unlink(missing_ok=True)
        else:
            _write(path, after.encode(), status)
        _sync(path.parent)
    except OSError as error:
        raise _access_problem("write", path, error) from None


def _write(path: Path, data: bytes, status: os.stat_result | None) -> None:
    # A fixed name, under the lock: what a killed writer left is used again.
    temporary = path.with_name(f".{path.name}.guard.tmp")
    temporary.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, _MADE_MODE)
    try:
        try:
            if status is not None:
                _copy_owner(descriptor, path, status)
            write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            close(descriptor)
        os.replace(temporary, path)
    except (OSError, GuardError):
        with suppress(OSError):
            temporary.unlink()
        raise


def _copy_owner(descriptor: int, path: Path, status: os.stat_result) -> None:
    # The new file gets the owner and the permissions of the old one.
    own = os.fstat(descriptor)
    if (own.st_uid, own.st_gid) != (status.st_uid, status.st_gid):
        try:
            os.fchown(descriptor, status.st_uid, status.st_gid)
        except PermissionError:
            raise ConfigProblem(
                f"{path} belongs to user {status.st_uid}, group {status.st_gid}",
                "run guard as its owner",
            ) from None
    os.fchmod(descriptor, stat.S_IMODE(status.st_mode))


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _access_problem("read", path, error) from None


def _sync(folder: Path) -> None:
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            close(descriptor)


def _access_problem(what: str, path: Path, error: OSError) -> ConfigProblem:
    hints = dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "make room on its disk")
    hints[errno.EINVAL] = "fix it, or move it away"
    hint = hints.get(error.errno or 0, "check its permissions")
    return ConfigProblem(f"cannot {what} {path}: {error.strerror}", hint)
