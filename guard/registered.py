"""The agent of a run in the registries: there from the start of an iteration, with its end by the verdict."""

import os
from contextlib import suppress

from guard import agents
from guard.core.agents import Agent
from guard.core.events import AgentStatus
from guard.core.events.run import Status
from guard.core.lifecycle import ACTIVE
from guard.core.listing_agents import transition_line
from guard.core.registry import AGENT_REGISTRY
from guard.core.reports.check import CheckReport
from guard.core.text import shortened, valid
from guard.core.whereabouts import Placing, Whereabouts
from guard.errors import GuardError, Refused
from guard.hosts import here
from guard.invocation import Invocation
from guard.liveness import look
from guard.placing import place
from guard.reported import age_of, ground_of

_STATUS: dict[Status, AgentStatus] = {
    "complete": "completed",
    "blocked": "blocked",
    "error": "error",
    "timeout": "failed",
    "interrupted": "error",
}


def begins(guard: Invocation, task: str, agent_id: str, agent_type: str) -> int:
    """The agent works on the task from now on, again or for the first time; which life of it this is.

    Where it runs is where guard runs: guard is there before the agent and after it, and ends with it. Refused while another
    guard may run it; one that goes on, because it waited or was limited, lives on.
    """
    store, now = guard.writable_store, guard.clock.now()
    where, _ = place(None, None, os.getpid())
    placing = Placing(where, guard.clock.boot())
    registry = store.view(AGENT_REGISTRY, task)
    known = registry.agent(agent_id) if registry else None
    if known is not None and known.status in ACTIVE and _goes_on(guard, known):
        report = agents.update(
            store,
            now,
            task_id=task,
            agent_id=agent_id,
            status="working",
            incarnation=known.incarnation,
            place=placing if known.pid_start != where.pid_start else None,
        )
    else:
        report = agents.spawn(
            store,
            now,
            task_id=task,
            agent_id=agent_id,
            agent_type=agent_type,
            keep_finished=guard.config.settings.registry.keep_finished,
            place=placing,
            ground=ground_of(guard),
        )
    guard.output.note(transition_line(report))
    return report.agent.incarnation


def _goes_on(guard: Invocation, known: Agent) -> bool:
    """Whether an active agent is this guard's to go on with; one whose guard has died has ended."""
    if known.pid == os.getpid() or not known.whereabouts.known:
        return True
    seen = look(known.whereabouts, age_seconds=age_of(guard, known), here=here())
    if seen.state != "ended":
        raise Refused(
            f"agent {known.agent_id} of task {known.task_id} is active already ({seen.detail})",
            "give the agent of this run another name with --agent-id, or end the other one: "
            "`guard agent kill`",
        )
    return not agents.end_detected(
        guard.writable_store, guard.clock.now(), known, seen.detail[:512], None
    )


def fails(guard: Invocation, task: str, agent_id: str, life: int, why: str) -> None:
    """Guard could not go on, and nobody knows what became of the agent's work: that is no longer an active agent."""
    with suppress(GuardError):
        _report(guard, task, agent_id, life, "error", shortened(valid(why), 400))


def ends(guard: Invocation, task: str, agent_id: str, life: int, report: CheckReport) -> None:
    """What the verdict on the iteration says of the agent; one that waits or was limited goes on, with no guard over it."""
    message = f"iteration {report.iteration}: {report.status}, {report.reason}"
    _report(guard, task, agent_id, life, _STATUS.get(report.status, "working"), message)


def stopped(guard: Invocation, task: str, agent_id: str, life: int, report: CheckReport) -> None:
    """The agent was ended with its guard, by a person or by `guard agent kill`."""
    known = guard.store.view(AGENT_REGISTRY, task)
    agent = known.agent(agent_id) if known else None
    if agent is None or agent.incarnation != life:
        return
    why = shortened(f"guard was stopped: {report.detail or report.reason}", 400)
    now = guard.clock.now()
    guard.output.note(
        transition_line(agents.killed(guard.writable_store, now, agent, why, "ended by its guard"))
    )


def _report(
    guard: Invocation, task: str, agent_id: str, life: int, status: AgentStatus, message: str
) -> None:
    report = agents.update(
        guard.writable_store,
        guard.clock.now(),
        task_id=task,
        agent_id=agent_id,
        status=status,
        message=message,
        incarnation=life,
        place=Placing(Whereabouts(), guard.clock.boot()) if status in ACTIVE else None,
    )
    guard.output.note(transition_line(report))
