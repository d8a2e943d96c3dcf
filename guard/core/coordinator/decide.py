"""Decide on any request; also on requests about the plan, failure patterns, the session and rollbacks."""

from datetime import datetime
from functools import partial
from typing import Any

from guard.core.base.first_use import dataclass
from guard.core.base.text import shorten
from guard.core.coordinator import (
    decide_agents,
    decide_restart,
    decide_support,
    decide_tasks,
    upkeep_events,
)
from guard.core.coordinator.decide_tasks import failure_draft
from guard.core.coordinator.requests import (
    SHOW,
    DecisionTerms,
    Draft,
    NotAllowed,
    Refusal,
    Request,
    RequestKind,
    leads_to,
)
from guard.core.coordinator.state import Coordinator
from guard.core.coordinator.task_events import (
    CoordinatorEvent,
    PlanComplete,
    PlanLoaded,
    ValidationComplete,
)
from guard.core.failures.pattern import FailureWarning
from guard.core.plan.model import PlanTask, SupportingAgent
from guard.core.plan.select import dependents_by_task, downstream_of

_MOST_CAUSE = 400
Decision = tuple[CoordinatorEvent, ...] | Refusal


def decide(state: Coordinator, request: Request, terms: DecisionTerms) -> Decision:
    try:
        return terms.events(request.kind.decide(state, terms, **request.fields))
    except NotAllowed as error:
        return error.refusal


@leads_to(PlanLoaded)
def load_plan(
    state: Coordinator,
    terms: DecisionTerms,
    *,
    plan_file: str,
    tasks: tuple[PlanTask, ...],
    supporting_agents: tuple[SupportingAgent, ...] = (),
) -> list[Draft]:
    """Replace the plan; completed tasks stay completed, and the new plan must have every task in progress."""
    ids = {task.id for task in tasks}
    under_way = [*(work.task_id for work in state.in_progress_tasks), *state.pending_expansions]
    gone = [state.task_name(task_id) for task_id in under_way if task_id not in ids]
    if gone:
        raise NotAllowed(
            "task_under_way",
            f"the new plan lacks tasks in progress: {', '.join(gone[:5])}",
            "keep these tasks in the plan until they are done",
        )
    lost = {run.agent_id for run in state.active_supporting_agents.values()}
    lost |= {delegation.agent_id for delegation in state.pending_delegation_requests}
    lost -= {agent.agent_id for agent in supporting_agents}
    if lost:
        raise NotAllowed(
            "support_under_way",
            f"the new plan lacks supporting agents with work: {', '.join(sorted(lost)[:5])}",
            "keep them in the plan until they are done",
        )
    drafts: list[Draft] = [
        partial(
            PlanLoaded,
            plan_file=plan_file,
            tasks=tasks,
            supporting_agents=supporting_agents,
            head=terms.head,
        )
    ]
    if ids and ids <= set(state.completed_tasks) and not state.plan_complete:
        drafts.append(partial(PlanComplete, total_tasks=len(ids)))
    return drafts


@leads_to(ValidationComplete)
def complete_validation(_state: Coordinator, _terms: DecisionTerms) -> list[Draft]:
    return [ValidationComplete]


@leads_to(upkeep_events.SessionResumed)
def resume_session(_state: Coordinator, _terms: DecisionTerms) -> list[Draft]:
    return [upkeep_events.SessionResumed]


@leads_to(upkeep_events.ContextCompacted)
def record_compaction(
    _state: Coordinator, _terms: DecisionTerms, *, tokens_remaining_percent: int | None = None
) -> list[Draft]:
    return [
        partial(upkeep_events.ContextCompacted, tokens_remaining_percent=tokens_remaining_percent)
    ]


@leads_to(upkeep_events.SessionPaused)
def pause_session(
    _state: Coordinator, _terms: DecisionTerms, *, tokens_remaining_percent: int | None = None
) -> list[Draft]:
    return [partial(upkeep_events.SessionPaused, tokens_remaining_percent=tokens_remaining_percent)]


@leads_to(upkeep_events.UsageChecked)
def record_usage(
    _state: Coordinator,
    _terms: DecisionTerms,
    *,
    session_utilisation: int,
    session_remaining: int | None = None,
    session_resets_at: datetime | None = None,
) -> list[Draft]:
    if session_remaining is None:
        session_remaining = 100 - session_utilisation
    checked = partial(
        upkeep_events.UsageChecked,
        session_utilisation=session_utilisation,
        session_remaining=session_remaining,
        session_resets_at=session_resets_at,
    )
    return [checked]


@leads_to(upkeep_events.FailurePatternRecorded, cause=lambda cause: shorten(cause, _MOST_CAUSE))
def record_failure_pattern(
    state: Coordinator,
    _terms: DecisionTerms,
    *,
    failure_type: str,
    task_id: str,
    cause: str | None = None,
) -> list[Draft]:
    _refuse_unknown(state, task_id)
    return [failure_draft(state, failure_type, task_id, cause)]


