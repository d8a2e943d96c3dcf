"""Read signs of an agent's work from the coordinator's events: claimed tasks, checkpoints, work handed over to the audit."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import NamedTuple

from guard.core.activity.events import ResumeSent
from guard.core.log.events import BaseEvent

_OWN_EVENTS = {
    "agent_checkpoint": "made a checkpoint",
    "developer_checkpoint": "made a checkpoint",
    "developer_ready_for_audit": "handed its work over to the audit",
}
_GIVEN = {"developer_dispatched": "has the task"}
_WITH_A_PROMPT = timedelta(minutes=5)


class Claim(NamedTuple):
    """One event of the plan that shows an agent at its task."""

    seconds: float
    detail: str
    message: str


def claims_by_agent(
    events: Iterable[BaseEvent], at: Mapping[str, str] | None = None
) -> dict[tuple[str, str], list[Claim]]:
    """The claims by task and agent, in the order of the log; `at` maps agents to tasks, as a checkpoint names no task."""
    found: dict[tuple[str, str], list[tuple[BaseEvent, Claim]]] = {}
    prompted: dict[tuple[str, str], list[BaseEvent]] = {}
    for event in events:
        key = _key(event, at or {})
        if key is None:
            continue
        if isinstance(event, ResumeSent):
            prompted.setdefault(key, []).append(event)
        elif getattr(event, "to_start", False) or getattr(event, "registered_in", None):
            continue  # Another agent is to start the task, or guard claimed it: no work of the agent.
        elif detail := (_OWN_EVENTS | _GIVEN).get(event.type):
            claim = Claim(event.at.timestamp(), detail, _words(event))
            found.setdefault(key, []).append((event, claim))
    # A task that came with a prompt is no work of the agent either.
    return {
        key: [claim for event, claim in ours if not _is_prompted(event, prompted.get(key, ()))]
        for key, ours in found.items()
    }


def _key(event: BaseEvent, at: Mapping[str, str]) -> tuple[str, str] | None:
    agent_id = getattr(event, "agent_id", None)
    if not isinstance(agent_id, str):
        return None
    task_id = getattr(event, "task_id", None) or at.get(agent_id)
    return (task_id, agent_id) if isinstance(task_id, str) else None


def _is_prompted(event: BaseEvent, prompts: Iterable[BaseEvent]) -> bool:
    return event.type in _GIVEN and any(
        abs(prompt.at - event.at) <= _WITH_A_PROMPT for prompt in prompts
    )


def _words(event: BaseEvent) -> str:
    words = (
        getattr(event, name, None) for name in ("message", "summary", "progress", "checkpoint")
    )
    return next((value for value in words if isinstance(value, str) and value), "")
