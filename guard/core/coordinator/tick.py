"""Find what is due: agents whose time is up, and free places for new agents."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal

from guard.core.coordinator import agent_events
from guard.core.coordinator.decide import decide
from guard.core.coordinator.decide_agents import (
    remediation_draft,
    time_out_agent,
)
from guard.core.coordinator.decide_support import analyst_draft, fail_support
from guard.core.coordinator.decide_tasks import auditor_draft, developer_draft, is_idle
from guard.core.coordinator.entries import NEEDS_EXPANSION, ActiveAgent, Timed
from guard.core.coordinator.event_base import Dispatched
from guard.core.coordinator.requests import DecisionTerms, Draft, Refusal, Request
from guard.core.coordinator.state import Coordinator, fold_onto
from guard.core.coordinator.task_events import CoordinatorEvent
from guard.core.log.events import BaseEvent

MOST_EXTENSIONS = 2
_STEMS = {
    "developer": "developer",
    "auditor": "auditor",
    "business_analyst": "analyst",
    "remediation": "remediation",
    "health_auditor": "health-auditor",
}


def is_due(agent: ActiveAgent, terms: DecisionTerms) -> bool:
    """Tell whether the agent's time is up; an agent that waits for an answer has no limit."""
    return agent.status == "working" and _is_over(agent, terms)


def _is_over(timed: Timed, terms: DecisionTerms) -> bool:
    # The boot clock decides within the same boot. Otherwise the wall clock does, and one that was set far back also ends the
    # time.
    if timed.timeout_boot_seconds is not None and timed.timeout_boot_id == terms.boot_id:
        return timed.timeout_boot_seconds <= terms.boot_seconds
    given = timed.timeout_at - timed.dispatched_at
    return not timed.dispatched_at - given <= terms.now < timed.timeout_at


def tick(
    state: Coordinator,
    terms: DecisionTerms,
    is_at_work: Callable[[str], bool],
    *,
    fills: bool = True,
) -> tuple[CoordinatorEvent, ...]:
    """Return the events to record now; `is_at_work` is called only for agents whose time is up.

    The first event has the id of the terms, so that a repeated tick is recognised by it.
    """
    events = list(_end_times(state, terms, is_at_work))
    if fills:
        now = fold_onto(state, *events) if events else state
        lost = [event.task_id for event in events if event.type == "agent_timeout"]
        first = [task_id for task_id in lost if task_id is not None]
        events += terms.after(len(events)).events(_fill_places(now, terms, first))
    return tuple(events)


def is_of_a_tick(event: BaseEvent) -> bool:
    """Tell whether this event may be the first of a tick."""
    if isinstance(event, Dispatched):
        return event.to_start
    return isinstance(event, agent_events.AgentTimeout | agent_events.AgentTimeoutExtended) or (
        isinstance(event, agent_events.SupportingAgentFailed) and event.timed_out
    )


def _end_times(
    state: Coordinator, terms: DecisionTerms, is_at_work: Callable[[str], bool]
) -> Iterator[CoordinatorEvent]:
    made = 0
    for agent_id, agent in state.active_agents.items():
        if not is_due(agent, terms):
            continue
        because = _reason_to_wait(agent_id, agent, is_at_work)
        if because is not None:
            more = terms.timeout(terms.limits.agent_timeout_minutes / 2)
            extended = partial(
                agent_events.AgentTimeoutExtended, agent_id=agent_id, because=because, **more
            )
            events = terms.after(made).events([extended])
        else:
            events = _decide(state, time_out_agent(agent_id=agent_id), terms.after(made))
        yield from events
        made += len(events)
        state = fold_onto(state, *events)
    for run_id, run in state.active_supporting_agents.items():
        if _is_over(run, terms):
            failed = fail_support(run_id=run_id, reason="timed out", timed_out=True)
            events = _decide(state, failed, terms.after(made))
            yield from events
            made += len(events)
            state = fold_onto(state, *events)


def _decide(
    state: Coordinator, request: Request, terms: DecisionTerms
) -> tuple[CoordinatorEvent, ...]:
    decision = decide(state, request, terms)
    assert not isinstance(decision, Refusal)
    return decision


def _reason_to_wait(
    agent_id: str, agent: ActiveAgent, is_at_work: Callable[[str], bool]
) -> Literal["checkpoint", "activity"] | None:
    if agent.extensions >= MOST_EXTENSIONS:
        return None
    if agent.checked:
        return "checkpoint"
    return "activity" if is_at_work(agent_id) else None


def _fill_places(state: Coordinator, terms: DecisionTerms, first: list[str]) -> list[Draft]:
    names = _Names(state)
    if state.rollback_in_progress is not None:
        return []
    if state.infrastructure_blocked:
        return _repairs(state, terms, names)
    if state.pending_divine_questions:
        return []
    return [*_actors(state, terms, names, first), *_analysts(state, terms, names)]


class _Names:
    def __init__(self, state: Coordinator) -> None:
        self._taken, self._number = state.active_agents, state.names_given

    def next_name(self, kind: str) -> str:
        self._number += 1
        name = f"{_STEMS[kind]}-{self._number}"
        return name if name not in self._taken else self.next_name(kind)


def _repairs(state: Coordinator, terms: DecisionTerms, names: _Names) -> list[Draft]:
    # An agent repairs, then an auditor looks at the result, until the limit of attempts.
    at_it = {agent.type for agent in state.active_agents.values()}
    spent = state.remediation_attempt_count >= terms.limits.remediation_attempts
    lost = state.infrastructure_setbacks > terms.limits.redispatch_limit
    if at_it & {"remediation", "health_auditor"} or spent or lost:
        return []
    if state.health_audit_due:
        return [auditor_draft(None, names.next_name("health_auditor"), terms, to_start=True)]
    issue = state.infrastructure_issue or "the infrastructure is blocked"
    return [remediation_draft(names.next_name("remediation"), issue, terms, to_start=True)]


def _actors(
    state: Coordinator, terms: DecisionTerms, names: _Names, first: list[str]
) -> Iterator[Draft]:
    # Audits come first, then tasks to do again, then new tasks.
    free = terms.limits.active_developers - state.active_actor_count
    limit = terms.limits.redispatch_limit
    spent = {task_id for task_id, setback in state.setbacks.items() if setback.attempts > limit}
    audited = set(state.active_auditors.values())
    audits = [
        task_id
        for task_id in state.pending_audit
        if task_id not in audited and task_id not in spent
    ]
    idle = [work.task_id for work in state.in_progress_tasks if is_idle(state, work)]
    again = [task_id for task_id in first if task_id in state.available_tasks]
    tasks = [
        task_id
        for task_id in dict.fromkeys([*again, *idle, *state.available_tasks])
        if task_id not in spent
    ]
    for task_id in audits[: max(0, free)]:
        yield auditor_draft(task_id, names.next_name("auditor"), terms, to_start=True)
    for task_id in tasks[: max(0, free - len(audits))]:
        yield developer_draft(task_id, names.next_name("developer"), terms, to_start=True)


def _analysts(state: Coordinator, terms: DecisionTerms, names: _Names) -> Iterator[Draft]:
    # There may be as many analysts at once as developers.
    free = terms.limits.active_developers - len(state.active_business_analysts)
    limit = terms.limits.redispatch_limit
    waiting = [
        task_id
        for task_id, analyst in state.pending_expansions.items()
        if analyst == NEEDS_EXPANSION
        and not (task_id in state.setbacks and state.setbacks[task_id].attempts > limit)
    ]
    for task_id in waiting[: max(0, free)]:
        yield analyst_draft(task_id, names.next_name("business_analyst"), terms, to_start=True)