@leads_to(upkeep_events.FailurePatternPreventionAdded)
def add_failure_prevention(
    _state: Coordinator, _terms: DecisionTerms, *, failure_type: str, prevention: str
) -> list[Draft]:
    # A prevention may be known before the first failure of its kind.
    return [
        partial(
            upkeep_events.FailurePatternPreventionAdded,
            failure_type=failure_type,
            prevention=prevention,
        )
    ]


@leads_to(upkeep_events.FailureWarningIssued)
def issue_warnings(
    state: Coordinator, _terms: DecisionTerms, *, task_id: str, warnings: tuple[FailureWarning, ...]
) -> list[Draft]:
    _refuse_unknown(state, task_id)
    return [partial(upkeep_events.FailureWarningIssued, task_id=task_id, warnings=warnings)]


@leads_to(upkeep_events.OutboxTaken)
def take_outbox(state: Coordinator, terms: DecisionTerms, *, items: tuple[str, ...]) -> list[Draft]:
    """Take items out of the outbox; the time of agents that are started with them begins.

    An item that was taken or withdrawn before is passed over.
    """
    kinds = {parcel.item_id: parcel.kind for parcel in state.outbox}
    gone = [item for item in items if item not in kinds and not _was_sent(state, item)]
    if gone:
        raise NotAllowed(
            "not_in_outbox",
            f"the outbox does not have {', '.join(gone[:5])}",
            "`guard plan outbox` lists what is there",
        )
    there = tuple(item for item in dict.fromkeys(items) if item in kinds)
    if not there:
        return []
    taken = partial(upkeep_events.OutboxTaken, items=there)
    starts = any(kinds[item] == "start" for item in there)
    return [partial(taken, **terms.timeout()) if starts else taken]


def _was_sent(state: Coordinator, item_id: str) -> bool:
    number = item_id.removeprefix("item-")
    return number.isascii() and number.isdigit() and 1 <= int(number) <= state.outbox_count


def _refuse_unknown(state: Coordinator, task_id: str) -> None:
    if not _is_known(state, task_id):
        raise NotAllowed("unknown_task", f"the plan has no task {task_id}", SHOW)


def _is_known(state: Coordinator, task_id: str) -> bool:
    return state.task(task_id) is not None or task_id in state.completed_tasks


def _all_requests() -> dict[str, RequestKind[Any]]:
    found: dict[str, RequestKind[Any]] = {}
    for names in (
        globals(),
        *map(vars, (decide_tasks, decide_agents, decide_support, decide_restart)),
    ):
        kinds = [value for value in names.values() if isinstance(value, RequestKind)]
        found |= {
            event.model_fields["type"].default: kind for kind in kinds for event in kind.events
        }
    return found


REQUESTS = _all_requests()
"""Every kind of request, by the tag of the event that it leads to."""


@dataclass(frozen=True)
class RollbackOrder:
    """The tasks to roll back, one after the other; if there are none, `refusal` says why."""

    tasks: tuple[str, ...]
    refusal: (
        partial[upkeep_events.RollbackBlocked] | partial[upkeep_events.RollbackFailed] | None
    ) = None


def rollback_order(state: Coordinator, task_id: str, *, cascade: bool) -> RollbackOrder:
    """Return the tasks to roll back for a task, in order.

    Completed dependents forbid the rollback; with `cascade` they come first, the last completed one before all others.
    """
    if not _is_known(state, task_id):
        return _refuse_rollback(task_id, "unknown_task")
    if task_id not in state.completed_tasks:
        return _refuse_rollback(task_id, "not_completed")
    dependents = _completed_dependents(state, task_id)
    if dependents and not cascade:
        refusal = partial(
            upkeep_events.RollbackBlocked,
            task_id=task_id,
            dependents=dependents,
            reason="dependent_tasks_completed",
        )
        return RollbackOrder((), refusal)
    order = (*dependents, task_id)
    for ordered_id in order:
        if ordered_id not in state.task_commits:
            return _refuse_rollback(ordered_id, "no_commit_recorded")
    return RollbackOrder(order)


def _refuse_rollback(task_id: str, reason: str) -> RollbackOrder:
    return RollbackOrder((), partial(upkeep_events.RollbackFailed, task_id=task_id, reason=reason))


def _completed_dependents(state: Coordinator, task_id: str) -> tuple[str, ...]:
    # Direct and indirect dependents; the last completed one first.
    found = downstream_of(task_id, dependents_by_task(state.tasks))
    return tuple(
        completed_id for completed_id in reversed(state.completed_tasks) if completed_id in found
    )
