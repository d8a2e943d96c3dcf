"""Keep the registries of agents as rows, one for each agent, so that a change costs the same however many there are.

The row of a registry among the views has its counts and no agents. The agents that the registry of all tasks shows are the
active ones and those named in `guard.finished`, in the order of their ends.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from guard.core.agents.agent import ACTIVE, Agent
from guard.core.agents.events import AgentImported, AgentSpawned, RetentionSet
from guard.core.agents.registry import (
    AGENT_REGISTRY,
    GLOBAL_REGISTRY,
    AgentRegistry,
    AgentRegistryFold,
    GlobalRegistryFold,
)
from guard.core.log.events import BaseEvent
from guard.core.log.record import LogEntry
from guard.core.log.replay import Replay
from guard.core.log.view import Fold, ViewDocument, ViewKind, seal
from guard.errors import StateProblem
from guard.store.postgres.session import Query, Rows
from guard.store.postgres.view_rows import UnusableRow, in_batches, read_row

Name = tuple[str, str]
"""The task and the id of an agent."""
_GLOBAL = GLOBAL_REGISTRY.path("")
_SUMMARY = "SELECT 0 AS part, 0::bigint AS place, document FROM guard.view WHERE workspace = %s AND path = %s"
_OF_TASK = "SELECT 1, spawned, document FROM guard.agent WHERE workspace = %s AND task = %s"
_ACTIVE = "SELECT 1, spawned, document FROM guard.agent WHERE workspace = %s AND is_active"
_FINISHED = (
    "SELECT 2, f.ended, a.document FROM guard.finished f JOIN guard.agent a"
    " ON a.workspace = f.workspace AND a.task = f.task AND a.agent = f.agent WHERE f.workspace = %s"
)
_NAMED = (
    "SELECT a.task, a.agent, a.document FROM unnest(%s::text[], %s::text[]) AS named (task, agent)"
    " JOIN guard.agent a ON a.workspace = %s AND a.task = named.task AND a.agent = named.agent"
)
_UPSERT = (
    "INSERT INTO guard.agent (workspace, task, agent, spawned, is_active, document)"
    " SELECT %s, * FROM unnest(%s::text[], %s::text[], %s::bigint[], %s::boolean[], %s::bytea[])"
    " ON CONFLICT (workspace, task, agent) DO UPDATE SET is_active = excluded.is_active, document = excluded.document,"
    " spawned = CASE WHEN excluded.spawned > 0 THEN excluded.spawned ELSE guard.agent.spawned END"
)
_FINISH = (
    "INSERT INTO guard.finished (workspace, ended, task, agent)"
    " SELECT %s, * FROM unnest(%s::bigint[], %s::text[], %s::text[])"
)
_UNFINISH = "DELETE FROM guard.finished WHERE workspace = %s AND task = %s AND agent = %s"
_TRIM = (
    "DELETE FROM guard.finished WHERE workspace = %s AND ended <="
    " (SELECT ended FROM guard.finished WHERE workspace = %s ORDER BY ended DESC OFFSET %s LIMIT 1)"
)
_BATCH = 5000


def is_registry(path: str) -> bool:
    return path == _GLOBAL or AGENT_REGISTRY.key_in(path) is not None


def agent_of(event: BaseEvent, paths: Iterable[str]) -> Name | None:
    """Return the agent whose row an event changes that touches the views at these paths."""
    if any(AGENT_REGISTRY.key_in(path) is not None for path in paths):
        return str(getattr(event, "task_id", "")), str(getattr(event, "agent_id", ""))
    return None


def select_registry(workspace: int, path: str, only: str | None = None) -> Query:
    """Ask in one look for a registry and its agents; of a task's, for one agent alone if only that is wanted."""
    values: list[Any] = [workspace, path]
    if path == _GLOBAL:
        return f"{_SUMMARY} UNION ALL {_ACTIVE} UNION ALL {_FINISHED} ORDER BY 1, 2", [
            *values,
            workspace,
            workspace,
        ]
    agents, key = _OF_TASK, AGENT_REGISTRY.key_in(path)
    values += [workspace, key]
    if only is not None:
        agents, values = f"{_OF_TASK} AND agent = %s", [*values, only]
    return f"{_SUMMARY} UNION ALL {agents} ORDER BY 1, 2", values


def select_task_registries(workspace: int) -> Query:
    """Ask in one look for the registries of all tasks: path, part, place and document of each row."""
    file = AGENT_REGISTRY.file
    text = (
        "SELECT path, 0 AS part, 0::bigint AS place, document FROM guard.view"
        " WHERE workspace = %s AND right(path, length(%s)) = %s"
        " UNION ALL SELECT task || %s, 1, spawned, document FROM guard.agent WHERE workspace = %s ORDER BY 1, 2, 3"
    )
    return text, [workspace, file, file, file, workspace]


def select_agents(workspace: int, names: Iterable[Name]) -> Query:
    wanted = list(names)
    return _NAMED, [[task for task, _ in wanted], [agent for _, agent in wanted], workspace]


def join_registry(kind: ViewKind[Any, Any], path: str, rows: Rows) -> Any:
    """Return the document that the rows of a registry make; None without any; UnusableRow if it has to be folded again."""
    if not rows or rows[0][0] != 0:
        return None
    summary = read_row(kind, rows[0][2], path)
    agents = tuple(read_agent(document) for _, _, document in rows[1:])
    return summary.model_copy(update={"agents": agents})


def read_agent(document: bytes) -> Agent:
    try:
        return Agent.model_validate_json(bytes(document))
    except ValidationError as error:
        raise UnusableRow(str(error)) from None


