"""Agents by name with their counts: what both registries have in common.

Counts move only when an agent goes from an active status to a terminal one. A report that comes after the end, or from an
earlier incarnation, is counted as late and changes nothing else.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import NamedTuple, assert_never, cast

from guard.core.events import AgentEvent, AgentSpawned, AgentStatus, AgentUpdated
from guard.core.events.agent import Incarnation
from guard.core.fields import Count, Frozen, Id, Instant, Line, Percent, Text
from guard.core.lifecycle import ACTIVE, STATUSES, ends


class Agent(Frozen):
    """One agent of one task, as it stands."""

    agent_id: Id
    task_id: Id
    incarnation: Incarnation
    agent_type: Line
    status: AgentStatus
    progress: Percent | None
    message: Text
    spawned_at: Instant
    updated_at: Instant
    completed_at: Instant | None
    updates: Count
    late_reports: Count


class Counts(NamedTuple):
    """How many agents are active, have ended of themselves, and were ever spawned."""

    active: int
    completed: int
    spawned: int


@dataclass(slots=True)
class _Draft:
    """An agent while it is being folded; the fields are those of Agent."""

    agent_id: str
    task_id: str
    incarnation: int
    agent_type: str
    status: AgentStatus
    progress: int | None
    message: str
    spawned_at: datetime
    updated_at: datetime
    completed_at: datetime | None
    updates: int
    late_reports: int


_FIELDS = tuple(field.name for field in fields(_Draft))


def _frozen(draft: Agent | _Draft) -> Agent:
    return Agent(**{field: getattr(draft, field) for field in _FIELDS})


class Roster:
    """Agents being folded; frozen one by one, when somebody looks."""

    def __init__(self) -> None:
        self._agents: dict[tuple[str, str], Agent | _Draft] = {}
        self._drafts: set[tuple[str, str]] = set()
        self.active = 0
        self.completed = 0
        self.spawned = 0
        self.by_status: Counter[AgentStatus] = Counter()

    def load(self, agents: tuple[Agent, ...], by_status: dict[AgentStatus, int]) -> None:
        self._agents = {(agent.task_id, agent.agent_id): agent for agent in agents}
        self.by_status = Counter(by_status)

    def apply(self, event: AgentEvent) -> bool:
        """Take in the event; true if it ended the agent."""
        match event:
            case AgentUpdated():
                return self._update(event)
            case AgentSpawned():
                self._spawn(event)
                return False
            case _:
                assert_never(event)

    def _spawn(self, event: AgentSpawned) -> None:
        before = self._agents.pop((event.task_id, event.agent_id), None)
        if before is not None and before.status in ACTIVE:
            self.by_status[before.status] -= 1
            self.active -= 1
        self._agents[event.task_id, event.agent_id] = _Draft(
            agent_id=event.agent_id,
            task_id=event.task_id,
            incarnation=event.incarnation,
            agent_type=event.agent_type,
            status="deployed",
            progress=None,
            message=event.message,
            spawned_at=event.at,
            updated_at=event.at,
            completed_at=None,
            updates=0,
            late_reports=0,
        )
        self._drafts.add((event.task_id, event.agent_id))
        self.spawned += 1
        self.active += 1
        self.by_status["deployed"] += 1

    def _update(self, event: AgentUpdated) -> bool:
        agent = self._thaw(event.task_id, event.agent_id)
        if agent is None:
            return False
        if agent.status not in ACTIVE or agent.incarnation != event.incarnation:
            agent.late_reports += 1
            return False
        ended = ends(agent.status, event.status)
        if agent.status != event.status:
            self.by_status[agent.status] -= 1
            self.by_status[event.status] += 1
            agent.status = event.status
        if ended:
            self.active -= 1
            self.completed += 1
            agent.completed_at = event.at
        if event.progress is not None:
            agent.progress = event.progress
        agent.message = event.message
        agent.updated_at = event.at
        agent.updates += 1
        return ended

    def _thaw(self, task_id: str, agent_id: str) -> _Draft | None:
        agent = self._agents.get((task_id, agent_id))
        if isinstance(agent, Agent):
            agent = _Draft(**{name: getattr(agent, name) for name in _FIELDS})
            self._agents[task_id, agent_id] = agent
            self._drafts.add((task_id, agent_id))
        return agent

    def agent(self, task_id: str, agent_id: str) -> Agent | None:
        """One of them, frozen; it stays a draft here, because the next report of it is likely to come soon."""
        agent = self._agents.get((task_id, agent_id))
        return _frozen(agent) if isinstance(agent, _Draft) else agent

    def forget(self, task_id: str, agent_id: str) -> None:
        self._agents.pop((task_id, agent_id), None)
        self._drafts.discard((task_id, agent_id))

    def agents(self) -> Mapping[tuple[str, str], Agent]:
        """All of them, frozen, in the order in which they were spawned."""
        for name in self._drafts:
            self._agents[name] = _frozen(self._agents[name])
        self._drafts.clear()
        return cast(Mapping[tuple[str, str], Agent], self._agents)

    def totals(self) -> Counts:
        return Counts(self.active, self.completed, self.spawned)

    def statuses(self) -> dict[AgentStatus, int]:
        return {status: self.by_status[status] for status in STATUSES}
