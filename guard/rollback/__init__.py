"""Revert the commits of a completed task: done or not done, and never half done, whenever guard is killed."""

from guard.context.invocation import Invocation
from guard.rollback.journals import find_announced, has_journals


def settle_killed(guard: Invocation) -> None:
    """Finish or undo a killed rollback: its half-swapped files are not the agent's work."""
    if guard.repository_if_any is not None and has_journals(guard):
        _finish_or_undo(guard)


def settle_unrecorded(guard: Invocation) -> None:
    """Settle, for a command that reads or changes the plan, also a rollback that only lacks the record of its end."""
    if guard.repository_if_any is not None and (has_journals(guard) or find_announced(guard)):
        _finish_or_undo(guard)


def _finish_or_undo(guard: Invocation) -> None:
    # Many commands ask whether there is one; the rest of the room is loaded only if there is.
    from guard.rollback.rollback import finish_or_undo

    finish_or_undo(guard)
