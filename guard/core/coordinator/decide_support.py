"""Decisions on the quality of tasks, on analysts, and on supporting agents with their queue."""

from typing import Any

from guard.core.coordinator.decide_tasks import refuse_active, refuse_beyond_redispatch
from guard.core.coordinator.entries import NEEDS_EXPANSION, KnownSupport, SupportRun
from guard.core.coordinator.requests import (
    Assess,
    Clarify,
    Delegate,
    DispatchAnalyst,
    Expand,
    OutOfScope,
    SupportDone,
    SupportFailed,
)
from guard.core.coordinator.state import Coordinator
from guard.core.coordinator.terms import SHOW, DecisionTerms, Draft, NotAllowed, called, named
from guard.core.events.plan_agents import (
    BusinessAnalystDispatched,
    DelegationQueued,
    ExpansionNeedsClarification,
    SupportingAgentComplete,
    SupportingAgentDelegated,
    SupportingAgentFailed,
    SupportingAgentOutOfScope,
    TaskExpanded,
    TaskQualityAssessment,
)

_REQUEST = ("agent_id", "delegating_agent", "task_id", "request_type", "request_summary")
_MOST_GUIDANCE = 60_000
_OPEN = ("available", "blocked", "pending_expansion")
"""Where a task stands that nobody works on."""


def assess(state: Coordinator, asked: Assess, _terms: DecisionTerms) -> list[Draft]:
    """What is not named can be implemented as it is."""
    places = state.places()
    for task_id in asked.needs_expansion:
        if places.get(task_id) not in _OPEN:
            where = places.get(task_id, "not in the plan")
            raise NotAllowed("task_not_open", f"task {called(state, task_id)} is {where}", SHOW)
    vague = set(asked.needs_expansion)
    clear = [*state.available_tasks, *state.blocked_tasks]
    clear += [one for one, whose in state.pending_expansions.items() if whose == NEEDS_EXPANSION]
    fields = {
        "implementable": tuple(one for one in clear if one not in vague),
        "needs_expansion": tuple(dict.fromkeys(asked.needs_expansion)),
    }
    return [(TaskQualityAssessment, fields)]


def dispatch_analyst(
    state: Coordinator, asked: DispatchAnalyst, terms: DecisionTerms
) -> list[Draft]:
    """An analyst takes a task that nobody works on, and no other analyst has."""
    place = state.place(asked.task_id)
    if place not in _OPEN:
        where = place.replace("_", " ") if place else "not in the plan"
        raise NotAllowed("task_not_open", f"task {called(state, asked.task_id)} is {where}", SHOW)
    whose = state.pending_expansions.get(asked.task_id, NEEDS_EXPANSION)
    if whose != NEEDS_EXPANSION:
        told = f"task {called(state, asked.task_id)} is being expanded ({whose})"
        raise NotAllowed("in_expansion", told, SHOW)
    refuse_beyond_redispatch(state, asked.task_id, terms)
    refuse_active(state, asked.agent_id)
    return [analyst(asked.task_id, asked.agent_id, terms, to_start=asked.to_start)]


def analyst(task_id: str, agent_id: str, terms: DecisionTerms, *, to_start: bool) -> Draft:
    """The event by which an expansion is an analyst's."""
    fields = {"task_id": task_id, "agent_id": agent_id, "to_start": to_start}
    return BusinessAnalystDispatched, {**fields, "timeout_at": terms.until, "guidance": None}


def _refuse_others_expansion(state: Coordinator, task_id: str, agent_id: str) -> None:
    if state.active_business_analysts.get(agent_id) != task_id:
        told = f"{agent_id} is not expanding task {called(state, task_id)}"
        raise NotAllowed("not_its_analyst", told, SHOW)


def expand(state: Coordinator, asked: Expand, _terms: DecisionTerms) -> list[Draft]:
    """The task can be implemented now."""
    _refuse_others_expansion(state, asked.task_id, asked.agent_id)
    names = ("task_id", "agent_id", "confidence", "specification")
    return [(TaskExpanded, {name: getattr(asked, name) for name in names})]


def clarify(state: Coordinator, asked: Clarify, _terms: DecisionTerms) -> list[Draft]:
    """The analyst leaves; a person is asked."""
    _refuse_others_expansion(state, asked.task_id, asked.agent_id)
    fields = {name: getattr(asked, name) for name in ("task_id", "agent_id", "question")}
    return [(ExpansionNeedsClarification, {**fields, "question_id": named(state, "question")})]


def delegate(state: Coordinator, asked: Delegate, terms: DecisionTerms) -> list[Draft]:
    """The request is taken up, or queued while the supporting agent has enough to do."""
    known = _known(state, asked.agent_id)
    if known is None:
        names = ", ".join(one.agent_id for one in state.supporting_agents[:10]) or "none"
        raise NotAllowed(
            "unknown_supporting_agent",
            f"the plan has no supporting agent {asked.agent_id}; it has {names}",
            "describe it in the plan",
        )
    if asked.request_type not in known.request_types:
        takes = ", ".join(known.request_types)
        told = f"{asked.agent_id} takes {takes}, not {asked.request_type}"
        raise NotAllowed("wrong_request_type", told, "ask another supporting agent")
    if asked.delegating_agent not in state.active_agents:
        told = f"agent {asked.delegating_agent} is not at work"
        raise NotAllowed("agent_not_active", told, SHOW)
    if asked.task_id is not None and state.task(asked.task_id) is None:
        raise NotAllowed("unknown_task", f"the plan has no task {asked.task_id}", SHOW)
    request = {name: getattr(asked, name) for name in _REQUEST}
    return [_placed(state, request, terms, leaving=None)]


