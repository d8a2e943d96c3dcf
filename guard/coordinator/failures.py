"""Record failures of tasks, and warn later tasks of them."""

from guard.context.invocation import Invocation
from guard.coordinator.record import (
    RequestResult,
    find_event,
    record,
    reject_invalid,
    require_state,
)
from guard.core.coordinator.decide import (
    add_failure_prevention,
    issue_warnings,
    record_failure_pattern,
)
from guard.core.coordinator.state import Coordinator
from guard.core.coordinator.upkeep_events import FailureWarningIssued
from guard.core.failures.diagnose import failure_cause, failure_kind
from guard.core.failures.pattern import FailureWarning
from guard.core.failures.report import FailureWarningsReport
from guard.core.failures.warn import warnings_for, warnings_text
from guard.core.plan.model import PlanTask
from guard.errors import Refused


def record_failure(
    guard: Invocation, task_id: str, details: str, kind: str | None, event_id: str | None
) -> RequestResult:
    """Record one failure of a task; without a kind, guard takes the kind from the details."""
    with reject_invalid():
        request = record_failure_pattern(
            failure_type=kind or failure_kind(details),
            task_id=task_id,
            cause=failure_cause(details),
        )
    return record(guard, request, event_id)


def add_prevention(
    guard: Invocation, kind: str, prevention: str, event_id: str | None
) -> RequestResult:
    with reject_invalid():
        request = add_failure_prevention(failure_type=kind, prevention=prevention)
    return record(guard, request, event_id)


def warn_task(
    guard: Invocation, task_id: str, *, issues: bool, event_id: str | None = None
) -> FailureWarningsReport:
    """Return the warnings for a task; with `issues`, also record that the task was warned.

    For an event id that was used before, return the warnings that were recorded then.
    """
    state = require_state(guard)
    task = state.task(task_id)
    if task is None:
        raise Refused(f"the plan has no task {task_id}", "`guard plan show` lists the tasks")
    found = task_warnings(state, task)
    known = find_event(guard, event_id) if event_id is not None else None
    if isinstance(known, FailureWarningIssued):
        found = known.warnings
    if (found and issues) or known is not None:
        record(guard, issue_warnings(task_id=task.id, warnings=found), event_id)
    return FailureWarningsReport(task_id=task.id, warnings=found, text=warnings_text(found))


def task_warnings(state: Coordinator, task: PlanTask) -> tuple[FailureWarning, ...]:
    titles = {planned_task.id: planned_task.title for planned_task in state.tasks}
    return warnings_for(task, state.failure_patterns, titles)
