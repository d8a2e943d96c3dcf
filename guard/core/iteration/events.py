"""Events in the life of a run and its iterations, in one work tree."""

from typing import Literal

from pydantic import Field

from guard.core.base.fields import Count, Digest, Frozen, Id, Line, Oid
from guard.core.base.paths import Spelled
from guard.core.iteration.facts import DirtyFile, Process, Seconds, Status
from guard.core.log.events import BaseEvent, IterationNumber


class RunEventBase(BaseEvent):
    """What every event of a run has."""

    run: Id
    worktree: Id


class IterationEventBase(RunEventBase):
    """What every event of an iteration has."""

    iteration: IterationNumber


class RunStarted(RunEventBase):
    type: Literal["run_started"] = "run_started"
    command: tuple[Line, ...] = ()


class IterationStarted(IterationEventBase):
    """An iteration has begun; the supervisor is the guard that watches over it, if one does."""

    type: Literal["iteration_started"] = "iteration_started"
    supervisor: Process | None = None
    frozen: dict[Line, str | int | float | bool | None] = Field(default_factory=dict)
    """The project's own settings as they were: the agent may edit the file, but not this iteration."""
    trusted: Oid | None = None
    """The commit whose settings the user trusts, where the run began with such a one."""


class SessionSeen(IterationEventBase):
    """The agent's process was started, or its session became known."""

    type: Literal["session_seen"] = "session_seen"
    agent: Line | None
    session: Line | None
    process: Process | None


class IterationEnded(IterationEventBase):
    type: Literal["iteration_ended"] = "iteration_ended"
    status: Status
    reason: Line
    elapsed_seconds: Seconds


class RunEnded(RunEventBase):
    type: Literal["run_ended"] = "run_ended"
    reason: Line


RunEvent = RunStarted | IterationStarted | SessionSeen | IterationEnded | RunEnded


class RepositoryStanding(Frozen):
    """Where a repository stands."""

    head: Oid | None
    """None before the first commit."""
    tree: Oid | None
    branch: Spelled | None
    """The ref that HEAD names; None if it is detached."""
    refs: dict[Spelled, Oid]
    """The commit of each ref but guard's own, and of the detached HEADs of other work trees; branches first."""
    refs_omitted: Count
    stash: tuple[Oid, ...]
    shallow: Digest | None
    """Of the file that says where a shallow clone ends; None if it is not shallow."""
    reflogs: dict[Spelled, Count]
    """How long the reflog of each work tree's HEAD was, in bytes."""
    dirty: tuple[DirtyFile, ...]
    pin: Spelled | None
    """The ref that keeps all these commits from git's garbage collection; None if it could not be made."""
    pinned: Oid | None
    kept: Line | None = None
    """The command that brings back the user's own uncommitted work as it was here; None if there was none to keep."""
    warnings: tuple[Line, ...]


class BaselineRecorded(RepositoryStanding, IterationEventBase):
    """The iteration begins here: what comes after is its work, what was there before is not."""

    type: Literal["baseline_recorded"] = "baseline_recorded"
    baseline: Id


class BaselineSnapshotLost(IterationEventBase):
    """The snapshot from when the iteration began is gone from the shadow repository: nothing rests on it any more."""

    type: Literal["baseline_snapshot_lost"] = "baseline_snapshot_lost"
    baseline: Id
    kept: Line
    """The command that brought it back."""


BaselineEvent = BaselineRecorded | BaselineSnapshotLost