def _known(state: Coordinator, agent_id: str | None) -> KnownSupport | None:
    return next((one for one in state.supporting_agents if one.agent_id == agent_id), None)


def _placed(
    state: Coordinator,
    request: dict[str, Any],
    terms: DecisionTerms,
    *,
    leaving: str | None,
    offset: int = 0,
) -> Draft:
    """The request with the agent at once, or at the end of its queue."""
    agent_id = request["agent_id"]
    runs = state.active_supporting_agents
    busy = sum(run.agent_id == agent_id for name, run in runs.items() if name != leaving)
    queue = [one for one in state.pending_delegation_requests if one.agent_id == agent_id]
    if busy < terms.limits.max_concurrent_per_agent and not queue:
        return _taken_up(state, request, None, terms, offset)
    name = named(state, "request", offset)
    return DelegationQueued, {**request, "request_id": name, "position": len(queue) + 1}


def _taken_up(
    state: Coordinator,
    request: dict[str, Any],
    request_id: str | None,
    terms: DecisionTerms,
    offset: int,
) -> Draft:
    run_id = named(state, _stem(request["agent_id"]), offset)
    fields = {**request, "run_id": run_id, "request_id": request_id}
    return SupportingAgentDelegated, {**fields, "timeout_at": terms.until}


def _stem(agent_id: str) -> str:
    return f"{agent_id[:100]}-run"


def is_run_of(agent_id: str, run_id: str) -> bool:
    """Whether the name is that of a run of the supporting agent, or is meant itself."""
    return agent_id == run_id or run_id.rpartition("-")[0] == _stem(agent_id)


def _run(state: Coordinator, run_id: str) -> SupportRun:
    run = state.active_supporting_agents.get(run_id)
    if run is None:
        raise NotAllowed("unknown_run", f"no supporting agent is at work on {run_id}", SHOW)
    return run


def _next(
    state: Coordinator, run_id: str, run: SupportRun, terms: DecisionTerms, offset: int = 0
) -> list[Draft]:
    """Whoever waited longest for the agent that is free now."""
    runs = state.active_supporting_agents
    busy = sum(one.agent_id == run.agent_id for name, one in runs.items() if name != run_id)
    queue = [one for one in state.pending_delegation_requests if one.agent_id == run.agent_id]
    room = max(0, terms.limits.max_concurrent_per_agent - busy)
    return [
        _taken_up(
            state,
            {name: getattr(one, name) for name in _REQUEST},
            one.request_id,
            terms,
            offset + number,
        )
        for number, one in enumerate(queue[:room])
    ]


def support_done(state: Coordinator, asked: SupportDone, terms: DecisionTerms) -> list[Draft]:
    """What it found goes to whoever asked."""
    run = _run(state, asked.run_id)
    seconds = max(0.0, (terms.now - run.dispatched_at).total_seconds())
    fields = {name: getattr(asked, name) for name in ("run_id", "confidence", "result")}
    ended: Draft = (SupportingAgentComplete, {**fields, "duration_seconds": seconds})
    return [ended, *_next(state, asked.run_id, run, terms)]


def support_failed(state: Coordinator, asked: SupportFailed, terms: DecisionTerms) -> list[Draft]:
    """That it failed is told to whoever asked."""
    run = _run(state, asked.run_id)
    fields = {name: getattr(asked, name) for name in ("run_id", "reason", "timed_out")}
    return [(SupportingAgentFailed, fields), *_next(state, asked.run_id, run, terms)]


def out_of_scope(state: Coordinator, asked: OutOfScope, terms: DecisionTerms) -> list[Draft]:
    """The request goes to the agent that was suggested, if the plan has it and it takes such requests."""
    run = _run(state, asked.run_id)
    other = _known(state, asked.suggested) if asked.suggested != run.agent_id else None
    if other is not None and run.request_type not in other.request_types:
        other = None
    routed = other.agent_id if other else None
    fields = {"run_id": asked.run_id, "suggested": asked.suggested, "routed_to": routed}
    guidance = guidance_kept(asked.guidance)
    drafts: list[Draft] = [(SupportingAgentOutOfScope, {**fields, "guidance": guidance})]
    if other is not None:
        request = {**{name: getattr(run, name) for name in _REQUEST}, "agent_id": routed}
        drafts.append(_placed(state, request, terms, leaving=asked.run_id))
    return [*drafts, *_next(state, asked.run_id, run, terms, offset=1)]


def guidance_kept(guidance: str) -> str:
    """As much of it as is recorded."""
    return guidance[:_MOST_GUIDANCE]


def suggested(state: Coordinator, task_id: str) -> tuple[str, ...]:
    """Supporting agents that the plan names for a task, then those whose keywords stand in its title."""
    task = state.task(task_id)
    words = task.title.casefold() if task else ""
    known = state.supporting_agents
    named_for = [one.agent_id for one in known if task_id in one.applicable_tasks]
    by_word = [
        one.agent_id
        for one in known
        if any(word and word.casefold() in words for word in one.keyword_triggers)
    ]
    return tuple(dict.fromkeys([*named_for, *by_word]))
