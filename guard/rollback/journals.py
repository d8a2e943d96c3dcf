"""Where the journals of rollbacks lie, and whether there is one."""

import os

from guard.invocation import Invocation

JOURNALS = "rollbacks.d"


def has_journals(guard: Invocation) -> bool:
    """Whether a rollback has begun here, and not ended."""
    try:
        with os.scandir(guard.workspace.path / JOURNALS) as entries:
            return next(entries, None) is not None
    except OSError:
        return False
