"""The agent of a run in the registries: there from the start of an iteration, with its end by the verdict."""

import os
from contextlib import suppress

from guard import agents
from guard.core.events import AgentStatus
from guard.core.events.run import Status
from guard.core.lifecycle import ACTIVE
from guard.core.registry import AGENT_REGISTRY
from guard.core.reports.check import CheckReport
from guard.core.text import shortened, valid
from guard.core.whereabouts import Whereabouts
from guard.errors import GuardError
from guard.invocation import Invocation
from guard.placing import place
from guard.reported import ground_of

_STATUS: dict[Status, AgentStatus] = {
    "complete": "completed",
    "blocked": "blocked",
    "error": "error",
    "timeout": "failed",
}


def begins(guard: Invocation, task: str, agent_id: str, agent_type: str) -> int:
    """The agent works on the task from now on, again or for the first time; which life of it this is.

    Where it runs is where guard runs: guard is there before the agent and after it, and ends with it.
    """
    store, now = guard.writable_store, guard.clock.now()
    where, _ = place(None, None, os.getpid())
    registry = store.view(AGENT_REGISTRY, task)
    known = registry.agent(agent_id) if registry else None
    if known is not None and known.status in ACTIVE:
        moved = where if known.whereabouts != where else None
        agents.update(store, now, task_id=task, agent_id=agent_id, status="working", place=moved)
        return known.incarnation
    return agents.spawn(
        store,
        now,
        task_id=task,
        agent_id=agent_id,
        agent_type=agent_type,
        keep_finished=guard.config.settings.registry.keep_finished,
        place=where,
        ground=ground_of(guard),
    ).agent.incarnation


def fails(guard: Invocation, task: str, agent_id: str, why: str) -> None:
    """Guard could not go on, and nobody knows what became of the agent's work: that is no longer an active agent."""
    with suppress(GuardError):
        agents.update(
            guard.writable_store,
            guard.clock.now(),
            task_id=task,
            agent_id=agent_id,
            status="error",
            message=shortened(valid(why), 400),
        )


def ends(guard: Invocation, task: str, agent_id: str, report: CheckReport) -> None:
    """What the verdict on the iteration says of the agent; one that waits or was limited goes on, with no guard over it."""
    status = _STATUS.get(report.status, "working")
    agents.update(
        guard.writable_store,
        guard.clock.now(),
        task_id=task,
        agent_id=agent_id,
        status=status,
        message=f"iteration {report.iteration}: {report.status}, {report.reason}",
        place=Whereabouts() if status in ACTIVE else None,
    )
