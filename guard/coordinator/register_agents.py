"""Update the registries when the coordinator starts or ends an agent, or gives it an answer."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import partial

from guard.agents import registry
from guard.core.agents.agent import ACTIVE, Agent
from guard.core.agents.baseline import AGENT_BASELINE, Ground, baseline_key
from guard.core.agents.events import AgentLogEvent, AgentSpawned, AgentStatus, AgentUpdated
from guard.core.agents.registry import AGENT_REGISTRY
from guard.core.coordinator import agent_events, task_events
from guard.core.coordinator.from_registry import INFRASTRUCTURE, planned_agents
from guard.core.coordinator.state import Coordinator
from guard.core.coordinator.task_events import CoordinatorEvent
from guard.core.coordinator.upkeep_events import TaskRolledBack
from guard.store import Change


class Register:
    """Makes the registry events of one change, and counts agents as they will be after it."""

    def __init__(
        self,
        change: Change,
        now: datetime,
        ground: Ground | None,
        keep: int,
        ended: tuple[str, str] | None = None,
    ) -> None:
        """`ended` is the task and name of an agent whose status the same change records."""
        self._change, self._now, self._ground = change, now, ground
        self._keep, self._ended = keep, ended
        self._counts = registry.PendingCounts(change)

    def expect(self, before: Coordinator, events: Iterable[CoordinatorEvent]) -> None:
        """Say which agents the events start."""
        started = [one for event in events for one in _started_agents(before, event)]
        expect_agents(self._change, ((task, agent) for agent, task, _ in started), self._ground)

    def with_life(self, before: Coordinator, event: CoordinatorEvent) -> CoordinatorEvent:
        """Return the event with the number of the life in which the registries have the agent that it starts."""
        for agent_id, task_id, _kind in _started_agents(before, event):
            known = self._find(task_id, agent_id)
            if known is None and isinstance(event, task_events.AuditorFail):
                return event
            is_active = known is not None and known.status in ACTIVE
            number = (known.incarnation if known else 0) + (not is_active)
            return event.model_copy(update={"incarnation": number})
        if isinstance(event, task_events.DeveloperDispatched) and event.registered_in is not None:
            known = self._find(event.registered_in, event.agent_id)
            if known is not None:
                return event.model_copy(update={"incarnation": known.incarnation})
        return event

    def events(
        self, before: Coordinator, event: CoordinatorEvent, after: Coordinator
    ) -> Iterator[AgentLogEvent]:
        if isinstance(event, task_events.AgentResumesWithGuidance):
            yield from self._go_on(before, event.agent_id)
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

    def _go_on(self, before: Coordinator, agent_id: str) -> Iterator[AgentLogEvent]:
        # The answer is there, so the agent is no longer blocked.
        planned = next((one for one in planned_agents(before) if one.name == agent_id), None)
        known = self._find(planned.registered_in, agent_id) if planned is not None else None
        if known is not None and known.status == "blocked":
            event = AgentUpdated(**registry.stamp_of(known, self._now), status="working")
            yield event
            yield from self._counts.transitions(event, known)

    def _end(self, agent_id: str, task_id: str, status: AgentStatus) -> Iterator[AgentLogEvent]:
        known = self._find(task_id, agent_id)
        if known is not None and known.status in ACTIVE and self._ended != (task_id, agent_id):
            event = AgentUpdated(**registry.stamp_of(known, self._now), status=status)
            yield event
            yield from self._counts.transitions(event, known)

    def _find(self, task_id: str, agent_id: str) -> Agent | None:
        return registry.find_agent(self._change, task_id, agent_id)


def expect_agents(change: Change, names: Iterable[tuple[str, str]], ground: Ground | None) -> None:
    """Say which agents, after their tasks, a change is about, and their baselines if they begin on this ground."""
    for task_id, agent_id in names:
        change.expect(AGENT_REGISTRY, task_id, agent_id)
        if ground is not None:
            change.expect(AGENT_BASELINE, baseline_key(task_id, agent_id))


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
