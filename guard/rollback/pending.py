"""Whether a rollback was killed half-way: asked by every command that looks at the work tree, so it loads next to nothing."""

from guard.invocation import Invocation
from guard.rollback.journals import has_journals


def see_to_killed(guard: Invocation) -> None:
    """Finish or undo a rollback that was killed: its half-swapped files are nobody's work."""
    if guard.repository_if_any is None or not has_journals(guard):
        return
    from guard.rollback.deciding import finish_or_undo

    finish_or_undo(guard)


def see_to_unrecorded(guard: Invocation) -> None:
    """The same for what reads or changes the plan: also one that only lacks the record of its end."""
    if guard.repository_if_any is None:
        return
    from guard.coordinator.recording import current

    if not has_journals(guard):
        state = current(guard)
        if state is None or state.rollback_in_progress is None:
            return
    from guard.rollback.deciding import finish_or_undo

    finish_or_undo(guard)
