"""Move a branch and the project's index to new commits in one go: the engine of rescue and rollback.

The new index is made beside the old one, in a file of guard's own; git's lock on the index is a second name of that file.
It is taken before the branch moves, so that a commit made by another git at that moment fails, instead of putting the old
index upon guard's commits. A program of its own moves branch and index, and goes on when guard is killed. Should it be killed
too, its lock can be told from any other: it is a second name of a file that is called guard's, and that no process holds.
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
from guard.rescue.changes import PathChange, update_index
from guard.rescue.stale_locks import note_locks
from guard.snapshots.project import Project
from guard.system.private_files import close
from guard.system.processes import run
from guard.system.programs import find_program

_NAME = "guard-index."
_PATIENCE_SECONDS = 2.0
_PAUSE = 0.05
_LEFT_SECONDS = 3600.0
_LOCKED, _CHANGED, _NOT_MOVED = 90, 91, 92
_LOCK_AND_MOVE = f"""
new=$1 old=$2 index=$3
shift 3
ln "$new" "$index.lock" || exit {_LOCKED}
if [ -e "$index" ] || [ -e "$old" ]; then
    cmp -s "$old" "$index" || {{ rm -f "$index.lock"; exit {_CHANGED}; }}
fi
"$@" || {{ code=$?; rm -f "$index.lock"; exit "$code"; }}
mv -f "$index.lock" "$index" || {{ rm -f "$index.lock"; exit {_NOT_MOVED}; }}
"""
# A lock that guard holds stays if git fails: the work tree is put back before it goes.
_MOVE_UNDER_LOCK = """
index=$1
shift
"$@" || exit $?
mv -f "$index.lock" "$index"
"""


class IndexLocked(Exception):
    """The index cannot be locked; the message says why."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


@contextmanager
def ref_update(
    project: Project, notes: Path, ref: str, commit: str, old: str, reason: str
) -> Iterator[Sequence[str]]:
    """The git command that moves a branch, or a detached HEAD; the locks that git makes for it are noted meanwhile."""
    repository = project.repository
    is_detached = ref == "HEAD"
    locks = [] if is_detached else [repository.common_dir / f"{ref}.lock"]
    where = ("--no-deref", ref) if is_detached else (ref,)
    with note_locks(notes, [*locks, repository.git_dir / "HEAD.lock"], commit):
        yield "update-ref", "-m", reason, *where, commit, old


def move_with_index(
    project: Project, head: str | None, changed: Sequence[PathChange], words: Sequence[str]
) -> str | None:
    """Run this git command, which moves the branch, and put the changes into the index; return why the index was not changed.

    An index that is missing stays so: one with these paths alone would show all others as deleted.
    """
    index = project.repository.git_dir / "index"
    if os.path.islink(index) or (head is not None and not os.path.lexists(index)):
        project.call(*words)
        return "there is no index"
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        new = index.with_name(new_index_name())
        try:
            with _prepare_index(project, index, new, changed) as held:
                paths = (new, _old_of(new), index)
                code, message = _run(project, _LOCK_AND_MOVE, paths, words, (held,))
                if code is None:
                    _settle_lock(index, new, moved=False)
        except (OSError, RepositoryProblem) as error:
            project.call(*words)
            return error.message if isinstance(error, RepositoryProblem) else f"{error.strerror}"
        if code in (0, _NOT_MOVED):
            return None if code == 0 else message
        if code not in (_LOCKED, _CHANGED):
            raise RepositoryProblem(f"git {words[0]} failed: {message}", "try again")
        if code == _LOCKED and not os.path.lexists(_lock_of(index)):
            project.call(*words)
            return message
        if time.monotonic() > deadline:
            raise IndexLocked("another git process holds the index")
        time.sleep(_PAUSE)


@contextmanager
def hold_index(project: Project, name: str, changed: Sequence[PathChange]) -> Iterator[int]:
    """Hold git's lock on the index, with the new index ready under this name; yield the descriptor that holds it."""
    index = project.repository.git_dir / "index"
    new = index.with_name(name)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        with _prepare_index(project, index, new, changed) as held:
            why = _take_lock(index, new)
            if why is None:
                try:
                    yield held
                finally:
                    _settle_lock(index, new, moved=False)
                return
        if time.monotonic() > deadline:
            raise IndexLocked(why, "try again when it is done")
        time.sleep(_PAUSE)


