"""A task's commits reverted in a real repository, without a plan around it."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from guard.core.rollback.journal import SettledRollback
from guard.core.snapshots.snapshot import Snapshot
from guard.git.locate import find_repository
from guard.rollback.carry_out import RolledBack, roll_back
from guard.rollback.place import RollbackPlace, lock_rollbacks
from guard.rollback.prepare import RevertOrder
from guard.rollback.recover import settle_all
from tests.support import TIME_LIMIT, git
from tests.support.rescues import Contents, contents, take_snapshot

State = tuple[Contents, str, str, str]


def place_of(root: Path, workspace: Path) -> RollbackPlace:
    workspace.mkdir(mode=0o700, exist_ok=True)
    return RollbackPlace(find_repository(root, lambda _: None), workspace, os.environ, TIME_LIMIT)


def rolled_back(
    root: Path,
    workspace: Path,
    commits: Sequence[str],
    branch: str | None = "refs/heads/main",
    meanwhile: Callable[[], object] = lambda: None,
) -> RolledBack:
    """Task T1 with these commits, the newest first, taken back; `meanwhile` happens when all is ready, and nothing touched."""
    place = place_of(root, workspace)
    order = RevertOrder("T1", "1.1", "Add a thing", branch, tuple(commits))

    def keep() -> Snapshot:
        return take_snapshot(root, workspace)

    def announce(_head: str, _to_sha: str) -> None:
        meanwhile()

    with lock_rollbacks(workspace) as lock:
        settle_all(place)
        return roll_back(place, order, lock, keep, announce)


def settled(root: Path, workspace: Path) -> list[SettledRollback]:
    """What the next command does first."""
    with lock_rollbacks(workspace):
        return settle_all(place_of(root, workspace))


def state(root: Path) -> State:
    """All that a rollback may change: files, HEAD, the index, and what git says of both."""
    return (
        contents(root),
        git(root, "rev-parse", "HEAD").strip(),
        git(root, "ls-files", "--stage", "-z"),
        git(root, "status", "--porcelain", "-z", "--ignored"),
    )
