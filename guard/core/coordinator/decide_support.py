"""Decide on vague tasks and their analysts, and on supporting agents and their queues."""

from functools import partial
from typing import Any, Literal, TypedDict

from guard.core.coordinator import agent_events
from guard.core.coordinator.decide_tasks import refuse_active, refuse_beyond_redispatch
from guard.core.coordinator.entries import NEEDS_EXPANSION, Delegation, KnownSupport, SupportRun
from guard.core.coordinator.event_base import Confidence
from guard.core.coordinator.requests import SHOW, DecisionTerms, Draft, NotAllowed, leads_to
from guard.core.coordinator.state import Coordinator
from guard.core.plan.model import RequestType

_MOST_GUIDANCE = 60_000
_LEAST_WORDS = 3
_OPEN = ("available", "blocked", "pending_expansion")
"""A task in one of these places has no agent that works on it."""


@leads_to(
    agent_events.TaskQualityAssessment, needs_expansion=lambda tasks: tuple(dict.fromkeys(tasks))
)
def assess_tasks(
    state: Coordinator, _terms: DecisionTerms, *, needs_expansion: tuple[str, ...] = ()
) -> list[Draft]:
    """Mark tasks as too vague; all other open tasks count as implementable."""
    places = state.places()
    for task_id in needs_expansion:
        if places.get(task_id) not in _OPEN:
            where = places.get(task_id, "not in the plan")
            raise NotAllowed("task_not_open", f"task {state.task_name(task_id)} is {where}", SHOW)
    clear = [*state.available_tasks, *state.blocked_tasks]
    clear += [
        task_id
        for task_id, analyst in state.pending_expansions.items()
        if analyst == NEEDS_EXPANSION
    ]
    assessed = partial(
        agent_events.TaskQualityAssessment,
        implementable=tuple(task_id for task_id in clear if task_id not in needs_expansion),
        needs_expansion=needs_expansion,
    )
    return [assessed]


@leads_to(agent_events.BusinessAnalystDispatched)
def dispatch_analyst(
    state: Coordinator, terms: DecisionTerms, *, task_id: str, agent_id: str, to_start: bool = False
) -> list[Draft]:
    """Give an analyst a task on which no agent works and which no other analyst has."""
    place = state.place(task_id)
    name = state.task_name(task_id)
    if place not in _OPEN:
        where = place.replace("_", " ") if place else "not in the plan"
        raise NotAllowed("task_not_open", f"task {name} is {where}", SHOW)
    analyst = state.pending_expansions.get(task_id, NEEDS_EXPANSION)
    if analyst != NEEDS_EXPANSION:
        raise NotAllowed("in_expansion", f"task {name} is being expanded ({analyst})", SHOW)
    refuse_beyond_redispatch(state, task_id, terms)
    refuse_active(state, agent_id)
    return [analyst_draft(task_id, agent_id, terms, to_start=to_start)]


def analyst_draft(
    task_id: str,
    agent_id: str,
    terms: DecisionTerms,
    *,
    to_start: bool,
    guidance: str | None = None,
) -> Draft:
    return partial(
        agent_events.BusinessAnalystDispatched,
        task_id=task_id,
        agent_id=agent_id,
        to_start=to_start,
        guidance=guidance,
        **terms.timeout(),
    )


def _refuse_other_analyst(state: Coordinator, task_id: str, agent_id: str) -> None:
    if state.active_business_analysts.get(agent_id) != task_id:
        message = f"{agent_id} is not expanding task {state.task_name(task_id)}"
        raise NotAllowed("not_its_analyst", message, SHOW)


@leads_to(agent_events.TaskExpanded)
def expand_task(
    state: Coordinator,
    _terms: DecisionTerms,
    *,
    task_id: str,
    agent_id: str,
    specification: dict[str, Any],
    confidence: Literal["HIGH", "MEDIUM"] = "HIGH",
) -> list[Draft]:
    _refuse_other_analyst(state, task_id, agent_id)
    expanded = partial(
        agent_events.TaskExpanded,
        task_id=task_id,
        agent_id=agent_id,
        confidence=confidence,
        specification=specification,
    )
    return [expanded]


