"""Decisions on the plan itself, on failure patterns, on the coordinator's session, and on what may be rolled back."""

from dataclasses import dataclass

from guard.core.base.fields import Frozen
from guard.core.coordinator.decide_tasks import failure
from guard.core.coordinator.requests import (
    AddPrevention,
    IssueWarnings,
    LoadPlan,
    Notice,
    RecordFailure,
    TakeOutbox,
    Tokens,
    Usage,
)
from guard.core.coordinator.state import Coordinator
from guard.core.coordinator.terms import SHOW, DecisionTerms, Draft, NotAllowed, called
from guard.core.events.plan import PlanComplete, PlanLoaded, ValidationComplete
from guard.core.events.plan_upkeep import (
    ContextCompacted,
    FailurePatternPreventionAdded,
    FailureWarningIssued,
    OutboxTaken,
    RollbackBlocked,
    RollbackFailed,
    SessionPaused,
    SessionResumed,
    UsageChecked,
)


def load(state: Coordinator, asked: LoadPlan, _terms: DecisionTerms) -> list[Draft]:
    """What is under way must be in the new plan too; what was done stays done."""
    ids = {task.id for task in asked.plan.tasks}
    under_way = [*(one.task_id for one in state.in_progress_tasks), *state.pending_expansions]
    gone = [one for one in under_way if one not in ids]
    if gone:
        raise NotAllowed(
            "task_under_way",
            f"the new plan lacks what is under way: {', '.join(called(state, one) for one in gone[:5])}",
            "keep these tasks in the plan until they are done",
        )
    lost = {run.agent_id for run in state.active_supporting_agents.values()}
    lost |= {one.agent_id for one in state.pending_delegation_requests}
    lost -= {one.agent_id for one in asked.plan.supporting_agents}
    if lost:
        raise NotAllowed(
            "support_under_way",
            f"the new plan lacks supporting agents with work: {', '.join(sorted(lost)[:5])}",
            "keep them in the plan until they are done",
        )
    fields = {
        "plan_file": asked.plan_file,
        "tasks": asked.plan.tasks,
        "supporting_agents": asked.plan.supporting_agents,
    }
    drafts: list[Draft] = [(PlanLoaded, fields)]
    if ids and ids <= set(state.completed_tasks) and not state.plan_complete:
        drafts.append((PlanComplete, {"total_tasks": len(ids)}))
    return drafts


def notice(_state: Coordinator, asked: Notice, _terms: DecisionTerms) -> list[Draft]:
    """Nothing can be said against it."""
    return [(ValidationComplete if asked.type == "validation_complete" else SessionResumed, {})]


def tokens(_state: Coordinator, asked: Tokens, _terms: DecisionTerms) -> list[Draft]:
    """The coordinator's own session was compacted, or pauses."""
    event = ContextCompacted if asked.type == "compaction" else SessionPaused
    return [(event, {"tokens_remaining_percent": asked.tokens_remaining_percent})]


def usage(_state: Coordinator, asked: Usage, _terms: DecisionTerms) -> list[Draft]:
    """What is not told to remain is what is left of a hundred."""
    left = asked.session_remaining
    fields = {
        "session_utilisation": asked.session_utilisation,
        "session_remaining": left if left is not None else 100 - asked.session_utilisation,
        "session_resets_at": asked.session_resets_at,
    }
    return [(UsageChecked, fields)]


def record_failure(state: Coordinator, asked: RecordFailure, _terms: DecisionTerms) -> list[Draft]:
    """One more of its kind."""
    _refuse_unknown(state, asked.task_id)
    return [failure(state, asked.failure_type, asked.task_id, asked.cause)]


def add_prevention(_state: Coordinator, asked: AddPrevention, _terms: DecisionTerms) -> list[Draft]:
    """What to do against a kind of failure may be known before the first of them."""
    return [(FailurePatternPreventionAdded, _fields(asked))]


def issue_warnings(state: Coordinator, asked: IssueWarnings, _terms: DecisionTerms) -> list[Draft]:
    """Only what was really said is recorded."""
    _refuse_unknown(state, asked.task_id)
    return [(FailureWarningIssued, _fields(asked))]


def take_outbox(state: Coordinator, asked: TakeOutbox, _terms: DecisionTerms) -> list[Draft]:
    """Only what stands in the outbox can be taken from it."""
    there = {one.item_id for one in state.outbox}
    gone = [one for one in asked.items if one not in there]
    if gone:
        raise NotAllowed(
            "not_in_outbox",
            f"{', '.join(gone[:5])}: not in the outbox",
            "`guard plan outbox` lists what is there",
        )
    return [(OutboxTaken, {"items": asked.items})] if asked.items else []


def _refuse_unknown(state: Coordinator, task_id: str) -> None:
    if state.task(task_id) is None and task_id not in state.completed_tasks:
        raise NotAllowed("unknown_task", f"the plan has no task {task_id}", SHOW)


def _fields(asked: Frozen) -> dict[str, object]:
    return {name: getattr(asked, name) for name in type(asked).model_fields if name != "type"}


@dataclass(frozen=True)
class RollbackOrder:
    """The tasks to roll back, one after the other; if none may be, the event that says why."""

    tasks: tuple[str, ...]
    refusal: Draft | None = None


def rollback_order(state: Coordinator, task_id: str, *, cascade: bool) -> RollbackOrder:
    """What rolling back a task takes.

    Completed dependents forbid it; with `cascade` they come first, the latest to be completed before all others.
    """
    if state.task(task_id) is None and task_id not in state.completed_tasks:
        return _failed(task_id, "unknown_task")
    if task_id not in state.completed_tasks:
        return _failed(task_id, "not_completed")
    dependents = completed_dependents(state, task_id)
    if dependents and not cascade:
        fields = {"task_id": task_id, "dependents": dependents}
        refusal = (RollbackBlocked, {**fields, "reason": "dependent_tasks_completed"})
        return RollbackOrder((), refusal)
    order = (*dependents, task_id)
    for one in order:
        if one not in state.task_commits:
            return _failed(one, "no_commit_recorded")
    return RollbackOrder(order)


def _failed(task_id: str, reason: str) -> RollbackOrder:
    return RollbackOrder((), (RollbackFailed, {"task_id": task_id, "reason": reason}))


def completed_dependents(state: Coordinator, task_id: str) -> tuple[str, ...]:
    """Completed tasks that wait for this one, directly or not; the latest to be completed first."""
    dependents: dict[str, list[str]] = {}
    for task in state.tasks:
        for wanted in task.depends:
            dependents.setdefault(wanted, []).append(task.id)
    found: set[str] = set()
    ahead = [task_id]
    while ahead:
        new = [one for one in dependents.get(ahead.pop(), ()) if one not in found]
        found.update(new)
        ahead += new
    return tuple(one for one in reversed(state.completed_tasks) if one in found)
