"""The two registries of agents: one per task, and one for all tasks.

Both are folded from the same events by the same rules, so they cannot disagree.
"""

from typing import Any, Literal, TypeVar, get_args

from pydantic import Field

from guard.core.agents.agent import ACTIVE, Agent
from guard.core.agents.events import (
    AgentEvent,
    AgentImported,
    AgentSpawned,
    AgentStatus,
    RegistryEvent,
    RetentionSet,
)
from guard.core.agents.roster import AgentCounts, FindAgent, Roster
from guard.core.base.fields import Count, Id
from guard.core.log.view import Fold, ViewDocument, ViewKind

KEEP_FINISHED = 100


class AgentRegistry(ViewDocument):
    """All agents of a task."""

    schema_: Literal["guard/agent-registry/1"] = Field("guard/agent-registry/1", alias="schema")
    task_id: Id
    active_count: Count
    completed_count: Count
    total_spawned: Count
    by_status: dict[AgentStatus, Count]
    agents: tuple[Agent, ...]

    def key(self) -> str:
        return self.task_id

    def agent(self, agent_id: str) -> Agent | None:
        return next((agent for agent in self.agents if agent.agent_id == agent_id), None)

    def counts(self) -> AgentCounts:
        return AgentCounts(self.active_count, self.completed_count, self.total_spawned)


class GlobalRegistry(ViewDocument):
    """Every active agent of all tasks, the newest finished ones, and the counts of all."""

    schema_: Literal["guard/global-registry/1"] = Field("guard/global-registry/1", alias="schema")
    active_agents: Count
    completed_agents: Count
    total_agents_spawned: Count
    by_status: dict[AgentStatus, Count]
    keep_finished: Count
    agents: tuple[Agent, ...]

    def counts(self) -> AgentCounts:
        return AgentCounts(self.active_agents, self.completed_agents, self.total_agents_spawned)


R = TypeVar("R", AgentRegistry, GlobalRegistry)


class _RosterFold(Fold[R]):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._roster = Roster()

    def counts(self) -> AgentCounts:
        return self._roster.counts

    def restore(self, document: R) -> None:
        self.reached = document.position()
        self._roster = Roster(document.agents, document.by_status, document.counts())

    def restore_part(self, document: R, find: FindAgent) -> None:
        """Go on from a document that not all agents are in: the others are found when they are needed."""
        self.restore(document)
        self._roster.find = find


class AgentRegistryFold(_RosterFold[AgentRegistry]):
    document_class = AgentRegistry

    def agent(self, agent_id: str) -> Agent | None:
        """Return one agent of the task, without freezing all the others."""
        return self._roster.agent(self.key, agent_id)

    def apply(self, event: AgentEvent) -> None:
        self._roster.apply(event)

    def contents(self) -> dict[str, Any]:
        counts = self.counts()
        return {
            "task_id": self.key,
            "active_count": counts.active,
            "completed_count": counts.completed,
            "total_spawned": counts.spawned,
            "by_status": self._roster.statuses(),
            "agents": tuple(self._roster.agents().values()),
        }


class GlobalRegistryFold(_RosterFold[GlobalRegistry]):
    document_class = GlobalRegistry

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.keep_finished = KEEP_FINISHED
        self._finished: dict[tuple[str, str], None] = {}
        """In the order of their ends: the oldest is dropped first."""

    def restore(self, document: GlobalRegistry) -> None:
        super().restore(document)
        self.keep_finished = document.keep_finished
        ended = [agent for agent in document.agents if agent.status not in ACTIVE]
        self._finished = {(agent.task_id, agent.agent_id): None for agent in ended}

    def apply(self, event: RegistryEvent) -> None:
        if isinstance(event, RetentionSet):
            self.keep_finished = event.keep_finished
        else:
            name = (event.task_id, event.agent_id)
            if isinstance(event, AgentSpawned | AgentImported):
                self._finished.pop(name, None)
            if self._roster.apply(event):
                self._finished[name] = None
        while len(self._finished) > self.keep_finished:
            oldest = next(iter(self._finished))
            del self._finished[oldest]
            self._roster.forget(*oldest)

    def finished(self) -> list[tuple[str, str]]:
        """Return the task and the id of each finished agent that is kept, in the order of their ends."""
        return list(self._finished)

    def contents(self) -> dict[str, Any]:
        agents, counts = self._roster.agents(), self.counts()
        finished = [agents[name] for name in self._finished]
        active = [agent for agent in agents.values() if agent.status in ACTIVE]
        return {
            "active_agents": counts.active,
            "completed_agents": counts.completed,
            "total_agents_spawned": counts.spawned,
            "by_status": self._roster.statuses(),
            "keep_finished": self.keep_finished,
            "agents": (*active, *finished),
        }


_AGENT_EVENTS = get_args(AgentEvent)
AGENT_REGISTRY: ViewKind[AgentRegistry, AgentRegistryFold] = ViewKind(
    document=AgentRegistry,
    fold=AgentRegistryFold,
    events=_AGENT_EVENTS,
    key=lambda event: event.task_id,
    folder="",
    file="/AGENT_REGISTRY.json",
    needles=lambda key: (b'"task_id":"%s"' % key.encode(),),
    goes_by_log=True,
)
GLOBAL_REGISTRY: ViewKind[GlobalRegistry, GlobalRegistryFold] = ViewKind(
    document=GlobalRegistry,
    fold=GlobalRegistryFold,
    events=(*_AGENT_EVENTS, RetentionSet),
    key=lambda _event: "",
    folder="registry/",
    file="GLOBAL_REGISTRY.json",
    needles=lambda _key: (b'"type":"agent_', b'"type":"retention_set"'),
    is_summary=True,
    goes_by_log=True,
)
