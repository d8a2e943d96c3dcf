"""Where each task of the plan stands, in one word."""

from guard.core.coordinator.state import Coordinator


def standing(state: Coordinator) -> dict[str, str]:
    """By the id of the task; a task that awaits its audit is called so, though it is in progress too."""
    words = dict.fromkeys(state.blocked_tasks, "blocked")
    words |= dict.fromkeys(state.available_tasks, "available")
    words |= {one.task_id: "in_progress" for one in state.in_progress_tasks}
    words |= dict.fromkeys(state.pending_audit, "pending_audit")
    return words | dict.fromkeys(state.completed_tasks, "completed")
