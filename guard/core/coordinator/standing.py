"""Where each task of the plan stands, in one word."""

from guard.core.coordinator.state import Coordinator


def standing(state: Coordinator) -> dict[str, str]:
    """By the id of the task; a task that awaits its audit is called so, though it is in progress too."""
    words = dict.fromkeys(state.blocked_tasks, "blocked")
    words |= dict.fromkeys(state.available_tasks, "available")
    words |= {one.task_id: "in_progress" for one in state.in_progress_tasks}
    words |= dict.fromkeys(state.pending_audit, "pending_audit")
    return words | dict.fromkeys(state.completed_tasks, "completed")


def waiting(state: Coordinator | None) -> frozenset[tuple[str, str]]:
    """The tasks, with their developers, on which nobody can work now: they await an audit, or an answer."""
    work = state.in_progress_tasks if state is not None else ()
    return frozenset(
        (one.task_id, one.developer_id) for one in work if one.status != "implementing"
    )
