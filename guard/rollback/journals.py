"""Find the traces of a rollback that has not ended. Many commands ask, so this module imports next to nothing."""

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
