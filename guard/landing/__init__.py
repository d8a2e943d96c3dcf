"""Land the work of tasks that passed their audit on the target branch, without touching anybody's work tree."""

from guard.context.invocation import Invocation


def settle_landing(guard: Invocation) -> None:
    """Finish or undo the landing of a process that was killed."""
    from guard.coordinator.record import find_state

    if guard.repository_if_any is None:
        return
    state = find_state(guard)
    if state is not None and state.landing_in_progress is not None:
        # Many commands ask whether there is one; the rest of the room is loaded only if there is.
        from guard.landing.settle import finish_or_undo

        finish_or_undo(guard)
