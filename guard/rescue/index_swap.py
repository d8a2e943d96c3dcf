"""The project's index, brought to new commits in the same moment as the branch.

The new index is made beside the old one, and takes git's own lock before the branch moves: whoever commits at that moment is
told so, instead of committing the old index upon our commits. The lock is a second name of a file that is called ours and that
is locked while its guard lives, so that one left by a kill can be told from anybody else's.
"""

import errno
import fcntl
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from guard.errors import RepositoryProblem
from guard.files import close
from guard.rescue.commits import Change, put_into_index
from guard.rescue.project import Project

_NAME = "guard-index."
_PATIENCE_SECONDS = 2.0
_PAUSE = 0.05
_LEFT_SECONDS = 3600.0


class IndexLocked(Exception):
    """Somebody else holds the index."""


class Swap:
    """A new index that waits for its moment."""

    def __init__(self, index: Path, new: Path | None, trouble: str | None) -> None:
        self._index, self._new = index, new
        self.trouble = trouble
        """Why the index stays as it was."""

    def put_in_place(self) -> None:
        """The branch has moved: so does the index."""
        if self._new is None:
            return
        try:
            os.rename(_lock_of(self._index), self._index)
        except OSError as error:
            self.trouble = f"{error.strerror}"


@contextmanager
def swapped_index(project: Project, head: str | None, changed: Sequence[Change]) -> Iterator[Swap]:
    """The index with these changes, locked until the block ends; `IndexLocked` if somebody else holds it.

    An index that is missing is left so: one with these paths alone would show all others as deleted.
    """
    index = project.repository.git_dir / "index"
    if head is not None and not os.path.lexists(index):
        yield Swap(index, None, "there is no index")
        return
    new = index.with_name(f"{_NAME}{os.urandom(6).hex()}")
    held: list[int] = []
    try:
        trouble = _locked_with_changes(project, index, new, changed, held)
        try:
            yield Swap(index, None if trouble else new, trouble)
        finally:
            if trouble is None and _is_same(new, _lock_of(index)):
                os.unlink(_lock_of(index))
    finally:
        for descriptor in held:
            close(descriptor)
        for left in (new, _lock_of(new)):
            with suppress(OSError):
                os.unlink(left)


def _locked_with_changes(
    project: Project, index: Path, new: Path, changed: Sequence[Change], held: list[int]
) -> str | None:
    """Make it and take the lock; why not, if it cannot be done. What is held is to be closed."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            before = _stamp(index)
            if before is not None:
                shutil.copy2(index, new, follow_symlinks=False)
            put_into_index(project.with_variables(GIT_INDEX_FILE=os.fspath(new)), changed)
            held.append(os.open(new, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC))
            fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.link(new, _lock_of(index), follow_symlinks=False)
        except FileExistsError:
            if time.monotonic() > deadline:
                raise IndexLocked from None
            time.sleep(_PAUSE)
            continue
        except RepositoryProblem as error:
            return error.message
        except OSError as error:
            return f"{error.strerror}"
        if _stamp(index) == before:
            return None
        os.unlink(_lock_of(index))  # Somebody wrote the index while the new one was made.


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = os.lstat(path)
    except OSError as error:
        if error.errno == errno.ENOENT:
            return None
        raise
    return status.st_ino, status.st_size, status.st_mtime_ns


def _lock_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")


def _is_same(one: Path, other: Path) -> bool:
    try:
        return os.path.samestat(os.lstat(one), os.lstat(other))
    except OSError:
        return False


def sweep_index(git_dir: Path) -> list[str]:
    """Take away what a killed rescue left there; the lock, if it was ours."""
    lock = _lock_of(git_dir / "index")
    gone = []
    for left in sorted(git_dir.glob(f"{_NAME}*")):
        with suppress(OSError), _unheld(left):
            if _is_same(left, lock):
                os.unlink(lock)
                gone.append(os.fspath(lock))
                os.unlink(left)
            elif time.time() - os.lstat(left).st_mtime > _LEFT_SECONDS:
                os.unlink(left)
    return gone


@contextmanager
def _unheld(path: Path) -> Iterator[None]:
    """For as long as no living guard has it; an error if one has."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        close(descriptor)
