"""Settle a killed rollback before another command runs. Every command asks, so this module imports next to nothing."""

import os
from typing import TYPE_CHECKING

from guard.context.invocation import Invocation

if TYPE_CHECKING:
    from guard.core.coordinator.entries import Rollback


JOURNALS = "rollbacks.d"


def has_journals(guard: Invocation) -> bool:
    try:
        with os.scandir(guard.workspace.path / JOURNALS) as entries:
            return next(entries, None) is not None
    except OSError:
        return False


def find_announced(guard: Invocation) -> "Rollback | None":
    """The rollback that has begun by the plan, and whose end is not recorded."""
    from guard.coordinator.record import find_state

    state = find_state(guard)
    return state.rollback_in_progress if state is not None else None


def settle_killed(guard: Invocation) -> None:
    """Finish or undo a killed rollback: its half-swapped files are not the agent's work."""
    if guard.repository_if_any is not None and has_journals(guard):
        _finish_or_undo(guard)


def settle_unrecorded(guard: Invocation) -> None:
    """Settle, for a command that reads or changes the plan, also a rollback that only lacks the record of its end."""
    if guard.repository_if_any is not None and (has_journals(guard) or find_announced(guard)):
        _finish_or_undo(guard)


def _finish_or_undo(guard: Invocation) -> None:
    from guard.rollback.rollback import finish_or_undo

    finish_or_undo(guard)
