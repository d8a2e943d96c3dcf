"""Read signs of an agent's work from the coordinator's events: claimed tasks, checkpoints, work handed over to the audit."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from guard.core.log.events import BaseEvent

_OWN_EVENTS = {
    "agent_checkpoint": "made a checkpoint",
    "developer_checkpoint": "made a checkpoint",
    "developer_ready_for_audit": "handed its work over to the audit",
}


class Claim(NamedTuple):
    """One event of the plan that shows an agent at its task."""

    seconds: float
    detail: str
    message: str


def claims_by_agent(
    events: Iterable[BaseEvent], at: Mapping[str, str] | None = None
) -> dict[tuple[str, str], list[Claim]]:
    """The claims by task and agent, in the order of the log; `at` maps agents to tasks, as a checkpoint names no task.

    That an agent was given a task is no claim: the agent may never have started.
    """
    found: dict[tuple[str, str], list[Claim]] = {}
    for event in events:
        key, detail = _key(event, at or {}), _OWN_EVENTS.get(event.type)
        if key is not None and detail is not None:
            found.setdefault(key, []).append(Claim(event.at.timestamp(), detail, _words(event)))
    return found


def _key(event: BaseEvent, at: Mapping[str, str]) -> tuple[str, str] | None:
    agent_id = getattr(event, "agent_id", None)
    if not isinstance(agent_id, str):
        return None
    task_id = getattr(event, "task_id", None) or at.get(agent_id)
    return (task_id, agent_id) if isinstance(task_id, str) else None


def _words(event: BaseEvent) -> str:
    words = (
        getattr(event, name, None) for name in ("message", "summary", "progress", "checkpoint")
    )
    return next((value for value in words if isinstance(value, str) and value), "")
