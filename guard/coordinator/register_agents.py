"""Update the registries when the coordinator starts or ends an agent."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import partial

from guard.agents import registry
from guard.core.agents.agent import ACTIVE, Agent
from guard.core.agents.baseline import Ground
from guard.core.agents.events import AgentLogEvent, AgentSpawned, AgentStatus, AgentUpdated
from guard.core.coordinator import agent_events, task_events
from guard.core.coordinator.state import Coordinator
from guard.core.coordinator.task_events import CoordinatorEvent
from guard.core.coordinator.upkeep_events import TaskRolledBack
from guard.store import Change

INFRASTRUCTURE = "infrastructure"
"""The registries list agents that repair or audit the infrastructure under this task id."""


class Register:
    """Makes the registry events of one change, and counts agents as they will be after it."""

    def __init__(self, change: Change, now: datetime, ground: Ground | None, keep: int) -> None:
        self._change, self._now, self._ground = change, now, ground
        self._keep = keep
        self._counts = registry.PendingCounts(change)

    def events(
        self, before: Coordinator, event: CoordinatorEvent, after: Coordinator
    ) -> Iterator[AgentLogEvent]:
        for agent_id, task_id, status in _ended_agents(before, event, after):
            yield from self._end(agent_id, task_id, status)
        for agent_id, task_id, kind in _started_agents(before, event):
            # A developer that claimed this task is registered in its first task, and not in this one.
            if (
                not isinstance(event, task_events.AuditorFail)
                or self._find(task_id, agent_id) is not None
            ):
                yield from self._start(agent_id, task_id, kind)

    def _start(self, agent_id: str, task_id: str, kind: str) -> Iterator[AgentLogEvent]:
        known = self._find(task_id, agent_id)
        # The program that started the agent may have registered it already.
        if known is not None and known.status in ACTIVE:
            return
        incarnation = known.incarnation + 1 if known else 1
        stamp = partial(registry.make_stamp, self._now, task_id, agent_id, incarnation)
        with registry.refuse_invalid_fields():
            event = AgentSpawned(**stamp(), agent_type=kind)
        yield from registry.retention_events(self._change, self._now, self._keep)
        yield event
        if self._ground is not None:
            yield registry.baseline_event(stamp(), self._ground)
        yield from self._counts.transitions(event, known)

    def _end(self, agent_id: str, task_id: str, status: AgentStatus) -> Iterator[AgentLogEvent]:
        known = self._find(task_id, agent_id)
        if known is not None and known.status in ACTIVE:
            event = AgentUpdated(**registry.stamp_of(known, self._now), status=status)
            yield event
            yield from self._counts.transitions(event, known)

    def _find(self, task_id: str, agent_id: str) -> Agent | None:
        return registry.find_agent(self._change, task_id, agent_id)


def _started_agents(before: Coordinator, event: CoordinatorEvent) -> Iterator[tuple[str, str, str]]:
    # Each agent that begins with the event: agent id, task id, type.
    match event:
        case task_events.DeveloperDispatched() if event.registered_in is None:
            yield event.agent_id, event.task_id, "developer"
        case agent_events.AgentDispatched():
            yield event.agent_id, event.task_id or INFRASTRUCTURE, event.agent_type
        case task_events.RemediationDispatched():
            yield event.agent_id, INFRASTRUCTURE, "remediation"
        case agent_events.BusinessAnalystDispatched():
            yield event.agent_id, event.task_id, "business_analyst"
        case agent_events.SupportingAgentDelegated():
            yield event.run_id, event.task_id or INFRASTRUCTURE, event.agent_id
        case task_events.AuditorFail() if event.timeout_at is not None:
            work = before.work(event.task_id)
            if work is not None:
                yield work.developer_id, event.task_id, "developer"
        case _:
            return


def _ended_agents(
    before: Coordinator, event: CoordinatorEvent, after: Coordinator
) -> Iterable[tuple[str, str, AgentStatus]]:
    # A developer may have to work again on a task that it called ready, so it ends only with the task.
    if isinstance(event, task_events.DeveloperReadyForAudit):
        return
    status = _end_status(event)
    for agent_id, agent in before.active_agents.items():
        if agent_id not in after.active_agents:
            yield agent_id, agent.task_id or INFRASTRUCTURE, status
    for run_id, run in before.active_supporting_agents.items():
        if run_id not in after.active_supporting_agents:
            yield run_id, run.task_id or INFRASTRUCTURE, status
    if isinstance(event, task_events.TaskComplete):
        work = before.work(event.task_id)
        if work is not None and work.developer_id not in before.active_agents:
            yield work.developer_id, event.task_id, "completed"


def _end_status(event: CoordinatorEvent) -> AgentStatus:
    match event:
        case agent_events.AgentTimeout() | agent_events.SupportingAgentFailed() | TaskRolledBack():
            return "failed"
        case agent_events.AgentCrashed():
            return "error"
        case _:
            return "completed"
