"""Where each task of the plan stands, in one word."""

from guard.core.coordinator.state import Coordinator


def standing(state: Coordinator) -> dict[str, str]:
    """By the id of the task: its place, but a task that awaits its audit is called so, though it is in progress too."""
    return {**state.places(), **dict.fromkeys(state.pending_audit, "pending_audit")}


def waiting(state: Coordinator | None) -> frozenset[tuple[str, str]]:
    """The tasks, with their developers, on which nobody can work now: they await an audit, or an answer."""
    work = state.in_progress_tasks if state is not None else ()
    return frozenset(
        (one.task_id, one.developer_id) for one in work if one.status != "implementing"
    )
