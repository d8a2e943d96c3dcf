"""Find the traces of a rollback that has not ended. Many commands ask, so this module imports next to nothing."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from guard.context.invocation import Invocation
from guard.errors import StateProblem

if TYPE_CHECKING:
    from guard.core.coordinator.entries import Rollback


JOURNALS = "rollbacks.d"


def refuse_link(journals: Path) -> None:
    """Raise if the folder of the journals is a link: guard would write through it."""
    if os.path.islink(journals):
        raise StateProblem(
            f"{journals} is a symbolic link, so guard does not trust it",
            "find out which program changed it, and move it away",
        )


def has_journals(guard: Invocation) -> bool:
    path = guard.workspace.path / JOURNALS
    refuse_link(path)
    try:
        with os.scandir(path) as entries:
            return next(entries, None) is not None
    except OSError:
        return False


def find_announced(guard: Invocation) -> "Rollback | None":
    """The rollback that has begun by the plan, and whose end is not recorded."""
    from guard.coordinator.record import find_state

    state = find_state(guard)
    return state.rollback_in_progress if state is not None else None
