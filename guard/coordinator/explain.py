"""What the coordinator's state was made from: its file and the records after it, or the log alone."""

import os

from guard.context.invocation import Invocation
from guard.coordinator.record import loaded
from guard.core.base.text import plural
from guard.core.coordinator.state import COORDINATOR, Coordinator
from guard.core.log.view import unseal


def origin(guard: Invocation) -> str:
    """One sentence on where the state comes from."""
    now = loaded(guard)
    kept = _kept(guard)
    if kept is None:
        told = f"{COORDINATOR.file} cannot be used: folded from the log alone, {plural(now.events_folded, 'event')}"
    else:
        later = now.events_folded - kept.events_folded
        told = f"{COORDINATOR.file} stands at record {kept.seq}, with {plural(kept.events_folded, 'event')}"
        told += f"; {plural(later, 'event')} came after it" if later else "; nothing came after it"
    return told


def _kept(guard: Invocation) -> Coordinator | None:
    """The state as it is on the disk, if that is sound."""
    path = os.fspath(guard.workspace.path / COORDINATOR.file)
    try:
        with open(path, "rb") as file:
            return unseal(file.read(), Coordinator)
    except (OSError, ValueError):
        return None
