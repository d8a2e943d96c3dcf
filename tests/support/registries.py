"""A registry of another tool, as `guard agent import` reads it."""

from typing import Any


def seeds(begun: str, halfway: str, ended: str, **first: Any) -> dict[str, Any]:
    """Three agents of a task: one at work, with more fields if a test wants them, one completed and one terminated."""
    at_work = {
        "id": "builder-1",
        "type": "builder",
        "tmux_session": "agent_builder-1",
        "status": "running",
        "started_at": begun,
        "last_update": halfway,
        "progress": 40,
        "last_message": "Halfway",
        **first,
    }
    fixer = {"type": "fixer", "started_at": begun}
    completed = {**fixer, "id": "fixer-1", "status": "completed", "completed_at": ended}
    terminated = {**fixer, "id": "old-1", "status": "terminated", "terminated_at": ended}
    return {
        "task_id": "T1",
        "agents": [at_work, completed, terminated],
        "active_count": 1,
        "completed_count": 1,
        "total_spawned": 3,
    }


def imported_agent(begun: str, **fields: Any) -> dict[str, Any]:
    """An agent that can be taken, with these fields changed; those that are `...` are left out."""
    usual = {"id": "a1", "type": "builder", "status": "running", "started_at": begun}
    return {name: value for name, value in {**usual, **fields}.items() if value is not ...}
