"""Events of landing: tasks that passed their audit come to the target branch."""

from typing import Literal

from guard.core.base.fields import Frozen, Id, Line, Oid, Text
from guard.core.base.paths import Spelled
from guard.core.coordinator.event_base import PlanEvent

LandingMode = Literal["squash", "merge", "found"]
"""One commit, a merge that keeps the task's commits, or `found`: the target had all of the work already."""
LandingRefusalReason = Literal["conflict", "refuted"]


class LandingCommit(Frozen):
    """The commit by which one task lands."""

    task_id: Id
    tip: Oid
    """The last commit of the task's own."""
    commit_sha: Oid
    base_sha: Oid
    """The commit of the target before it."""
    kept_ref: Line
    """Where the task's own commits are kept."""
    branch: Line | None
    """The task's branch, which goes when all of it has landed."""
    mode: LandingMode
    files: tuple[Spelled, ...]
    """What the commit changes; the first of them."""


class LandingTargetChosen(PlanEvent):
    """Tasks of this plan land on this branch from now on."""

    type: Literal["landing_target_chosen"] = "landing_target_chosen"
    target: Line
    """The branch by its full name."""


class LandingStarted(PlanEvent):
    """The target is about to move: until the end of it is recorded, the next command finishes or undoes it."""

    type: Literal["landing_started"] = "landing_started"
    target: Line
    head: Oid
    """Where the target stood."""
    to_sha: Oid
    """The last of the commits, made and kept before the target moves."""
    commits: tuple[LandingCommit, ...]


class TaskLanded(PlanEvent):
    """The work of a task is on the target."""

    type: Literal["task_landed"] = "task_landed"
    task_id: Id
    target: Line
    tip: Oid
    commit_sha: Oid
    """The commit by which it landed; the target's tip if it had the work already."""
    kept_ref: Line | None
    mode: LandingMode


class LandingFailed(PlanEvent):
    """A landing that was begun came to nothing: the target is as it was."""

    type: Literal["landing_failed"] = "landing_failed"
    target: Line
    reason: Line


class LandingRefused(PlanEvent):
    """A task cannot land as it is: it is worked on again."""

    type: Literal["landing_refused"] = "landing_refused"
    task_id: Id
    target: Line
    reason: LandingRefusalReason
    detail: Text
    """What conflicts, or what failed: for the prompt of the agent that goes on."""
    paths: tuple[Spelled, ...]
    head: Oid
    """The target's commit with which it was merged."""


LandingEvent = LandingTargetChosen | LandingStarted | TaskLanded | LandingFailed | LandingRefused
