"""Where a rollback happens, and the lock by which there is one at a time."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from guard.errors import StoreUnavailable
from guard.rollback.journals import JOURNALS
from guard.snapshots.project import Project, Site
from guard.snapshots.shadow import SHADOW_FOLDER
from guard.system.private_files import close, try_lock

_LOCK = "rollback.lock"
_PATIENCE_SECONDS = 10.0
_PAUSE = 0.02
_OPEN_LOCK = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class RollbackPlace(Site):
    """Where a rollback happens."""

    @property
    def journals(self) -> Path:
        return self.workspace / JOURNALS

    @property
    def shadow(self) -> Path:
        """The shadow repository, which also has the notes of locks."""
        return self.workspace / SHADOW_FOLDER

    def project(self) -> Project:
        return super().project().without_filters()


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
        raise StoreUnavailable(
            f"cannot open {path}: {error.strerror}", "run `guard doctor`"
        ) from None
    try:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not try_lock(descriptor):
            if time.monotonic() > deadline:
                raise StoreUnavailable(
                    f"another rollback has held {path} for {_PATIENCE_SECONDS:g} s", "try again"
                )
            time.sleep(_PAUSE)
        yield descriptor
    finally:
        # By closing alone: a child that has it too may still be at work.
        close(descriptor)
