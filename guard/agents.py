"""The registries of agents, changed and read: load, decide, record."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, TypeVar

from pydantic import ValidationError

from guard.core.events import AgentSpawned, AgentStatus, AgentUpdated, RetentionSet
from guard.core.fields import first_problem
from guard.core.lifecycle import ACTIVE
from guard.core.registry import AGENT_REGISTRY, GLOBAL_REGISTRY, KEEP_FINISHED
from guard.core.reports.agents import AgentReport, AgentsReport
from guard.core.roster import Agent
from guard.errors import Refused, WrongUsage
from guard.ids import checked_id, new_id
from guard.store import Change, Store

E = TypeVar("E", AgentSpawned, AgentUpdated)


def spawn(
    store: Store,
    now: datetime,
    *,
    task_id: str,
    agent_id: str,
    agent_type: str = "agent",
    message: str = "",
    keep_finished: int = KEEP_FINISHED,
) -> AgentReport:
    """Register an agent that has been started; refused while one of that name is active."""
    checked_id("a task id", task_id)
    checked_id("an agent id", agent_id)
    with store.change() as change:
        before = _before(change, task_id, agent_id)
        if before is not None and before.status in ACTIVE:
            raise Refused(
                f"agent {agent_id} of task {task_id} is active already ({before.status})",
                f"report its end first: `guard agent update --task {task_id} --agent {agent_id} "
                "--status completed`",
            )
        event = _made(
            AgentSpawned,
            at=now,
            id=new_id(),
            task_id=task_id,
            agent_id=agent_id,
            incarnation=before.incarnation + 1 if before else 1,
            agent_type=agent_type,
            message=message,
        )
        change.append(*_retention(change, now, keep_finished), event)
        return _report(change, before, task_id, agent_id)


def update(
    store: Store,
    now: datetime,
    *,
    task_id: str,
    agent_id: str,
    status: AgentStatus,
    message: str = "",
    progress: int | None = None,
    incarnation: int | None = None,
) -> AgentReport:
    """Record what is reported of an agent; after its end, or for an earlier incarnation, it changes no count."""
    checked_id("a task id", task_id)
    checked_id("an agent id", agent_id)
    with store.change() as change:
        before = _before(change, task_id, agent_id)
        if before is None:
            raise Refused(
                f"task {task_id} has no agent {agent_id}",
                f"register it first: `guard agent spawn --task {task_id} --agent {agent_id}`",
            )
        event = _made(
            AgentUpdated,
            at=now,
            id=new_id(),
            task_id=task_id,
            agent_id=agent_id,
            incarnation=incarnation or before.incarnation,
            status=status,
            message=message,
            progress=progress,
        )
        change.append(event)
        return _report(change, before, task_id, agent_id)


def _before(change: Change, task_id: str, agent_id: str) -> Agent | None:
    """The agent as it stands. Both registries are read before anything is recorded: what cannot be read refuses first."""
    change.fold(GLOBAL_REGISTRY)
    return change.fold(AGENT_REGISTRY, task_id).agent(agent_id)


def _made(event: type[E], **fields: Any) -> E:
    """The event, or a refusal that names the field that cannot be."""
    try:
        return event(**fields)
    except ValidationError as error:
        raise WrongUsage(
            f"this cannot be recorded: {first_problem(error)}",
            "a message has at most 65536 characters, a type 512, and both must be valid text",
        ) from None


def _retention(change: Change, now: datetime, keep: int) -> Iterator[RetentionSet]:
    """The fold depends on the log alone, so a changed knob is itself an event."""
    if keep != change.fold(GLOBAL_REGISTRY).keep_finished:
        yield RetentionSet(at=now, id=new_id(), keep_finished=keep)


def _report(change: Change, before: Agent | None, task_id: str, agent_id: str) -> AgentReport:
    registry, overall = change.fold(AGENT_REGISTRY, task_id), change.fold(GLOBAL_REGISTRY)
    agent, task, all_tasks = registry.agent(agent_id), registry.counts(), overall.counts()
    assert agent
    spawned = before is None or before.incarnation != agent.incarnation
    late = not spawned and before is not None and agent.late_reports > before.late_reports
    return AgentReport(
        agent=agent,
        previous_status=before.status if before else None,
        recorded_as="spawned" if spawned else "late" if late else "updated",
        active_count=task.active,
        completed_count=task.completed,
        total_spawned=task.spawned,
        active_agents=all_tasks.active,
        total_agents_spawned=all_tasks.spawned,
    )


def listed(store: Store, task_id: str | None = None, *, everything: bool = False) -> AgentsReport:
    """The agents of a task, or of all tasks; `everything` includes the finished ones that the global registry dropped."""
    if task_id is not None:
        registry = store.view(AGENT_REGISTRY, checked_id("a task id", task_id))
        return AgentsReport(
            task_id=task_id,
            active=registry.active_count if registry else 0,
            completed=registry.completed_count if registry else 0,
            spawned=registry.total_spawned if registry else 0,
            agents=registry.agents if registry else (),
        )
    overall = store.view(GLOBAL_REGISTRY)
    agents = overall.agents if overall else ()
    if everything:
        registries = [store.view(AGENT_REGISTRY, key) for key in store.keys(AGENT_REGISTRY)]
        agents = tuple(agent for registry in registries if registry for agent in registry.agents)
    return AgentsReport(
        task_id=None,
        active=overall.active_agents if overall else 0,
        completed=overall.completed_agents if overall else 0,
        spawned=overall.total_agents_spawned if overall else 0,
        agents=agents,
    )