def seal_summary(fold: Fold[Any]) -> bytes:
    """Return the row of a registry among the views: without its agents, which have rows of their own."""
    document: ViewDocument = fold.document()
    return seal(document.model_copy(update={"agents": ()}))


class AgentRows:
    """The agents that a change looks at, and what becomes of their rows."""

    def __init__(self, workspace: int, ask: Callable[[Query], Rows]) -> None:
        self._workspace = workspace
        self._ask = ask
        self._known: dict[Name, Agent | None] = {}
        self._touched: dict[Name, int] = {}
        """The agents to write, with the number of the record that spawned them; 0 if that was before the change."""
        self._ends: list[tuple[Name, int, int]] = []
        """Ended agents not written yet: name, number of the record, and how many finished ones are kept."""
        self._steps: list[Query] = []

    def missing(self, names: Iterable[Name]) -> list[Name]:
        return [name for name in dict.fromkeys(names) if name not in self._known]

    def take(self, names: Iterable[Name], rows: Rows) -> None:
        self._known.update(dict.fromkeys(names))
        for task, agent, document in rows:
            self._known[task, agent] = read_agent(document)

    def find(self, task_id: str, agent_id: str) -> Agent | None:
        """Return the agent as it was before the change."""
        name = (task_id, agent_id)
        if name not in self._known:
            rows = self._ask(select_agents(self._workspace, [name]))
            try:
                self.take([name], rows)
            except UnusableRow as error:
                raise StateProblem(
                    f"the row of agent {agent_id} of task {task_id} cannot be read: {error}",
                    "run `guard rebuild` to make it again from the log",
                ) from None
        return self._known[name]

    def note(
        self,
        entry: LogEntry,
        name: Name,
        before: Agent | None,
        after: Agent | None,
        overall: GlobalRegistryFold,
    ) -> None:
        """Note what an event, folded already, does to the rows."""
        if after is None:
            return
        begins = isinstance(entry.event, AgentSpawned | AgentImported)
        seq = entry.position.seq
        self._touched[name] = seq if begins else self._touched.get(name, 0)
        was_active = before is not None and before.status in ACTIVE
        if begins and before is not None and not was_active:
            self._write_ends()
            self._steps.append((_UNFINISH, [self._workspace, *name]))
        if after.status not in ACTIVE and (begins or was_active):
            if self._ends and self._ends[-1][2] != overall.keep_finished:
                self._write_ends()
            self._ends.append((name, seq, overall.keep_finished))

    def keep(self, event: RetentionSet) -> None:
        self._write_ends()
        self._steps.append(self._trim(event.keep_finished))

    def end(self) -> None:
        """Ask nothing any more: the change has ended."""
        self._ask = _ask_nothing

    def _write_ends(self) -> None:
        if self._ends:
            self._steps.append(
                _finish(self._workspace, [(seq, *name) for name, seq, _ in self._ends])
            )
            self._steps.append(self._trim(self._ends[-1][2]))
            self._ends.clear()

    def _trim(self, keep: int) -> Query:
        return _TRIM, [self._workspace, self._workspace, keep]

    def writes(self, folds: Mapping[str, Fold[Any]]) -> Iterator[Query]:
        """Yield the queries that write all of it, from the folds of the tasks."""
        rows = []
        for (task, agent), spawned in self._touched.items():
            fold = folds[AGENT_REGISTRY.path(task)]
            assert isinstance(fold, AgentRegistryFold)
            found = fold.agent(agent)
            assert found is not None
            rows.append(_agent_row(found, spawned))
        for batch in in_batches(rows, _BATCH):
            yield _upsert(self._workspace, batch)
        self._write_ends()
        yield from self._steps


def _ask_nothing(_query: Query) -> Rows:
    raise AssertionError("the change has ended")


class RegistryReplay(Replay):
    """A replay that can write the rows of the registries: it notes which record spawned each agent."""

    def __init__(self) -> None:
        super().__init__()
        self._spawned: dict[Name, int] = {}

    def feed(self, entry: LogEntry) -> None:
        super().feed(entry)
        event = entry.event
        if isinstance(event, AgentSpawned | AgentImported):
            self._spawned[event.task_id, event.agent_id] = entry.position.seq

    def writes(self, workspace: int) -> Iterator[Query]:
        """Yield the queries that replace all rows of agents."""
        yield "DELETE FROM guard.agent WHERE workspace = %s", [workspace]
        yield "DELETE FROM guard.finished WHERE workspace = %s", [workspace]
        for fold in self.folds.values():
            if isinstance(fold, AgentRegistryFold):
                registry: AgentRegistry = fold.document()
                rows = (
                    _agent_row(agent, self._spawned[agent.task_id, agent.agent_id])
                    for agent in registry.agents
                )
                for batch in in_batches(rows, _BATCH):
                    yield _upsert(workspace, batch)
            elif isinstance(fold, GlobalRegistryFold):
                ends = [(place, *name) for place, name in enumerate(fold.finished(), 1)]
                for part in in_batches(ends, _BATCH):
                    yield _finish(workspace, part)


_AgentRow = tuple[str, str, int, bool, bytes]


def _agent_row(agent: Agent, spawned: int) -> _AgentRow:
    document = agent.__pydantic_serializer__.to_json(agent)
    return agent.task_id, agent.agent_id, spawned, agent.status in ACTIVE, document


def _upsert(workspace: int, rows: Sequence[_AgentRow]) -> Query:
    return _UPSERT, [workspace, *(list(column) for column in zip(*rows, strict=True))]


def _finish(workspace: int, rows: Sequence[tuple[int, str, str]]) -> Query:
    return _FINISH, [workspace, *(list(column) for column in zip(*rows, strict=True))]
