"""The entries of the coordinator's state."""

from typing import Annotated, Literal

from pydantic import Field

from guard.core.base.fields import (
    BootSeconds,
    Count,
    Frozen,
    Id,
    Incarnation,
    Instant,
    Line,
    Oid,
    Text,
)
from guard.core.base.paths import Spelled
from guard.core.coordinator.event_base import AgentType, Confidence, Seconds
from guard.core.coordinator.landing_events import LandingCommit, LandingMode, LandingRefusalReason
from guard.core.coordinator.task_events import QuestionAbout
from guard.core.plan.model import RequestType, SupportingAgent

WorkStatus = Literal["implementing", "awaiting-audit", "awaiting-divine-guidance"]
ParcelKind = Literal["start", "rework", "guidance", "abort", "support", "queued", "checkpoint"]
Place = Literal["completed", "in_progress", "pending_expansion", "blocked", "available"]

NEEDS_EXPANSION = "needs-expansion"
AWAITING_CLARIFICATION = "awaiting-clarification"


class TaskInProgress(Frozen):
    """A task in progress."""

    task_id: Id
    developer_id: Id
    status: WorkStatus
    last_checkpoint: Line | None
    dispatched_at: Instant
    base_sha: Oid | None
    """Where the repository stood when it was first taken up."""


class Timed(Frozen):
    """Something that ends by the clock."""

    dispatched_at: Instant
    timeout_at: Instant
    timeout_boot_seconds: BootSeconds | None = None
    """The same on the boot clock, which never jumps; it counts on the machine and in the boot that has this id."""
    timeout_boot_id: Line | None = None
    incarnation: Incarnation | None = None
    """Which life of the agent in the registries this is."""
    started_at: Instant | None = None
    """When the agent was seen to start; None if it was not seen yet."""
    has_ended: bool = False
    """Whether this life has ended without an end of the work; another one goes on with it."""


class ActiveAgent(Timed):
    """An agent at work, or waiting for an answer."""

    type: AgentType
    task_id: Id | None
    last_checkpoint: Line | None
    checkpoint_count: Count
    status: Literal["working", "awaiting-divine-guidance"]
    registered_in: Id | None = None
    """The task in which the agent is registered, if it claimed this one after another."""
    extensions: Count
    """How often it got more time for a checkpoint since it was last seen at work."""
    checked: bool
    """Whether a checkpoint came since it last got time."""


class OpenQuestion(Frozen):
    """What a person is to answer."""

    question_id: Id
    agent_id: Id | None
    task_id: Id | None
    question: Text
    about: QuestionAbout
    asked_at: Instant
    response: Text | None


class AnsweredQuestion(Frozen):
    """A question with a person's answer, kept for the agents that are sent later to the same work."""

    question_id: Id
    agent_id: Id | None
    task_id: Id | None
    question: Text
    about: QuestionAbout
    response: Text
    answered_at: Instant


class KnownSupport(SupportingAgent):
    """A supporting agent of the plan."""

    created_at: Instant


class SupportRun(Timed):
    """A request that a supporting agent works on."""

    agent_id: Id
    delegating_agent: Id
    task_id: Id | None
    request_type: RequestType
    request_summary: Line


class Delegation(Frozen):
    """A request that waits for its supporting agent."""

    request_id: Id
    agent_id: Id
    delegating_agent: Id
    task_id: Id | None
    request_type: RequestType
    request_summary: Line
    queued_at: Instant


class SupportStats(Frozen):
    """How a supporting agent was used."""

    delegations: Count = 0
    completions: Count = 0
    failures: Count = 0
    out_of_scope: Count = 0
    avg_duration_seconds: Seconds | None = None
    avg_confidence: Confidence | None = None
    tasks_benefited: tuple[Id, ...] = ()
    total_duration_seconds: Seconds = 0.0
    total_confidence: Count = 0
    """LOW counts 1, MEDIUM 2, HIGH 3."""


class TaskCommit(Frozen):
    """The commits of a completed task: those after `base_sha`, up to `commit_sha`."""

    commit_sha: Oid
    base_sha: Oid | None
    completed_at: Instant
    files_modified: tuple[Spelled, ...]
    branch: Line | None
    commits: tuple[Oid, ...] = ()
    """The task's own commits, the newest first, where others' lie between them; else empty."""
    shared_with: tuple[Id, ...] = ()
    """Other tasks that were worked on in the same place: nothing tells whose some of the commits are."""


class TaskRevert(Frozen):
    """A task that was rolled back: the commit that did it, until the task is on the target again."""

    to_sha: Oid
    commits: tuple[Oid, ...]
    """What it took back."""


class Setback(Frozen):
    """How often agents of a task timed out or crashed, and how far the last one was."""

    attempts: Annotated[int, Field(ge=1, le=2**53)]
    last_checkpoint: Line | None
    reason: Line
    """Why the last one was lost, if that was told."""


class Rollback(Frozen):
    """A rollback that was begun, and whose end is not recorded."""

    task_id: Id
    commits: tuple[Oid, ...]
    head: Oid
    to_sha: Oid
    branch: Line | None
    reason: Text
    started_at: Instant


class Landing(Frozen):
    """A landing that was begun, and whose end is not recorded."""

    target: Line
    head: Oid
    to_sha: Oid
    commits: tuple[LandingCommit, ...]
    started_at: Instant


class LandedTask(Frozen):
    """A task whose work is on the target."""

    target: Line
    tip: Oid
    commit_sha: Oid
    kept_ref: Line | None
    mode: LandingMode
    landed_at: Instant


class LandingSetback(Frozen):
    """How often a task could not land, and why it could not the last time."""

    attempts: Annotated[int, Field(ge=1, le=2**53)]
    reason: LandingRefusalReason
    detail: Text
    paths: tuple[Spelled, ...]
    target: Line
    head: Oid
    base_sha: Oid | None = None
    """Where the task's own commits begin, which it keeps when it is worked on again."""


class Parcel(Frozen):
    """What is to be delivered to an agent: a start, rework, guidance, an abort, the end of a request, a place in the queue."""

    item_id: Id
    kind: ParcelKind
    agent_id: Id
    incarnation: Incarnation | None
    """The life of the agent in the registries that this is for; None if they do not have the agent."""
    task_id: Id | None
    text: Text
    at: Instant
