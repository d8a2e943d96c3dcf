"""The agent of a run in the registries: there from the start of an iteration, with its end by the verdict."""

from contextlib import suppress

from guard import agents
from guard.core.events import AgentStatus
from guard.core.events.run import Status
from guard.core.lifecycle import ACTIVE
from guard.core.registry import AGENT_REGISTRY
from guard.core.reports.check import CheckReport
from guard.core.text import shortened, valid
from guard.errors import GuardError
from guard.invocation import Invocation

_STATUS: dict[Status, AgentStatus] = {
    "complete": "completed",
    "blocked": "blocked",
    "error": "error",
    "timeout": "failed",
}


def begins(guard: Invocation, task: str, agent_id: str, agent_type: str) -> None:
    """The agent works on the task from now on, again or for the first time."""
    store, now = guard.writable_store, guard.clock.now()
    registry = store.view(AGENT_REGISTRY, task)
    known = (
        next((one for one in registry.agents if one.agent_id == agent_id), None)
        if registry
        else None
    )
    if known is not None and known.status in ACTIVE:
        agents.update(store, now, task_id=task, agent_id=agent_id, status="working")
        return
    agents.spawn(
        store,
        now,
        task_id=task,
        agent_id=agent_id,
        agent_type=agent_type,
        keep_finished=guard.config.settings.registry.keep_finished,
    )


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
    """What the verdict on the iteration says of the agent; one that waits or was limited goes on."""
    agents.update(
        guard.writable_store,
        guard.clock.now(),
        task_id=task,
        agent_id=agent_id,
        status=_STATUS.get(report.status, "working"),
        message=f"iteration {report.iteration}: {report.status}, {report.reason}",
    )
