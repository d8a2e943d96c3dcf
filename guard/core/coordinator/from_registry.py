"""Turn what the registries, and a verdict on an iteration, tell of an agent into a request."""

from collections.abc import Iterator
from datetime import datetime
from functools import partial

from guard.core.agents.agent import ACTIVE, Agent
from guard.core.base.first_use import dataclass
from guard.core.base.text import fit_line, shorten
from guard.core.coordinator import decide_agents, decide_support, decide_tasks
from guard.core.coordinator.entries import ActiveAgent, SupportRun
from guard.core.coordinator.requests import Request
from guard.core.coordinator.state import Coordinator
from guard.core.iteration.facts import Status

INFRASTRUCTURE = "infrastructure"
"""The registries list agents that repair or audit the infrastructure under this task id."""
STOPPED_WITH_GUARD = "ended by its guard"
"""What the registries say of an agent whose guard was stopped: a person may have stopped it, and goes on later."""
_MOST_TEXT = 60_000


@dataclass(frozen=True)
class PlannedAgent:
    """An agent that the plan has at work, and where the registries have it."""

    name: str
    registered_in: str
    entry: ActiveAgent | SupportRun

    @property
    def kind(self) -> str:
        return self.entry.type if isinstance(self.entry, ActiveAgent) else "supporting_agent"

    @property
    def waits_for_answer(self) -> bool:
        return isinstance(self.entry, ActiveAgent) and self.entry.status != "working"


def planned_agents(state: Coordinator) -> Iterator[PlannedAgent]:
    for name, agent in state.active_agents.items():
        task_id = agent.registered_in or agent.task_id or INFRASTRUCTURE
        yield PlannedAgent(name, task_id, agent)
    for name, run in state.active_supporting_agents.items():
        yield PlannedAgent(name, run.task_id or INFRASTRUCTURE, run)


def find_planned(state: Coordinator, task_id: str, agent_id: str) -> PlannedAgent | None:
    """Return the plan's agent that is registered under this name in this task."""
    found = (planned for planned in planned_agents(state) if planned.name == agent_id)
    return next((planned for planned in found if planned.registered_in == task_id), None)


@dataclass(frozen=True)
class IterationEnd:
    """What guard found at the end of an agent's iteration."""

    status: Status
    reason: str
    detail: str
    commits: int
    retry_at: datetime | None
    goes_on: bool
    """Whether the guard that ran the iteration runs another one."""


def request_from_end(planned: PlannedAgent, end: IterationEnd, known: Agent) -> Request | None:
    """Return what the end of an iteration means for the task, as `known` has the agent after it; None for no change."""
    is_over = known.status not in ACTIVE
    pause = partial(
        decide_agents.pause_agent,
        agent_id=planned.name,
        has_ended=is_over,
        incarnation=known.incarnation,
    )
    if planned.waits_for_answer:
        return pause(because="question")
    why = fit_line(f"{end.reason}: {end.detail}")
    if end.status == "complete" and (end.commits or planned.kind != "developer"):
        return _complete(planned, known.message)
    if end.status == "blocked":
        return _ask(planned, end.detail or end.reason)
    if not end.goes_on and end.status == "timeout":
        return _time_out(planned, why)
    if not end.goes_on and end.status == "error":
        return _crash(planned, why)
    because = end.status if end.status != "complete" else end.reason
    return pause(because=because, retry_at=end.retry_at if end.status == "limited" else None)


def request_from_registry(planned: PlannedAgent, known: Agent) -> Request | None:
    """Return what the registries tell of an agent that the plan does not know yet; None for nothing.

    What an earlier life of the agent did is not told again, nor what the plan has taken in.
    """
    before = planned.entry.incarnation
    if before is None and known.status not in ACTIVE and _end_of(known) < _begin_of(planned):
        return None
    if before is not None and known.incarnation < before:
        return None
    is_newer = before is not None and known.incarnation > before
    if known.status in ACTIVE:
        return _request_from_active(planned, known, is_newer=is_newer)
    if planned.entry.has_ended and not is_newer and known.detected_by != "kill":
        return None
    return _request_from_end_of_life(planned, known)


def _begin_of(planned: PlannedAgent) -> datetime:
    return planned.entry.dispatched_at


def _end_of(known: Agent) -> datetime:
    return known.completed_at or known.terminated_at or known.updated_at


def _request_from_active(planned: PlannedAgent, known: Agent, *, is_newer: bool) -> Request | None:
    if known.status == "blocked":
        return None if planned.waits_for_answer else _ask(planned, known.message)
    is_seen = known.whereabouts.is_known or known.updates > 0
    if is_newer or (is_seen and planned.entry.started_at is None):
        return decide_agents.start_agent(agent_id=planned.name, incarnation=known.incarnation)
    return None


def _request_from_end_of_life(planned: PlannedAgent, known: Agent) -> Request | None:
    match known.detected_by:
        case "kill" if known.detail == STOPPED_WITH_GUARD:
            if planned.entry.has_ended:
                return None
            return decide_agents.pause_agent(
                agent_id=planned.name,
                because="interrupted",
                has_ended=True,
                incarnation=known.incarnation,
            )
        case "kill":
            return _crash(planned, f"killed: {known.reason or known.detail}")
        case "session_gone":
            return _crash(planned, known.detail or "its process is gone")
        case "self_report" if known.status == "completed":
            return None if planned.waits_for_answer else _complete(planned, known.message)
        case "self_report":
            return _crash(planned, f"{known.status}: {known.message}")
        case _:
            return None


def _complete(planned: PlannedAgent, message: str) -> Request:
    task_id = planned.entry.task_id
    match planned.kind:
        case "developer" if task_id is not None:
            return decide_tasks.submit_for_audit(task_id=task_id, agent_id=planned.name)
        case "supporting_agent":
            return decide_support.complete_support(
                run_id=planned.name, confidence="MEDIUM", result=shorten(message, _MOST_TEXT)
            )
        case "remediation":
            return decide_agents.complete_agent(agent_id=planned.name)
        case "business_analyst":
            return _crash(planned, "it ended without a specification")
        case _:
            return _crash(planned, "it ended without a verdict")


def _ask(planned: PlannedAgent, question: str) -> Request:
    text = shorten(question, _MOST_TEXT)
    if not text.strip():
        text = f"agent {planned.name} is blocked and does not say what it needs"
    if planned.kind == "supporting_agent":
        return _crash(planned, f"blocked: {text}")
    return decide_agents.ask_question(agent_id=planned.name, question=text)


def _crash(planned: PlannedAgent, why: str) -> Request:
    reason = fit_line(" ".join(why.split()))
    if planned.kind == "supporting_agent":
        return decide_support.fail_support(run_id=planned.name, reason=reason)
    return decide_agents.crash_agent(agent_id=planned.name, reason=reason)


def _time_out(planned: PlannedAgent, why: str) -> Request:
    if planned.kind == "supporting_agent":
        return decide_support.fail_support(run_id=planned.name, reason=why, timed_out=True)
    return decide_agents.time_out_agent(agent_id=planned.name, reason=why, has_ended=True)
