"""Read a registry written by hand, by an older tool or by another guard: leniently, but as a whole or not at all."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from guard.core.agents.agent import ACTIVE, STATUSES
from guard.core.agents.events import AgentStatus
from guard.core.agents.import_fields import KILLED, BadRegistry, Fields, Notes, describe, read_times
from guard.core.base.text import is_id, plural

__all__ = ["BadRegistry", "Imported", "ImportedAgent", "read_registry"]

MOST_AGENTS = 100_000
_MOST_PID = 2**31 - 1
_MOST_COUNT = 2**53
_COUNTS = {
    "active": ("active_count", "active_agents"),
    "completed": ("completed_count", "completed_agents"),
    "spawned": ("total_spawned", "total_agents_spawned"),
}


@dataclass(frozen=True)
class ImportedAgent:
    """An agent of a foreign registry, in guard's terms."""

    task_id: str
    agent_id: str
    agent_type: str
    status: AgentStatus
    progress: int | None
    message: str
    spawned_at: datetime
    updated_at: datetime
    ended_at: datetime | None
    killed: bool
    tmux_session: str | None
    pid: int | None


@dataclass(frozen=True)
class Imported:
    """All agents of a foreign registry, and warnings about what was assumed."""

    agents: tuple[ImportedAgent, ...]
    warnings: tuple[str, ...]


def read_registry(document: Any, *, task_id: str | None, source: str, now: datetime) -> Imported:
    """Return the agents of a document; raises a BadRegistry with every fault.

    `task_id` overrides the task that the document names for all agents, and is the task of agents that name none.
    """
    notes = Notes()
    if not isinstance(document, dict):
        raise BadRegistry((f"a registry is an object, and this is {describe(document)}",))
    whole = Fields("", document, notes)
    task = _Task(task_id, whole.line("task_id"))
    _check_task(task, whole)
    found = [_agent(entry, task, now) for entry in _entries(whole)]
    agents = tuple(agent for agent in found if agent is not None)
    _refuse_twice(agents, notes)
    _compare_counts(agents, whole)
    notes.refuse()
    return Imported(agents, notes.warnings(source))


class _Task(NamedTuple):
    given: str | None
    of_all: str | None
    """The task that the document names."""


def _check_task(task: _Task, whole: Fields) -> None:
    if task.given is not None and not is_id(task.given):
        whole.notes.add_problem(
            "the task that was named", f"{describe(task.given)} cannot be an id"
        )
    if task.given and task.of_all and task.given != task.of_all:
        what = f"the task {describe(task.of_all)} is taken as {describe(task.given)}"
        whole.notes.assume("", what)
    elif task.of_all and not is_id(task.of_all):
        whole.add_problem("task_id", "cannot be an id; name another task for these agents")


def _entries(whole: Fields) -> Iterator[Fields]:
    agents = whole.values.get("agents")
    if not isinstance(agents, list | dict):
        whole.add_problem("agents", "is neither a list of agents nor a map of them")
        return
    if len(agents) > MOST_AGENTS:
        whole.notes.add_problem("agents", f"there are more than {plural(MOST_AGENTS, 'agent')}")
        return
    by_name = isinstance(agents, dict)
    named = agents.items() if isinstance(agents, dict) else enumerate(agents)
    for name, entry in named:
        place = f"agents[{describe(name)}]"
        if not isinstance(entry, dict):
            whole.notes.add_problem(place, f"{describe(entry)} is not an agent")
        elif by_name and entry.get("id") not in (None, name):
            whole.notes.add_problem(place, f"its id is {describe(entry['id'])}")
        else:
            yield Fields(place, {**entry, "id": name} if by_name else entry, whole.notes)


def _agent(entry: Fields, task: _Task, now: datetime) -> ImportedAgent | None:
    task_id, agent_id, status = _task_of(entry, task), _id_of(entry), _status_of(entry)
    progress, pid = entry.whole_number("progress", 0, 100), entry.whole_number("pid", 1, _MOST_PID)
    agent_type = entry.line("agent_type", "type")
    message = entry.text("message", "last_message")
    tmux_session = entry.line("tmux_session")
    times = read_times(entry, status, now) if status else None
    if task_id is None or agent_id is None or status is None or times is None:
        return None
    return ImportedAgent(
        task_id=task_id,
        agent_id=agent_id,
        agent_type=agent_type or "agent",
        status=status,
        progress=progress,
        message=message or "",
        spawned_at=times.begun,
        updated_at=times.updated,
        ended_at=times.ended,
        killed=status == "terminated" and entry.find_name(*KILLED) is not None,
        tmux_session=tmux_session,
        pid=pid,
    )


def _task_of(entry: Fields, task: _Task) -> str | None:
    own = entry.line("task_id")
    if task.of_all is not None:
        if own not in (None, task.of_all, task.given):
            entry.add_problem(
                "task_id", f"is not the task of the registry, {describe(task.of_all)}"
            )
        return task.given or task.of_all
    if own is not None and not is_id(own):
        entry.add_problem("task_id", "cannot be an id")
    elif own is None and task.given is None and entry.find_name("task_id") is None:
        entry.notes.add_problem(entry.place, "names no task, and neither does the registry")
    return own or task.given


def _id_of(entry: Fields) -> str | None:
    found = entry.line("agent_id", "id")
    if found is None:
        if entry.find_name("agent_id", "id") is None:
            entry.notes.add_problem(entry.place, "has no agent_id")
        return None
    if not is_id(found):
        entry.add_problem(entry.find_name("agent_id", "id") or "", "cannot be an id")
    other = entry.values.get("id")
    if other is not None and other != found:
        entry.add_problem("id", f"is not its agent_id, {describe(found)}")
    return found


def _status_of(entry: Fields) -> AgentStatus | None:
    status = entry.values.get("status")
    if isinstance(status, str) and status in STATUSES:
        return status
    entry.add_problem("status", f"is not one of {', '.join(STATUSES)}")
    return None


def _refuse_twice(agents: tuple[ImportedAgent, ...], notes: Notes) -> None:
    names = Counter((agent.task_id, agent.agent_id) for agent in agents)
    for (task_id, agent_id), count in names.items():
        if count > 1:
            notes.add_problem(f"agent {agent_id} of task {task_id}", f"is listed {count} times")


def _compare_counts(agents: tuple[ImportedAgent, ...], whole: Fields) -> None:
    active = sum(agent.status in ACTIVE for agent in agents)
    killed = sum(agent.killed for agent in agents)
    counted = {
        "active": active,
        "completed": len(agents) - active - killed,
        "spawned": len(agents),
    }
    for what, names in _COUNTS.items():
        name = whole.find_name(*names)
        count = whole.whole_number(name, 0, _MOST_COUNT) if name else None
        if count is not None and count != counted[what]:
            whole.notes.assume("", f"{name} is {count}, and its agents make {counted[what]}")