@leads_to(agent_events.ExpansionNeedsClarification)
def ask_clarification(
    state: Coordinator, _terms: DecisionTerms, *, task_id: str, agent_id: str, question: str
) -> list[Draft]:
    """Ask a person what the analyst needs to know; the analyst's work ends."""
    _refuse_other_analyst(state, task_id, agent_id)
    unclear = partial(
        agent_events.ExpansionNeedsClarification,
        task_id=task_id,
        agent_id=agent_id,
        question_id=state.new_name("question"),
        question=question,
    )
    return [unclear]


class _Order(TypedDict):
    """A request to a supporting agent."""

    agent_id: str
    delegating_agent: str
    task_id: str | None
    request_type: RequestType
    request_summary: str


def _order_of(entry: SupportRun | Delegation, agent_id: str) -> _Order:
    return {
        "agent_id": agent_id,
        "delegating_agent": entry.delegating_agent,
        "task_id": entry.task_id,
        "request_type": entry.request_type,
        "request_summary": entry.request_summary,
    }


@leads_to(agent_events.SupportingAgentDelegated, agent_events.DelegationQueued)
def delegate_request(
    state: Coordinator,
    terms: DecisionTerms,
    *,
    agent_id: str,
    delegating_agent: str,
    request_type: RequestType,
    request_summary: str,
    task_id: str | None = None,
) -> list[Draft]:
    """Give a request to a supporting agent of the plan, or queue it while the agent has too many."""
    known = _known_support(state, agent_id)
    if known is None:
        names = ", ".join(agent.agent_id for agent in state.supporting_agents[:10]) or "none"
        raise NotAllowed(
            "unknown_supporting_agent",
            f"the plan has no supporting agent {agent_id}; it has {names}",
            "describe it in the plan",
        )
    if request_type not in known.request_types:
        takes = ", ".join(known.request_types)
        message = f"{agent_id} takes {takes}, not {request_type}"
        raise NotAllowed("wrong_request_type", message, "ask another supporting agent")
    if delegating_agent not in state.active_agents:
        raise NotAllowed("agent_not_active", f"agent {delegating_agent} is not at work", SHOW)
    if task_id is not None and state.task(task_id) is None:
        raise NotAllowed("unknown_task", f"the plan has no task {task_id}", SHOW)
    # Without a task, the request is about the one that the agent is at work on.
    task_id = task_id or state.active_agents[delegating_agent].task_id
    order = _Order(
        agent_id=agent_id,
        delegating_agent=delegating_agent,
        task_id=task_id,
        request_type=request_type,
        request_summary=request_summary,
    )
    return [_place(state, order, terms, ended_run=None)]


def _known_support(state: Coordinator, agent_id: str | None) -> KnownSupport | None:
    return next((agent for agent in state.supporting_agents if agent.agent_id == agent_id), None)


def _place(
    state: Coordinator, order: _Order, terms: DecisionTerms, *, ended_run: str | None
) -> Draft:
    busy = _run_count(state, order["agent_id"], ended_run)
    queue = _queue(state, order["agent_id"])
    if busy < terms.limits.max_concurrent_per_agent and not queue:
        return _start_run(state, order, None, terms)
    return partial(
        agent_events.DelegationQueued,
        **order,
        request_id=state.new_name("request"),
        position=len(queue) + 1,
    )


def _run_count(state: Coordinator, agent_id: str, ended_run: str | None) -> int:
    runs = state.active_supporting_agents
    return sum(run.agent_id == agent_id for name, run in runs.items() if name != ended_run)


def _queue(state: Coordinator, agent_id: str) -> list[Delegation]:
    return [
        delegation
        for delegation in state.pending_delegation_requests
        if delegation.agent_id == agent_id
    ]


def _start_run(
    state: Coordinator, order: _Order, request_id: str | None, terms: DecisionTerms, offset: int = 0
) -> Draft:
    return partial(
        agent_events.SupportingAgentDelegated,
        **order,
        run_id=state.new_name(_stem(order["agent_id"]), offset),
        request_id=request_id,
        **terms.timeout(),
    )


def _stem(agent_id: str) -> str:
    return f"{agent_id[:100]}-run"


