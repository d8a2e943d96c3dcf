"""How a rollback ended that was announced, and of which nobody recorded the end: the repository tells."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from guard.core.coordinator.entries import Rollback
from guard.core.coordinator.requests import Draft
from guard.core.coordinator.upkeep_events import RollbackFailed, TaskRolledBack
from guard.core.rescue.state import full_ref
from guard.errors import RepositoryProblem
from guard.git.gitdir_files import heads
from guard.rollback.place import RollbackPlace
from guard.rollback.recover import Settled, has_revert

INTERRUPTED = "interrupted"


def outcome(place: RollbackPlace, begun: Rollback, settled: Sequence[Settled]) -> Settled:
    """By its journal, which was settled where it happened; without one by what it moves."""
    known = next((one for one in settled if one.to_sha == begun.to_sha), None)
    if known is not None:
        return known
    return Settled(begun.task_id, begun.head, begun.to_sha, _has_moved(place, begun))


def _has_moved(place: RollbackPlace, begun: Rollback) -> bool:
    """A branch is the same in all work trees. A detached HEAD is that of one, and it is not recorded of which: the revert was
    made for it alone, so whichever has it is the one."""
    project = place.project()
    ref = full_ref(begun.branch)
    if ref is not None:
        return has_revert(project, ref, begun.to_sha)
    for head, _path in heads(place.repository):
        with suppress(RepositoryProblem):
            if has_revert(project, head, begun.to_sha):
                return True
    return False


def end_of(begun: Rollback, found: Settled) -> Draft:
    """The event that is to be recorded."""
    if not found.moved:
        return partial(RollbackFailed, task_id=begun.task_id, reason=INTERRUPTED)
    return partial(
        TaskRolledBack,
        task_id=begun.task_id,
        from_sha=begun.head,
        to_sha=begun.to_sha,
        reason=begun.reason,
    )
