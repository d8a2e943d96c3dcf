"""The two registries of agents: one per task, and one over all tasks, folded from the same events.

Counts move only when an agent goes from an active status to a terminal one, and in both registries by the same event, so
they cannot disagree. A report that comes after the end, or from an earlier incarnation, is counted as late and changes
nothing else.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Literal, NamedTuple, assert_never, cast

from pydantic import Field

from guard.core.events import (
    AgentEvent,
    AgentSpawned,
    AgentStatus,
    AgentUpdated,
    RegistryEvent,
    RetentionSet,
)
from guard.core.events.agent import Incarnation
from guard.core.fields import Count, Frozen, Id, Instant, Line, Percent, Text
from guard.core.lifecycle import ACTIVE, STATUSES, ends
from guard.core.views import Fold, ViewDocument, ViewKind

KEEP_FINISHED = 100


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


class AgentRegistry(ViewDocument):
    """All agents of a task."""

    schema_: Literal["guard/agent-registry/1"] = Field("guard/agent-registry/1", alias="schema")
    task_id: Id
    active_count: Count
    completed_count: Count
    total_spawned: Count
    by_status: dict[AgentStatus, Count]
    agents: tuple[Agent, ...]


class GlobalRegistry(ViewDocument):
    """Every active agent of all tasks, the newest finished ones, and the counts of all."""

    schema_: Literal["guard/global-registry/1"] = Field("guard/global-registry/1", alias="schema")
    active_agents: Count
    completed_agents: Count
    total_agents_spawned: Count
    by_status: dict[AgentStatus, Count]
    keep_finished: Count
    agents: tuple[Agent, ...]


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


class _Roster:
    """Agents by name with their counts: what both registries have in common."""

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
        """One of them, frozen."""
        self._freeze()
        return cast(Agent | None, self._agents.get((task_id, agent_id)))

    def forget(self, task_id: str, agent_id: str) -> None:
        self._agents.pop((task_id, agent_id), None)
        self._drafts.discard((task_id, agent_id))

    def agents(self) -> Mapping[tuple[str, str], Agent]:
        """All of them, frozen, in the order in which they were spawned."""
        self._freeze()
        return cast(Mapping[tuple[str, str], Agent], self._agents)

    def _freeze(self) -> None:
        for name in self._drafts:
            draft = self._agents[name]
            self._agents[name] = Agent(**{field: getattr(draft, field) for field in _FIELDS})
        self._drafts.clear()

    def totals(self) -> Counts:
        return Counts(self.active, self.completed, self.spawned)

    def statuses(self) -> dict[AgentStatus, int]:
        return {status: self.by_status[status] for status in STATUSES}


class AgentRegistryFold(Fold[AgentRegistry]):
    document_class = AgentRegistry

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._roster = _Roster()

    def agent(self, agent_id: str) -> Agent | None:
        """One agent of the task, without freezing all the others."""
        return self._roster.agent(self.key, agent_id)

    def counts(self) -> Counts:
        return self._roster.totals()

    def restore(self, document: AgentRegistry) -> None:
        self.reached = document.position()
        self._roster.load(document.agents, document.by_status)
        self._roster.active = document.active_count
        self._roster.completed = document.completed_count
        self._roster.spawned = document.total_spawned

    def apply(self, event: AgentEvent) -> None:
        self._roster.apply(event)

    def contents(self) -> dict[str, Any]:
        return {
            "task_id": self.key,
            "active_count": self._roster.active,
            "completed_count": self._roster.completed,
            "total_spawned": self._roster.spawned,
            "by_status": self._roster.statuses(),
            "agents": tuple(self._roster.agents().values()),
        }


class GlobalRegistryFold(Fold[GlobalRegistry]):
    document_class = GlobalRegistry

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._roster = _Roster()
        self._keep = KEEP_FINISHED
        self._finished: dict[tuple[str, str], None] = {}
        """In the order of their ends: the oldest goes first."""

    @property
    def keep_finished(self) -> int:
        return self._keep

    def counts(self) -> Counts:
        return self._roster.totals()

    def restore(self, document: GlobalRegistry) -> None:
        self.reached = document.position()
        self._roster.load(document.agents, document.by_status)
        self._roster.active = document.active_agents
        self._roster.completed = document.completed_agents
        self._roster.spawned = document.total_agents_spawned
        self._keep = document.keep_finished
        ended = [agent for agent in document.agents if agent.status not in ACTIVE]
        self._finished = {(agent.task_id, agent.agent_id): None for agent in ended}

    def apply(self, event: RegistryEvent) -> None:
        match event:
            case AgentUpdated():
                if self._roster.apply(event):
                    self._finished[event.task_id, event.agent_id] = None
            case AgentSpawned():
                self._finished.pop((event.task_id, event.agent_id), None)
                self._roster.apply(event)
            case RetentionSet():
                self._keep = event.keep_finished
            case _:
                assert_never(event)
        while len(self._finished) > self._keep:
            oldest = next(iter(self._finished))
            del self._finished[oldest]
            self._roster.forget(*oldest)

    def contents(self) -> dict[str, Any]:
        agents = self._roster.agents()
        finished = [agents[name] for name in self._finished]
        active = [agent for agent in agents.values() if agent.status in ACTIVE]
        return {
            "active_agents": self._roster.active,
            "completed_agents": self._roster.completed,
            "total_agents_spawned": self._roster.spawned,
            "by_status": self._roster.statuses(),
            "keep_finished": self._keep,
            "agents": (*active, *finished),
        }


AGENT_REGISTRY: ViewKind[AgentRegistry, AgentRegistryFold] = ViewKind(
    document=AgentRegistry,
    fold=AgentRegistryFold,
    events=(AgentSpawned, AgentUpdated),
    key=lambda event: event.task_id,
    folder="",
    file="/AGENT_REGISTRY.json",
    needle=lambda key: b'"task_id":"%s"' % key.encode(),
)
GLOBAL_REGISTRY: ViewKind[GlobalRegistry, GlobalRegistryFold] = ViewKind(
    document=GlobalRegistry,
    fold=GlobalRegistryFold,
    events=(AgentSpawned, AgentUpdated, RetentionSet),
    key=lambda _event: "",
    folder="registry/",
    file="GLOBAL_REGISTRY.json",
    needle=lambda _key: b'"type":"',
)
