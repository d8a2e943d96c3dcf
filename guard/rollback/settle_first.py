"""A rollback that was killed half-way is seen to by the next command: finished or undone, if there is one."""

import os
from typing import TYPE_CHECKING

from guard.context.invocation import Invocation

if TYPE_CHECKING:
    from guard.core.coordinator.entries import Rollback


JOURNALS = "rollbacks.d"


def has_journals(guard: Invocation) -> bool:
    """Whether a rollback has begun here, and not ended."""
    try:
        with os.scandir(guard.workspace.path / JOURNALS) as entries:
            return next(entries, None) is not None
    except OSError:
        return False


def announced(guard: Invocation) -> "Rollback | None":
    """The rollback that has begun by the plan, and whose end is not recorded."""
    from guard.coordinator.record import find_state

    state = find_state(guard)
    return state.rollback_in_progress if state is not None else None


def see_to_killed(guard: Invocation) -> None:
    """Finish or undo a rollback that was killed: its half-swapped files are nobody's work."""
    if guard.repository_if_any is not None and has_journals(guard):
        _finish_or_undo(guard)


def see_to_unrecorded(guard: Invocation) -> None:
    """The same for what reads or changes the plan: also one that only lacks the record of its end."""
    if guard.repository_if_any is not None and (has_journals(guard) or announced(guard)):
        _finish_or_undo(guard)


def _finish_or_undo(guard: Invocation) -> None:
    from guard.rollback.rollback import finish_or_undo

    finish_or_undo(guard)
