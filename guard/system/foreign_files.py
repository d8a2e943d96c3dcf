"""Walk and read files that others made, within bounds: never through a pipe, never for long; and write beside them."""

import errno
import os
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from time import monotonic

from guard.core.base.first_use import dataclass
from guard.system.private_files import close

MOST_BYTES = 4 * 1024 * 1024
_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def read_regular(path: Path, most: int, *, follow: bool = True) -> bytes:
    """Read a regular file, and one byte more than wanted if there is more; OSError for anything else."""
    # A pipe without a writer, or a device, would never end.
    descriptor = os.open(path, _OPEN if follow else _OPEN | os.O_NOFOLLOW)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(most + 1)
    finally:
        close(descriptor)


def write_anew(path: Path, data: bytes) -> None:
    """Write a file that others may have made: a new one takes the place of a file or of a link, which is not followed.

    A device or a pipe that is being read is written to as it is; OSError for a pipe that is not.
    """
    status = _status(path)
    if status is not None and not stat.S_ISREG(status.st_mode):
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        os.set_blocking(descriptor, True)
        with open(descriptor, "wb") as file:
            file.write(data)
        return
    new = path.with_name(f".{path.name[:100]}.{os.urandom(8).hex()}")
    try:
        with open(new, "xb") as file:
            file.write(data)
            if status is not None and not path.is_symlink():
                os.fchmod(file.fileno(), stat.S_IMODE(status.st_mode))
        os.replace(new, path)
    except OSError:
        with suppress(OSError):
            new.unlink()
        raise


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


@dataclass
class FolderListing:
    """The entries of one folder."""

    folder: Path
    folders: list[str]
    files: dict[str, os.stat_result]
    """Regular ones."""
    seen: int = 0
    """How many entries of whatever kind were looked at."""


@dataclass
class BoundedWalk:
    """One look through a tree, never through a link; the folders near its top come first."""

    root: Path
    enter: Callable[[FolderListing], Iterable[str]]
    """The folders of a folder that are to be looked into."""
    most_entries: int
    most_depth: int
    time_limit: float
    whole: bool = True
    """Whether all that was to be entered could be seen."""

    def __iter__(self) -> Iterator[FolderListing]:
        left, until = self.most_entries, monotonic() + self.time_limit
        ahead = deque([(self.root, 0)])
        while ahead:
            folder, depth = ahead.popleft()
            found = list_folder(folder, left)
            if found is None or depth > self.most_depth:
                self.whole = False
            else:
                yield found
                left -= 1 + found.seen
                ahead.extend((folder / name, depth + 1) for name in self.enter(found))
            if left <= 0 or monotonic() > until:
                self.whole = False
                return


def list_folder(folder: Path, most: int) -> FolderListing | None:
    """List at most `most` entries of a folder; None if it cannot be listed."""
    found = FolderListing(folder, [], {})
    try:
        with os.scandir(folder) as entries:
            for entry in islice(entries, most):
                _sort_in(entry, found)
    except OSError:
        return None
    return found


def _sort_in(entry: os.DirEntry[str], found: FolderListing) -> None:
    # A folder or a file; nothing else, and nothing that is gone by now.
    found.seen += 1
    with suppress(OSError):
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            found.folders.append(entry.name)
        elif stat.S_ISREG(status.st_mode):
            found.files[entry.name] = status


def read_beginning(path: Path, most: int = MOST_BYTES) -> bytes | None:
    """Read the beginning of a regular file that is no link; None if there is none that can be read."""
    try:
        return read_regular(path, most, follow=False)[:most]
    except (OSError, ValueError):
        return None
