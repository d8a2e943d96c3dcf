"""Fold events into agents and their counts, for both registries.

Counts move only when an agent goes from an active status to a terminal one. A report after the end, or from an earlier
incarnation, counts as late and changes nothing else.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple, assert_never, cast

from guard.core.agents.agent import ACTIVE, STATUSES, Agent, AgentDraft, LastTest, is_end
from guard.core.agents.events import (
    AgentClaimValidated,
    AgentEndDetected,
    AgentEvent,
    AgentFindingRecorded,
    AgentImported,
    AgentKilled,
    AgentPlaced,
    AgentSpawned,
    AgentStatus,
    AgentTested,
    AgentTransitioned,
    AgentUpdated,
)
from guard.core.agents.whereabouts import Whereabouts

_PLACE = tuple(Whereabouts.model_fields)


class AgentCounts(NamedTuple):
    """How many agents are active, have ended by themselves, and were ever spawned."""

    active: int
    completed: int
    spawned: int


NO_AGENTS = AgentCounts(0, 0, 0)
FindAgent = Callable[[str, str], Agent | None]
"""Returns the agent of a task by its id."""


class Roster:
    """The agents while events are folded into them; each is frozen when it is read."""

    def __init__(
        self,
        agents: tuple[Agent, ...] = (),
        by_status: Mapping[AgentStatus, int] | None = None,
        counts: AgentCounts = NO_AGENTS,
    ) -> None:
        self._agents = {(agent.task_id, agent.agent_id): agent for agent in agents}
        self._drafts: set[tuple[str, str]] = set()
        self._active, self._completed, self._spawned = counts
        self._by_status = Counter(by_status)
        self.find: FindAgent | None = None
        """Where the roster was not given all agents: asks for one that it does not have yet."""

    def apply(self, event: AgentEvent) -> bool:
        """Apply the event; return True if it ended the agent, or added one that has ended."""
        match event:
            case AgentUpdated():
                return self._update(event)
            case AgentSpawned() | AgentImported():
                return self._add(event)
            case AgentEndDetected() | AgentKilled():
                return self._end(event)
            case AgentPlaced() | AgentFindingRecorded() | AgentTested() | AgentClaimValidated():
                self._note(event)
                return False
            case _:
                assert_never(event)

    def _add(self, event: AgentSpawned | AgentImported) -> bool:
        name = (event.task_id, event.agent_id)
        before = self._agents.pop(name, None) or self._ask(name)
        if before is not None and before.status in ACTIVE:
            self._by_status[before.status] -= 1
            self._active -= 1
        draft = self._agents[name] = AgentDraft.begin(event)
        self._drafts.add(name)
        self._spawned += 1
        self._by_status[draft.status] += 1
        if draft.status in ACTIVE:
            self._active += 1
            return False
        self._completed += not (isinstance(event, AgentImported) and event.killed)
        return True

    def _update(self, event: AgentUpdated) -> bool:
        agent = self._find_current(event)
        if agent is None:
            return False
        ended = self._move(agent, event.status)
        if ended:
            self._completed += 1
            agent.completed_at = event.at
            agent.detected_by = "self_report"
        if event.run is not None:
            agent.run, agent.iteration = event.run, event.iteration
        if event.progress is not None:
            agent.progress = event.progress
        agent.message = event.message or agent.message
        agent.updated_at = event.at
        agent.updates += 1
        agent.working_updates += event.status in ("running", "working")
        return ended

    def _end(self, event: AgentEndDetected | AgentKilled) -> bool:
        agent = self._find_current(event)
        if agent is None:
            self._explain(event)
            return False
        killed = isinstance(event, AgentKilled)
        self._move(agent, "terminated" if killed else "completed")
        if isinstance(event, AgentKilled):
            agent.terminated_at = event.at
            agent.detected_by, agent.reason = "kill", event.reason
        else:
            self._completed += 1
            agent.completed_at = event.at
            agent.detected_by = event.detected_by
        agent.detail = event.detail
        agent.updated_at = event.at
        return True

    def _explain(self, event: AgentEndDetected | AgentKilled) -> None:
        # The killing guard and the guard that ended with the agent both report the kill: the last reason stays.
        agent = self._agents.get((event.task_id, event.agent_id))
        if isinstance(agent, AgentDraft) and isinstance(event, AgentKilled):
            same = agent.incarnation == event.incarnation
            if same and agent.detected_by == "kill":
                agent.reason, agent.detail = event.reason, event.detail

    def _note(
        self, event: AgentPlaced | AgentFindingRecorded | AgentTested | AgentClaimValidated
    ) -> None:
        """Apply an event that moves no count, also after the end, but never for an earlier incarnation."""
        agent = self._thaw(event.task_id, event.agent_id)
        if agent is None or agent.incarnation != event.incarnation:
            return
        match event:
            case AgentPlaced():
                for name in _PLACE:
                    setattr(agent, name, getattr(event, name))
                agent.placed_at, agent.placed_boot_seconds = event.at, event.boot_seconds
            case AgentFindingRecorded():
                agent.findings += 1
            case AgentTested():
                agent.test_runs += 1
                agent.last_test = LastTest(at=event.at, exit_code=event.exit_code)
            case AgentClaimValidated():
                agent.refused_claims += event.refused
                agent.completion_validation = event.validation
            case _:
                assert_never(event)

    def _find_current(
        self, event: AgentUpdated | AgentEndDetected | AgentKilled
    ) -> AgentDraft | None:
        """Return the agent if it is active and of the event's incarnation; otherwise count the event as late."""
        agent = self._thaw(event.task_id, event.agent_id)
        if agent is None:
            return None
        if agent.status not in ACTIVE or agent.incarnation != event.incarnation:
            agent.late_reports += 1
            return None
        return agent

    def _move(self, agent: AgentDraft, status: AgentStatus) -> bool:
        """Set the status of an active agent; return True if that ends it."""
        ended = is_end(agent.status, status)
        self._by_status[agent.status] -= 1
        self._by_status[status] += 1
        self._active -= ended
        agent.status = status
        return ended

    def _thaw(self, task_id: str, agent_id: str) -> AgentDraft | None:
        name = (task_id, agent_id)
        agent = self._agents.get(name) or self._ask(name)
        if agent is None or isinstance(agent, AgentDraft):
            return agent
        draft = self._agents[name] = AgentDraft.of(agent)
        self._drafts.add(name)
        return draft

    def _ask(self, name: tuple[str, str]) -> Agent | None:
        return self.find(*name) if self.find is not None else None

    def agent(self, task_id: str, agent_id: str) -> Agent | None:
        # The agent stays a draft in the roster, because its next report is likely to come soon.
        name = (task_id, agent_id)
        agent = self._agents.get(name) or self._ask(name)
        return agent.freeze() if isinstance(agent, AgentDraft) else agent

    def forget(self, task_id: str, agent_id: str) -> None:
        self._agents.pop((task_id, agent_id), None)
        self._drafts.discard((task_id, agent_id))

    def agents(self) -> Mapping[tuple[str, str], Agent]:
        """Return all agents, frozen, in the order in which they were spawned."""
        for name in self._drafts:
            self._agents[name] = cast(AgentDraft, self._agents[name]).freeze()
        self._drafts.clear()
        return self._agents

    @property
    def counts(self) -> AgentCounts:
        return AgentCounts(self._active, self._completed, self._spawned)

    def statuses(self) -> dict[AgentStatus, int]:
        return {status: self._by_status[status] for status in STATUSES}


StatusEvent = AgentSpawned | AgentImported | AgentUpdated | AgentEndDetected | AgentKilled
"""Events that can change the status of an agent."""


def transition(
    event: StatusEvent, event_id: str, before: Agent | None, task: AgentCounts, overall: AgentCounts
) -> AgentTransitioned | None:
    """Return the change of status that the event makes, or None; the given counts are those before the event."""
    previous: AgentStatus | None = None
    if not isinstance(event, AgentSpawned | AgentImported):
        if before is None or before.status not in ACTIVE or before.incarnation != event.incarnation:
            return None
        previous = before.status
    status = _status(event)
    if status == previous:
        return None
    active, completed = _count_changes(event, previous, status)
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


def _status(event: StatusEvent) -> AgentStatus:
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


def _count_changes(
    event: StatusEvent, previous: AgentStatus | None, status: AgentStatus
) -> tuple[int, int]:
    """Return by how much the counts of active and of completed agents change."""
    if previous is None:
        killed = isinstance(event, AgentImported) and event.killed
        return (1, 0) if status in ACTIVE else (0, int(not killed))
    if not is_end(previous, status):
        return 0, 0
    return -1, int(not isinstance(event, AgentKilled))
