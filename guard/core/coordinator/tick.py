"""Find what is due: agents whose time is up, and free places for new agents."""

from collections.abc import Callable, Iterator
from functools import partial

from guard.core.coordinator import agent_events
from guard.core.coordinator.decide import decide
from guard.core.coordinator.decide_agents import (
    remediation_draft,
    time_out_agent,
)
from guard.core.coordinator.decide_support import analyst_draft, fail_support
from guard.core.coordinator.decide_tasks import (
    auditor_draft,
    developer_draft,
    holding_question,
    is_idle,
    kept_apart_by,
)
from guard.core.coordinator.entries import NEEDS_EXPANSION, ActiveAgent, SupportRun, Timed
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


def due_agents(state: Coordinator, terms: DecisionTerms) -> dict[str, ActiveAgent | SupportRun]:
    """Return the agents, and the runs of supporting agents, whose time is up.

    An agent that waits for an answer, or that the caller was not yet handed to start, has no limit.
    """
    undelivered = {parcel.agent_id for parcel in state.outbox if parcel.kind == "start"}
    timed: dict[str, ActiveAgent | SupportRun] = {
        name: agent for name, agent in state.active_agents.items() if agent.status == "working"
    }
    timed |= state.active_supporting_agents
    return {
        name: one for name, one in timed.items() if name not in undelivered and _is_over(one, terms)
    }


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
    audits_only: bool = False,
    audits_go_on: bool = False,
    landed_only: bool = False,
    withheld: frozenset[str] = frozenset(),
) -> tuple[CoordinatorEvent, ...]:
    """Return the events to record now; `is_at_work` is called only for agents whose time is up.

    With `landed_only` no developer is sent to a task that depends on work that has not landed, with `audits_only` none at all.
    Neither a developer nor an auditor is sent to tasks that are `withheld`. An open question holds back audits, too, unless
    these `audits_go_on`.
    The first event has the id of the terms, so that a repeated tick is recognised by it.
    """
    events = list(_end_times(state, terms, is_at_work))
    if fills:
        now = fold_onto(state, *events) if events else state
        lost = [event.task_id for event in events if event.type == "agent_timeout"]
        first = [task_id for task_id in lost if task_id is not None]
        events += terms.after(len(events)).events(
            _fill_places(now, terms, first, landed_only, audits_only, audits_go_on, withheld)
        )
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
    for name, timed in due_agents(state, terms).items():
        more = _more_time(name, timed, terms, is_at_work)
        if more is not None:
            events = terms.after(made).events([more])
        elif isinstance(timed, SupportRun):
            failed = fail_support(run_id=name, reason="timed out", timed_out=True)
            events = _decide(state, failed, terms.after(made))
        else:
            events = _decide(state, time_out_agent(agent_id=name), terms.after(made))
        yield from events
        made += len(events)
        state = fold_onto(state, *events)


def _decide(
    state: Coordinator, request: Request, terms: DecisionTerms
) -> tuple[CoordinatorEvent, ...]:
    decision = decide(state, request, terms)
    assert not isinstance(decision, Refusal)
    return decision


def _more_time(
    name: str,
    timed: ActiveAgent | SupportRun,
    terms: DecisionTerms,
    is_at_work: Callable[[str], bool],
) -> Draft | None:
    # Work renews the time of an agent. Its word that it came further is worth half of it, and not for ever.
    more = partial(agent_events.AgentTimeoutExtended, agent_id=name)
    if is_at_work(name):
        return partial(more, because="activity", **terms.timeout())
    if isinstance(timed, SupportRun) or not timed.checked or timed.extensions >= MOST_EXTENSIONS:
        return None
    half = terms.timeout(terms.limits.agent_timeout_minutes / 2)
    return partial(more, because="checkpoint", **half)


def _fill_places(
    state: Coordinator,
    terms: DecisionTerms,
    first: list[str],
    landed_only: bool,
    audits_only: bool,
    audits_go_on: bool,
    withheld: frozenset[str],
) -> list[Draft]:
    names = _Names(state)
    if state.rollback_in_progress is not None:
        return []
    if state.infrastructure_blocked:
        return _repairs(state, terms, names)
    is_asked = holding_question(state, terms.limits.hold_on_question, None) is not None
    if is_asked and not audits_go_on:
        return []
    if is_asked or audits_only:
        return list(_auditors(state, terms, names, withheld))
    held = withheld | (tasks_before_landing(state) if landed_only else frozenset())
    return [*_actors(state, terms, names, first, held, withheld), *_analysts(state, terms, names)]


def tasks_before_landing(state: Coordinator) -> frozenset[str]:
    """Return the tasks that depend on work that passed its audit and has not landed."""
    waiting = set(not_landed(state))
    return frozenset(task.id for task in state.tasks if waiting.intersection(task.depends))


def not_landed(state: Coordinator) -> tuple[str, ...]:
    """Return the completed tasks whose commits have not landed, in the order in which they passed."""
    done = (task_id for task_id in state.completed_tasks if task_id in state.task_commits)
    return tuple(task_id for task_id in done if task_id not in state.landed_tasks)


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
    state: Coordinator,
    terms: DecisionTerms,
    names: _Names,
    first: list[str],
    held: frozenset[str],
    withheld: frozenset[str],
) -> Iterator[Draft]:
    # Audits come first, then tasks to do again, then new tasks.
    audits = list(_auditors(state, terms, names, withheld))
    yield from audits
    free = terms.limits.active_developers - state.active_actor_count - len(audits)
    spent = _waiting_for_a_person(state, terms)
    idle = [work.task_id for work in state.in_progress_tasks if is_idle(state, work)]
    again = [task_id for task_id in first if task_id in state.available_tasks]
    tasks = [
        task_id
        for task_id in dict.fromkeys([*again, *idle, *state.available_tasks])
        if task_id not in spent and task_id not in held
    ]
    begun: list[str] = []
    for task_id in tasks:
        if len(begun) >= free:
            return
        if kept_apart_by(state, task_id, begun) is not None:
            continue
        begun.append(task_id)
        yield developer_draft(task_id, names.next_name("developer"), terms, to_start=True)


def _auditors(
    state: Coordinator, terms: DecisionTerms, names: _Names, withheld: frozenset[str]
) -> Iterator[Draft]:
    free = terms.limits.active_developers - state.active_actor_count
    spent = _waiting_for_a_person(state, terms)
    audited = set(state.active_auditors.values())
    audits = [
        task_id
        for task_id in state.pending_audit
        if task_id not in audited and task_id not in spent and task_id not in withheld
    ]
    for task_id in audits[: max(0, free)]:
        yield auditor_draft(task_id, names.next_name("auditor"), terms, to_start=True)


def _waiting_for_a_person(state: Coordinator, terms: DecisionTerms) -> set[str | None]:
    # Tasks whose agents were lost too often, and tasks with an open question.
    limit = terms.limits.redispatch_limit
    lost = {task_id for task_id, setback in state.setbacks.items() if setback.attempts > limit}
    return {*lost, *(question.task_id for question in state.pending_divine_questions)}


def _analysts(state: Coordinator, terms: DecisionTerms, names: _Names) -> Iterator[Draft]:
    # There may be as many analysts at once as developers.
    free = terms.limits.active_developers - len(state.active_business_analysts)
    spent = _waiting_for_a_person(state, terms)
    waiting = [
        task_id
        for task_id, analyst in state.pending_expansions.items()
        if analyst == NEEDS_EXPANSION and task_id not in spent
    ]
    for task_id in waiting[: max(0, free)]:
        yield analyst_draft(task_id, names.next_name("business_analyst"), terms, to_start=True)
