"""Read from the log and the repository which commits are a task's, and how earlier rollbacks of it ended."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from guard.coordinator.audited_commit import own_commits
from guard.coordinator.record import reused_id_error
from guard.core.coordinator.entries import Rollback
from guard.core.coordinator.requests import Draft, numbered_id
from guard.core.coordinator.upkeep_events import RollbackFailed, RollbackStarted, TaskRolledBack
from guard.core.rescue.state import full_ref
from guard.core.rollback.journal import SettledRollback
from guard.errors import RepositoryProblem
from guard.git.gitdir_files import heads
from guard.git.reader import RepositoryReader
from guard.git.refs import missing_commits
from guard.rollback.place import RollbackPlace
from guard.rollback.prepare import RollbackStopped
from guard.rollback.recover import has_revert
from guard.store import Store

INTERRUPTED = "interrupted"


def outcome(
    place: RollbackPlace, begun: Rollback, settled: Sequence[SettledRollback]
) -> SettledRollback:
    """How an announced rollback ended: by its settled journal, or without one by whether its branch has moved."""
    known = next((attempt for attempt in settled if attempt.to_sha == begun.to_sha), None)
    if known is not None:
        return known
    return SettledRollback(begun.task_id, begun.head, begun.to_sha, _has_moved(place, begun))


def _has_moved(place: RollbackPlace, begun: Rollback) -> bool:
    """Tell whether the revert is on the branch, which is the same in all work trees."""
    project = place.project()
    ref = full_ref(begun.branch)
    if ref is not None:
        return has_revert(project, ref, begun.to_sha)
    # A detached HEAD is that of one work tree, and it is not recorded of which. The revert was made for it alone, so the
    # work tree that has it is the one.
    for head, _path in heads(place.repository):
        with suppress(RepositoryProblem):
            if has_revert(project, head, begun.to_sha):
                return True
    return False


def end_event(begun: Rollback, found: SettledRollback) -> Draft:
    if not found.moved:
        return partial(RollbackFailed, task_id=begun.task_id, reason=INTERRUPTED)
    return partial(
        TaskRolledBack,
        task_id=begun.task_id,
        from_sha=begun.head,
        to_sha=begun.to_sha,
        reason=begun.reason,
    )


@dataclass(frozen=True)
class Attempts:
    """The rollbacks under one request id, of which at most the last has succeeded."""

    next_id: str
    """The id of the one that comes next: the id itself is the first one's."""
    done: RollbackStarted | None = None


def find_attempts(store: Store, task_id: str, event_id: str) -> Attempts:
    """Find the rollbacks that were begun under a request id: an interrupted script repeats its request.

    Refused if another event was recorded under the id.
    """
    count, next_id = 1, event_id
    begun: RollbackStarted | None = None
    for entry in store.entries():
        event = entry.event
        if event.id == next_id:
            if not isinstance(event, RollbackStarted) or event.task_id != task_id:
                raise reused_id_error(event, event_id)
            begun, count = event, count + 1
            next_id = numbered_id(event_id, count)
        elif begun is not None and isinstance(event, TaskRolledBack | RollbackFailed):
            # There is one rollback at a time: the next end is its end.
            if isinstance(event, TaskRolledBack):
                return Attempts(next_id, begun)
            begun = None
    return Attempts(next_id)


def commits_of_task(
    git: RepositoryReader, base_sha: str | None, commit_sha: str, earlier: Sequence[str] = ()
) -> tuple[str, ...]:
    """List the commits of a task, the newest first: those after its base, by first parents, up to where it passed its audit.

    `earlier` are the commits at which other tasks had ended before: what those lead to is theirs. Without a base it is the last
    commit alone.
    """
    gone = missing_commits(git, [oid for oid in (base_sha, commit_sha) if oid])
    if gone:
        raise _rewritten_error(gone[0])
    if base_sha is None:
        return (commit_sha,)
    if git.line("merge-base", base_sha, commit_sha) != base_sha:
        raise _rewritten_error(base_sha)
    return own_commits(git, base_sha, commit_sha, earlier)


def _rewritten_error(oid: str) -> RollbackStopped:
    return RollbackStopped(
        "not_in_history",
        f"the task began at {oid[:12]}, which is not in the history of its last commit any more",
        "find what became of it with `git log` and `git reflog`, and revert that with `git revert`",
    )
