"""The registries of agents, changed and read: load, decide, record."""

import os
from collections.abc import Iterator
from datetime import datetime

from guard.core.events import AgentSpawned, AgentStatus, AgentUpdated, RetentionSet
from guard.core.fields import is_id
from guard.core.lifecycle import ACTIVE, STATUSES
from guard.core.registry import AGENT_REGISTRY, GLOBAL_REGISTRY, KEEP_FINISHED, Agent, AgentRegistry
from guard.core.reports import AgentReport, AgentsReport
from guard.errors import Refused, WrongUsage
from guard.store import Change, Store


def new_id() -> str:
    """An id that no other event has."""
    return os.urandom(8).hex()


def checked_id(what: str, text: str) -> str:
    """The text, if it may become part of a path; a refusal that names the rule otherwise."""
    if is_id(text):
        return text
    shown = text if len(text) <= 40 else text[:40] + "…"
    raise WrongUsage(
        f"{shown!r} cannot be {what}",
        "use 1 to 128 letters, digits, hyphens and underscores, the first a letter or a digit; "
        "`registry` is taken",
    )


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
        before = _agent(change.view(AGENT_REGISTRY, task_id), agent_id)
        if before is not None and before.status in ACTIVE:
            raise Refused(
                f"agent {agent_id} of task {task_id} is active already ({before.status})",
                "report its end first: `guard agent update --status completed`",
            )
        event = AgentSpawned(
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
    if status not in STATUSES:
        raise WrongUsage(f"{status!r} is not a status", f"use one of {', '.join(STATUSES)}")
    if progress is not None and not 0 <= progress <= 100:
        raise WrongUsage(f"progress is {progress}", "use a whole number from 0 to 100")
    with store.change() as change:
        before = _agent(change.view(AGENT_REGISTRY, task_id), agent_id)
        if before is None:
            raise Refused(
                f"task {task_id} has no agent {agent_id}",
                f"register it first: `guard agent spawn --task {task_id} --agent {agent_id}`",
            )
        change.append(
            AgentUpdated(
                at=now,
                id=new_id(),
                task_id=task_id,
                agent_id=agent_id,
                incarnation=incarnation or before.incarnation,
                status=status,
                message=message,
                progress=progress,
            )
        )
        return _report(change, before, task_id, agent_id)


def _retention(change: Change, now: datetime, keep: int) -> Iterator[RetentionSet]:
    """The fold depends on the log alone, so a changed knob is itself an event."""
    registry = change.view(GLOBAL_REGISTRY)
    if keep != (registry.keep_finished if registry else KEEP_FINISHED):
        yield RetentionSet(at=now, id=new_id(), keep_finished=keep)


def _agent(registry: AgentRegistry | None, agent_id: str) -> Agent | None:
    agents = registry.agents if registry else ()
    return next((agent for agent in agents if agent.agent_id == agent_id), None)


def _report(change: Change, before: Agent | None, task_id: str, agent_id: str) -> AgentReport:
    registry, overall = change.view(AGENT_REGISTRY, task_id), change.view(GLOBAL_REGISTRY)
    agent = _agent(registry, agent_id)
    assert registry
    assert overall
    assert agent
    spawned = before is None or before.incarnation != agent.incarnation
    late = not spawned and before is not None and agent.late_reports > before.late_reports
    return AgentReport(
        agent=agent,
        previous_status=before.status if before else None,
        recorded_as="spawned" if spawned else "late" if late else "updated",
        active_count=registry.active_count,
        completed_count=registry.completed_count,
        total_spawned=registry.total_spawned,
        active_agents=overall.active_agents,
        total_agents_spawned=overall.total_agents_spawned,
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
