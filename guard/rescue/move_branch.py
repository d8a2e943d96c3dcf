"""The branch and the project's index, brought to new commits in one go.

The new index is made beside the old one, and takes git's own lock before the branch moves: whoever commits at that moment is
told so, instead of committing the old index upon our commits. All of this is done by a program of its own, which goes on when
guard is killed. Should it be killed too, its lock is a second name of a file that is called ours, and that nobody holds any
more: so it can be told from anybody else's.
"""

import errno
import fcntl
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from guard.core.base.text import visible
from guard.errors import RepositoryProblem
from guard.rescue.commits import PathChange, put_into_index
from guard.snapshots.project import Project
from guard.system.private_files import close
from guard.system.processes import run

_NAME = "guard-index."
_PATIENCE_SECONDS = 2.0
_PAUSE = 0.05
_LEFT_SECONDS = 3600.0
_LOCKED, _CHANGED, _NOT_MOVED = 90, 91, 92
_SCRIPT = f"""
new=$1 old=$2 index=$3
shift 3
ln "$new" "$index.lock" || exit {_LOCKED}
if [ -e "$index" ] || [ -e "$old" ]; then
    cmp -s "$old" "$index" || {{ rm -f "$index.lock"; exit {_CHANGED}; }}
fi
"$@" || {{ code=$?; rm -f "$index.lock"; exit "$code"; }}
mv -f "$index.lock" "$index" || {{ rm -f "$index.lock"; exit {_NOT_MOVED}; }}
"""


class IndexLocked(Exception):
    """Somebody else holds the index."""


def with_index(
    project: Project, head: str | None, changed: Sequence[PathChange], words: Sequence[str]
) -> str | None:
    """Run this git command, which moves the branch, and put the changes into the index; why not the latter.

    An index that is missing is left so: one with these paths alone would show all others as deleted.
    """
    index = project.repository.git_dir / "index"
    if os.path.islink(index) or (head is not None and not os.path.lexists(index)):
        project.call(*words)
        return "there is no index"
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            with _prepared(project, index, changed) as (new, held):
                code, said = _moved(project, index, new, held, words)
        except (OSError, RepositoryProblem) as error:
            project.call(*words)
            return error.message if isinstance(error, RepositoryProblem) else f"{error.strerror}"
        if code in (0, _NOT_MOVED):
            return None if code == 0 else said
        if code not in (_LOCKED, _CHANGED):
            raise RepositoryProblem(f"git {words[0]} failed: {said}", "try again")
        if code == _LOCKED and not os.path.lexists(_lock_of(index)):
            project.call(*words)
            return said
        if time.monotonic() > deadline:
            raise IndexLocked
        time.sleep(_PAUSE)


@contextmanager
def _prepared(
    project: Project, index: Path, changed: Sequence[PathChange]
) -> Iterator[tuple[Path, int]]:
    """The new index in a file of ours, held for as long as anybody of ours is at work on it."""
    new = index.with_name(f"{_NAME}{os.urandom(6).hex()}")
    held = -1
    try:
        with suppress(FileNotFoundError):
            shutil.copy2(index, new)
            shutil.copy2(new, _old_of(new))
        put_into_index(project.with_variables(GIT_INDEX_FILE=os.fspath(new)), changed)
        held = os.open(new, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield new, held
    finally:
        for left in (new, _old_of(new), _lock_of(new)):
            with suppress(OSError):
                os.unlink(left)
        if held >= 0:
            close(held)


def _moved(
    project: Project, index: Path, new: Path, held: int, words: Sequence[str]
) -> tuple[int | None, str]:
    argv, environ = project.command(*words)
    done = run(
        [
            "sh",
            "-c",
            _SCRIPT,
            "sh",
            os.fspath(new),
            os.fspath(_old_of(new)),
            os.fspath(index),
            *argv,
        ],
        environ=environ,
        time_limit=project.deadline.left(),
        cwd=project.repository.root,
        lends=(held,),
    )
    said = visible("; ".join(done.stderr.decode(errors="replace").splitlines()))
    return done.code, said or f"exit code {done.code}"


def _old_of(new: Path) -> Path:
    return new.with_name(f"{new.name}.old")


def _lock_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")


def sweep_index(git_dir: Path, moved: bool = False) -> list[str]:
    """Take away what a killed rescue left there; the lock, if it was ours.

    If the branch has `moved` by then, the index that belongs to it is put in its place instead.
    """
    lock = _lock_of(git_dir / "index")
    gone = []
    for left in sorted(git_dir.glob(f"{_NAME}*")):
        with suppress(OSError), _unheld(left):
            if _is_same(left, lock):
                if moved:
                    os.rename(lock, git_dir / "index")
                else:
                    os.unlink(lock)
                gone.append(os.fspath(lock))
                os.unlink(left)
            elif time.time() - os.lstat(left).st_mtime > _LEFT_SECONDS:
                os.unlink(left)
    return gone


@contextmanager
def _unheld(path: Path) -> Iterator[None]:
    """For as long as nobody has it; an error if somebody has."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        close(descriptor)


def _is_same(one: Path, other: Path) -> bool:
    try:
        return os.path.samestat(os.lstat(one), os.lstat(other))
    except OSError as error:
        if error.errno == errno.ENOENT:
            return False
        raise
