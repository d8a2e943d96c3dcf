"""Events in the life of a run and its iterations, in one work tree."""

from typing import Annotated, Literal

from pydantic import Field

from guard.core.base.fields import Frozen, Id, Line
from guard.core.events.base import BaseEvent, IterationNumber

Status = Literal[
    "complete", "waiting", "working", "timeout", "error", "limited", "blocked", "interrupted"
]
Seconds = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]


GOES_ON = {("waiting", "alive"), ("waiting", "team"), ("working", "agent_alive")}
"""Verdicts, with their reasons, on something that goes on: the iteration is judged again later."""


class Process(Frozen):
    """One process and no other: a pid is used again, a pid with its start time is not."""

    pid: Annotated[int, Field(ge=1, le=2**31)]
    start: Line
    """Opaque, with the machine's boot in it: it only compares."""


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