def is_run_of(agent_id: str, run_id: str) -> bool:
    """Tell whether the id is the supporting agent's own or that of one of its runs."""
    return agent_id == run_id or run_id.rpartition("-")[0] == _stem(agent_id)


def _run(state: Coordinator, run_id: str) -> SupportRun:
    run = state.active_supporting_agents.get(run_id)
    if run is None:
        raise NotAllowed("unknown_run", f"no supporting agent is at work on {run_id}", SHOW)
    return run


def _start_queued(
    state: Coordinator, run_id: str, run: SupportRun, terms: DecisionTerms, offset: int = 0
) -> list[Draft]:
    # The requests that have waited longest start first.
    busy = _run_count(state, run.agent_id, run_id)
    room = max(0, terms.limits.max_concurrent_per_agent - busy)
    return [
        _start_run(
            state,
            _order_of(delegation, run.agent_id),
            delegation.request_id,
            terms,
            offset + number,
        )
        for number, delegation in enumerate(_queue(state, run.agent_id)[:room])
    ]


@leads_to(agent_events.SupportingAgentComplete)
def complete_support(
    state: Coordinator,
    terms: DecisionTerms,
    *,
    run_id: str,
    confidence: Confidence,
    result: str = "",
) -> list[Draft]:
    run = _run(state, run_id)
    complete = partial(
        agent_events.SupportingAgentComplete,
        run_id=run_id,
        confidence=confidence,
        result=result,
        duration_seconds=max(0.0, (terms.now - run.dispatched_at).total_seconds()),
    )
    return [complete, *_start_queued(state, run_id, run, terms)]


@leads_to(agent_events.SupportingAgentFailed)
def fail_support(
    state: Coordinator, terms: DecisionTerms, *, run_id: str, reason: str, timed_out: bool = False
) -> list[Draft]:
    run = _run(state, run_id)
    failed = partial(
        agent_events.SupportingAgentFailed, run_id=run_id, reason=reason, timed_out=timed_out
    )
    return [failed, *_start_queued(state, run_id, run, terms)]


@leads_to(
    agent_events.SupportingAgentOutOfScope, guidance=lambda guidance: guidance[:_MOST_GUIDANCE]
)
def decline_support(
    state: Coordinator,
    terms: DecisionTerms,
    *,
    run_id: str,
    suggested: str | None = None,
    guidance: str = "",
) -> list[Draft]:
    """End a run as out of scope; the suggested agent gets the request if the plan has it and it takes such requests."""
    run = _run(state, run_id)
    other = _known_support(state, suggested) if suggested != run.agent_id else None
    if other is not None and run.request_type not in other.request_types:
        other = None
    declined = partial(
        agent_events.SupportingAgentOutOfScope,
        run_id=run_id,
        suggested=suggested,
        routed_to=other.agent_id if other else None,
        guidance=guidance,
    )
    drafts: list[Draft] = [declined]
    if other is not None:
        order = _order_of(run, other.agent_id)
        drafts.append(_place(state, order, terms, ended_run=run_id))
    return [*drafts, *_start_queued(state, run_id, run, terms, offset=1)]


def vague_tasks(state: Coordinator) -> tuple[str, ...]:
    """Return the open tasks that are too vague to implement as they are: their title has fewer than three words."""
    open_tasks = {*state.available_tasks, *state.blocked_tasks}
    return tuple(
        task.id
        for task in state.tasks
        if task.id in open_tasks
        and task.id not in state.expanded_tasks
        and len([word for word in task.title.split() if any(map(str.isalnum, word))]) < _LEAST_WORDS
    )


def suggest_support(state: Coordinator, task_id: str) -> tuple[str, ...]:
    """Return the supporting agents that the plan names for a task, then those with a keyword in its title."""
    task = state.task(task_id)
    title = task.title.casefold() if task else ""
    known = state.supporting_agents
    by_task = [agent.agent_id for agent in known if task_id in agent.applicable_tasks]
    by_word = [
        agent.agent_id
        for agent in known
        if any(word and word.casefold() in title for word in agent.keyword_triggers)
    ]
    return tuple(dict.fromkeys([*by_task, *by_word]))
