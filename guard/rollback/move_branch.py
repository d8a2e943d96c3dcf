"""Git's own lock on the index, held while the work tree changes; and the branch and the index, moved to the revert.

The new index is a file of ours, and the lock is a second name of it, so that it can be told from anybody else's. Moving is
done by a program of its own, which goes on when guard is killed, and holds guard's lock for as long as it lives.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from guard.core.base.text import visible
from guard.rescue.commits import PathChange, put_into_index
from guard.rollback.errors import Stopped
from guard.snapshots.project import Project
from guard.system.private_files import close
from guard.system.processes import run

_PATIENCE_SECONDS = 2.0
_PAUSE = 0.05
_SCRIPT = """
index=$1
shift
"$@" || exit $?
mv -f "$index.lock" "$index"
"""


def index_name() -> str:
    """Such names are swept by a rescue as well, if nobody has them any more."""
    return f"guard-index.{os.urandom(6).hex()}"


@contextmanager
def index_held(project: Project, name: str, changed: Sequence[PathChange]) -> Iterator[int]:
    """While nobody else can change the index; the new one is ready, and held by the descriptor."""
    index = project.repository.git_dir / "index"
    new, lock = index.with_name(name), _lock_of(index)
    held = -1
    try:
        held = _locked(project, index, new, changed)
        yield held
    finally:
        if held >= 0 and _is_same(new, lock):
            os.unlink(lock)
        for left in (new, _lock_of(new)):
            with suppress(OSError):
                os.unlink(left)
        if held >= 0:
            close(held)


def _locked(project: Project, index: Path, new: Path, changed: Sequence[PathChange]) -> int:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        held = _prepared(project, index, new, changed)
        try:
            os.link(new, _lock_of(index))
        except FileExistsError:
            why = "somebody else's git holds the index"
        except OSError as error:
            close(held)
            raise Stopped("not_ready", f"{index} cannot be locked: {error.strerror}") from None
        else:
            if _is_as_it_was(index, new):
                return held
            os.unlink(_lock_of(index))
            why = "somebody changes the index again and again"
        close(held)
        if time.monotonic() > deadline:
            raise Stopped("not_ready", why, "try again when it is done")
        time.sleep(_PAUSE)


def _prepared(project: Project, index: Path, new: Path, changed: Sequence[PathChange]) -> int:
    shutil.copy2(index, new)
    shutil.copy2(index, _old_of(new))
    put_into_index(project.with_variables(GIT_INDEX_FILE=os.fspath(new)), changed)
    held = os.open(new, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return held


def _is_as_it_was(index: Path, new: Path) -> bool:
    """Whether the index is still the one that the new one was made from; the copy of that goes."""
    old = _old_of(new)
    try:
        return old.read_bytes() == index.read_bytes()
    except OSError:
        return False
    finally:
        with suppress(OSError):
            os.unlink(old)


def move(project: Project, words: Sequence[str], lends: Sequence[int]) -> str | None:
    """Run this git command, which moves the branch, and put the held index in its place; why not."""
    argv, environ = project.command(*words)
    index = os.fspath(project.repository.git_dir / "index")
    done = run(
        ["sh", "-c", _SCRIPT, "sh", index, *argv],
        environ=environ,
        time_limit=project.deadline.left(),
        cwd=project.repository.root,
        lends=tuple(lends),
    )
    if done.code == 0:
        return None
    said = visible("; ".join(done.stderr.decode(errors="replace").splitlines()))
    return said or f"exit code {done.code}"


def settle_index(git_dir: Path, name: str, *, moved: bool) -> None:
    """After a rollback that was killed: its index takes its place if the branch has moved, else its lock goes."""
    index = git_dir / "index"
    new, lock = index.with_name(name), _lock_of(index)
    if _is_same(new, lock):
        if moved:
            os.rename(lock, index)
        else:
            os.unlink(lock)
    for left in (new, _old_of(new), _lock_of(new)):
        with suppress(OSError):
            os.unlink(left)


def _is_same(one: Path, other: Path) -> bool:
    try:
        return os.path.samestat(os.lstat(one), os.lstat(other))
    except OSError:
        return False


def _lock_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")


def _old_of(new: Path) -> Path:
    return new.with_name(f"{new.name}.old")
