"""A rollback that was killed half-way is seen to by the next command: finished or undone, if there is one."""

from guard.context.invocation import Invocation
from guard.rollback.journals import announced, has_journals


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
