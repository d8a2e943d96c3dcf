"""Where a rollback happens, and the lock by which there is one at a time."""

import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from guard.errors import StoreUnavailable
from guard.git.locate import Repository
from guard.git.run import with_safe_path
from guard.rollback.journals import JOURNALS
from guard.snapshots.project import Project
from guard.snapshots.shadow import SHADOW_FOLDER
from guard.system.clock import Deadline
from guard.system.private_files import close

_LOCK = "rollback.lock"
_PATIENCE_SECONDS = 10.0
_PAUSE = 0.02
_OPEN_LOCK = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class RollbackPlace:
    """A work tree, the workspace that has its state, and the time that git is given."""

    repository: Repository
    workspace: Path
    environ: Mapping[str, str]
    time_limit: float

    @property
    def journals(self) -> Path:
        return self.workspace / JOURNALS

    @property
    def shadow(self) -> Path:
        """The shadow repository, which also has the notes of locks."""
        return self.workspace / SHADOW_FOLDER

    def project(self) -> Project:
        safely = with_safe_path(self.environ, self.repository.root)
        return Project(self.repository, safely, Deadline(self.time_limit)).without_filters()

    def at(self, repository: Repository) -> "RollbackPlace":
        return replace(self, repository=repository)


@contextmanager
def lock_rollbacks(workspace: Path) -> Iterator[int]:
    """Hold the lock of all rollbacks of a workspace; yield the descriptor, for children that must be waited for.

    A lock that a child was lent is held until the child has ended, even if guard is killed: so the process that gets it knows
    that nothing of a killed rollback is still at work.
    """
    path = workspace / _LOCK
    try:
        descriptor = os.open(path, _OPEN_LOCK, 0o600)
    except OSError as error:
        raise StoreUnavailable(f"{path}: {error.strerror}", "`guard doctor` helps") from None
    try:
        _wait_for(descriptor, path)
        yield descriptor
    finally:
        # By closing alone: a child that has it too may still be at work.
        close(descriptor)


def _wait_for(descriptor: int, path: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise StoreUnavailable(
                    f"another rollback held {path} for {_PATIENCE_SECONDS:g} s", "try again"
                ) from None
            time.sleep(_PAUSE)
        else:
            return
