"""What a change does to an agent and to both counts, said beforehand: it is recorded together with what causes it."""

from typing import assert_never

from guard.core.agents.agent import Agent
from guard.core.agents.lifecycle import ACTIVE, ends
from guard.core.agents.roster import AgentCounts
from guard.core.events.agent import (
    AgentEndDetected,
    AgentImported,
    AgentKilled,
    AgentSpawned,
    AgentStatus,
    AgentTransitioned,
    AgentUpdated,
)

Moving = AgentSpawned | AgentImported | AgentUpdated | AgentEndDetected | AgentKilled
"""Events that can give an agent another status."""


def transition(
    event: Moving, event_id: str, before: Agent | None, task: AgentCounts, overall: AgentCounts
) -> AgentTransitioned | None:
    """The change of status that the event will make; None if it makes none. Counts are those before the event."""
    new = isinstance(event, AgentSpawned | AgentImported)
    previous = None if new or before is None else before.status
    if not new and (before is None or _is_late(event, before)):
        return None
    status = _status(event)
    if status == previous:
        return None
    active, completed = _moved(event, previous, status)
    return AgentTransitioned(
        at=event.at,
        id=event_id,
        run=event.run,
        iteration=event.iteration,
        task_id=event.task_id,
        agent_id=event.agent_id,
        incarnation=event.incarnation,
        previous_status=previous,
        status=status,
        active_count=task.active + active,
        completed_count=task.completed + completed,
        active_agents=overall.active + active,
        completed_agents=overall.completed + completed,
    )


def _is_late(event: Moving, before: Agent) -> bool:
    return before.status not in ACTIVE or before.incarnation != event.incarnation


def _status(event: Moving) -> AgentStatus:
    match event:
        case AgentSpawned():
            return "deployed"
        case AgentImported() | AgentUpdated():
            return event.status
        case AgentEndDetected():
            return "completed"
        case AgentKilled():
            return "terminated"
        case _:
            assert_never(event)


def _moved(event: Moving, previous: AgentStatus | None, status: AgentStatus) -> tuple[int, int]:
    """By how much the active and the completed ones change."""
    if previous is None:
        killed = isinstance(event, AgentImported) and event.killed
        return (1, 0) if status in ACTIVE else (0, int(not killed))
    if not ends(previous, status):
        return 0, 0
    return -1, int(not isinstance(event, AgentKilled))