def move_under_lock(project: Project, words: Sequence[str], lends: Sequence[int]) -> str | None:
    """Run this git command, which moves the branch, and put the index that guard holds in its place; return why not."""
    index = project.repository.git_dir / "index"
    code, message = _run(project, _MOVE_UNDER_LOCK, (index,), words, lends)
    return None if code == 0 else message


def move_alone(project: Project, words: Sequence[str], lends: Sequence[int]) -> str | None:
    """Run this git command, which moves a branch that is not checked out; return why it did not."""
    code, message = _run(project, '"$@"', (), words, lends)
    return None if code == 0 else message


def new_index_name() -> str:
    return f"{_NAME}{os.urandom(6).hex()}"


@contextmanager
def _prepare_index(
    project: Project, index: Path, new: Path, changed: Sequence[PathChange]
) -> Iterator[int]:
    """Make the new index; yield the descriptor that holds it for as long as guard, or its program, is at work on it."""
    held = -1
    try:
        with suppress(FileNotFoundError):
            shutil.copy2(index, new)
            shutil.copy2(new, _old_of(new))
        update_index(project.with_variables(GIT_INDEX_FILE=os.fspath(new)), changed)
        held = os.open(new, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield held
    finally:
        _remove(new)
        if held >= 0:
            close(held)


def _take_lock(index: Path, new: Path) -> str | None:
    """Lock the index; return why it cannot be locked yet."""
    lock = _lock_of(index)
    try:
        os.link(new, lock)
    except FileExistsError:
        return "another git process holds the index"
    except OSError as error:
        raise IndexLocked(f"{index} cannot be locked: {error.strerror}") from None
    with suppress(OSError):
        if _old_of(new).read_bytes() == index.read_bytes():
            return None
    os.unlink(lock)
    return "another process keeps changing the index"


def _run(
    project: Project, script: str, paths: Sequence[Path], words: Sequence[str], lends: Sequence[int]
) -> tuple[int | None, str]:
    (git, *rest), environ = project.command(*words)
    # The shell would look it up by the folders of the search path alone.
    program = find_program(git, environ) or git
    done = run(
        ["sh", "-c", script, "sh", *map(os.fspath, paths), program, *rest],
        environ=environ,
        time_limit=project.deadline.left(),
        cwd=project.repository.root,
        lends=tuple(lends),
    )
    ended = f"exit code {done.code}" if done.code is not None else "it did not end in its time"
    return done.code, done.message or ended


def sweep_index(git_dir: Path, moved: bool = False) -> list[str]:
    """Remove what killed processes left beside the index; return the locks that went.

    If the branch has `moved` by then, the index that belongs to it is put in its place instead.
    """
    index = git_dir / "index"
    gone = []
    for left in sorted(git_dir.glob(f"{_NAME}*")):
        with suppress(OSError), _hold_if_free(left):
            if _settle_lock(index, left, moved=moved):
                gone.append(os.fspath(_lock_of(index)))
                os.unlink(left)
            elif time.time() - os.lstat(left).st_mtime > _LEFT_SECONDS:
                os.unlink(left)
    return gone


def settle_index(git_dir: Path, name: str, *, moved: bool) -> None:
    """After a rollback that was killed: put its index in place if the branch has moved, else remove its lock."""
    index = git_dir / "index"
    new = index.with_name(name)
    _settle_lock(index, new, moved=moved)
    _remove(new)


def _settle_lock(index: Path, new: Path, *, moved: bool) -> bool:
    """Turn the lock into the index, or remove it; return whether the lock was guard's own."""
    lock = _lock_of(index)
    if not _is_same(new, lock):
        return False
    if moved:
        os.rename(lock, index)
    else:
        os.unlink(lock)
    return True


def _remove(new: Path) -> None:
    for left in (new, _old_of(new), _lock_of(new)):
        with suppress(OSError):
            os.unlink(left)


@contextmanager
def _hold_if_free(path: Path) -> Iterator[None]:
    """Hold a file that no other process holds; an OSError if one does."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        close(descriptor)


def _is_same(path: Path, other: Path) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.lstat(other))
    except OSError as error:
        if error.errno == errno.ENOENT:
            return False
        raise


def _old_of(new: Path) -> Path:
    return new.with_name(f"{new.name}.old")


def _lock_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")
