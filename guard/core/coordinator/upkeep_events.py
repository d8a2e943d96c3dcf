"""Events of commits, rollbacks, failure patterns, the coordinator's session, and recovery."""

from typing import Annotated, Literal

from pydantic import Field

from guard.core.base.fields import Count, Frozen, Id, Instant, Line, Oid, Percent, Text
from guard.core.base.paths import Spelled
from guard.core.coordinator.event_base import PlanEvent, TimedEvent
from guard.core.failures.pattern import FailureWarning

Occurrences = Annotated[int, Field(ge=1, le=2**53)]


class TaskCommitRecorded(PlanEvent):
    """Which commits are a completed task's: those after `base_sha`, up to `commit_sha`."""

    type: Literal["task_commit_recorded"] = "task_commit_recorded"
    task_id: Id
    commit_sha: Oid
    base_sha: Oid | None
    """Where the task began; None before the first commit, or if that is not known."""
    files_modified: tuple[Spelled, ...]
    branch: Line | None
    """None with a detached HEAD."""
    commits: tuple[Oid, ...] = ()
    """The task's own commits, the newest first, where others' lie between them; else empty."""
    shared_with: tuple[Id, ...] = ()
    """Other tasks that were worked on in the same place: nothing tells whose some of the commits are."""


class AdoptedTask(Frozen):
    """A task that was done before the plan knew of it, and its commit where one is known."""

    task_id: Id
    commit_sha: Oid | None = None
    base_sha: Oid | None = None
    files_modified: tuple[Spelled, ...] = ()
    branch: Line | None = None


class TasksAdopted(PlanEvent):
    """Tasks count as complete because a person says so: they were not audited."""

    type: Literal["tasks_adopted"] = "tasks_adopted"
    tasks: tuple[AdoptedTask, ...]


class PlanReset(PlanEvent):
    """The plan begins anew: nothing of it is done or under way."""

    type: Literal["plan_reset"] = "plan_reset"
    reason: Line


class TaskRetried(PlanEvent):
    """A task that waits for a person may be worked on again: its questions are closed, and its failures forgotten."""

    type: Literal["task_retried"] = "task_retried"
    task_id: Id


class RollbackStarted(PlanEvent):
    """A task is about to be rolled back: until the end of it is recorded, the next command finishes or undoes it."""

    type: Literal["rollback_started"] = "rollback_started"
    task_id: Id
    commits: tuple[Oid, ...]
    """What is reverted, the newest first."""
    head: Oid
    """Where the branch stood."""
    to_sha: Oid
    """The revert, made and kept before anything is touched; `head` itself if there is nothing to revert."""
    branch: Line | None
    reason: Text


class TaskRolledBack(PlanEvent):
    """A task's commits are reverted: it is no longer complete."""

    type: Literal["task_rolled_back"] = "task_rolled_back"
    task_id: Id
    from_sha: Oid
    to_sha: Oid
    """The revert."""
    reason: Text


class RollbackFailed(PlanEvent):
    type: Literal["rollback_failed"] = "rollback_failed"
    task_id: Id
    reason: Text


class RollbackBlocked(PlanEvent):
    type: Literal["rollback_blocked"] = "rollback_blocked"
    task_id: Id
    reason: Text
    dependents: tuple[Id, ...]
    """Completed tasks that depend on it."""


class RollbackRequired(PlanEvent):
    """An agent says that a completed task has to be undone; a person decides."""

    type: Literal["rollback_required"] = "rollback_required"
    task_id: Id
    agent_id: Id
    reason: Text
    commit: Line | None
    """Which commit the agent names."""
    files: tuple[Line, ...]


class FailurePatternRecorded(PlanEvent):
    """A failed audit was told to be of a kind."""

    type: Literal["failure_pattern_recorded"] = "failure_pattern_recorded"
    failure_type: Id
    task_id: Id
    cause: Line | None
    total_occurrences: Occurrences


class FailurePatternPreventionAdded(PlanEvent):
    type: Literal["failure_pattern_prevention_added"] = "failure_pattern_prevention_added"
    failure_type: Id
    prevention: Line


class FailureWarningIssued(PlanEvent):
    """Warnings were put into the prompt of a task."""

    type: Literal["failure_warning_issued"] = "failure_warning_issued"
    task_id: Id
    warnings: tuple[FailureWarning, ...]


class UsageChecked(PlanEvent):
    """How much of its limits the coordinator's session has used."""

    type: Literal["usage_checked"] = "usage_checked"
    session_utilisation: Percent
    session_remaining: Percent
    session_resets_at: Instant | None


class ContextCompacted(PlanEvent):
    type: Literal["compaction"] = "compaction"
    tokens_remaining_percent: Percent | None


class SessionPaused(PlanEvent):
    type: Literal["session_paused"] = "session_paused"
    tokens_remaining_percent: Percent | None


class SessionResumed(PlanEvent):
    type: Literal["session_resumed"] = "session_resumed"


class StateRecoveryNeeded(PlanEvent):
    """The state file could not be used."""

    type: Literal["state_recovery_needed"] = "state_recovery_needed"
    reason: Line


class StateReconstructed(PlanEvent):
    """The state was folded again from the log."""

    type: Literal["state_reconstructed"] = "state_reconstructed"
    events_replayed: Count


class OutboxTaken(TimedEvent):
    """What stood in the outbox was delivered."""

    type: Literal["outbox_taken"] = "outbox_taken"
    items: tuple[Id, ...]
    timeout_at: Instant | None = None
    """Until when an agent that is started with these may take; None if none is."""


UpkeepEvent = (
    TaskCommitRecorded
    | TasksAdopted
    | PlanReset
    | TaskRetried
    | RollbackStarted
    | TaskRolledBack
    | RollbackFailed
    | RollbackBlocked
    | RollbackRequired
    | FailurePatternRecorded
    | FailurePatternPreventionAdded
    | FailureWarningIssued
    | UsageChecked
    | ContextCompacted
    | SessionPaused
    | SessionResumed
    | StateRecoveryNeeded
    | StateReconstructed
    | OutboxTaken
)
