"""Events in the life of a run and its iterations, in one work tree."""

from typing import Annotated, Literal

from pydantic import Field

from guard.core.events.base import BaseEvent, IterationNumber
from guard.core.fields import Id, Line

Status = Literal[
    "complete", "waiting", "working", "timeout", "error", "limited", "blocked", "interrupted"
]
Seconds = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]


class _RunEvent(BaseEvent):
    run: Id
    worktree: Id


class _IterationEvent(_RunEvent):
    iteration: IterationNumber


class RunStarted(_RunEvent):
    type: Literal["run_started"] = "run_started"
    command: tuple[Line, ...] = ()


class IterationStarted(_IterationEvent):
    type: Literal["iteration_started"] = "iteration_started"


class IterationEnded(_IterationEvent):
    type: Literal["iteration_ended"] = "iteration_ended"
    status: Status
    reason: Line
    elapsed_seconds: Seconds


class RunEnded(_RunEvent):
    type: Literal["run_ended"] = "run_ended"
    reason: Line


RunEvent = RunStarted | IterationStarted | IterationEnded | RunEnded
