"""The view of the newest run of a work tree: its open iteration, and how the last one ended."""

from typing import Any, Literal, assert_never, get_args

from pydantic import Field

from guard.core.base.fields import Count, Frozen, Id, Instant, Line, Oid
from guard.core.iteration.events import (
    IterationEnded,
    IterationStarted,
    RunEnded,
    RunEvent,
    RunStarted,
    SessionSeen,
)
from guard.core.iteration.facts import Process, Seconds, Status
from guard.core.log.events import IterationNumber
from guard.core.log.view import FieldsFold, WorktreeView, worktree_view


class OpenIteration(Frozen):
    """An iteration that has begun and not ended: running, waited for, or left by a crash."""

    number: IterationNumber
    started_at: Instant
    supervisor: Process | None = None
    frozen: dict[Line, str | int | float | bool | None] = Field(default_factory=dict)
    trusted: Oid | None = None
    agent: Line | None = None
    session: Line | None = None
    process: Process | None = None

    def with_session(self, seen: SessionSeen) -> "OpenIteration":
        news = {
            "agent": seen.agent or self.agent,
            "session": seen.session or self.session,
            "process": seen.process or self.process,
        }
        return self.model_copy(update=news)


class EndedIteration(Frozen):
    """The newest iteration that ended, with its verdict."""

    number: IterationNumber
    started_at: Instant | None
    ended_at: Instant
    status: Status
    reason: Line
    elapsed_seconds: Seconds
    agent: Line | None
    session: Line | None
    frozen: dict[Line, str | int | float | bool | None] | None
    trusted: Oid | None


class Run(WorktreeView):
    """The newest run of one work tree."""

    schema_: Literal["guard/run/3"] = Field("guard/run/3", alias="schema")
    run: Id
    command: tuple[Line, ...]
    started_at: Instant | None
    ended_at: Instant | None
    end_reason: Line | None
    iterations: Count
    open_iteration: OpenIteration | None
    last_iteration: EndedIteration | None

    def find_open(self, run: str, number: int) -> OpenIteration | None:
        """Return the iteration of this run and number, if it is open."""
        known = self.open_iteration if self.run == run else None
        return known if known is not None and known.number == number else None


class RunFold(FieldsFold[Run]):
    document_class = Run

    def apply(self, event: RunEvent) -> None:
        if not self._fields or (type(event) is RunStarted and event.run != self._fields["run"]):
            self._fields = {**_BLANK, "worktree": self.key, "run": event.run}
        if event.run != self._fields["run"]:
            return  # A late word of an earlier run: in the log, and no longer news.
        state = self._fields
        match event:
            case RunStarted():
                state.update(started_at=event.at, command=event.command)
            case IterationStarted():
                state["iterations"] += 1
                state["open_iteration"] = OpenIteration(
                    number=event.iteration,
                    started_at=event.at,
                    supervisor=event.supervisor,
                    frozen=event.frozen,
                    trusted=event.trusted,
                )
            case SessionSeen():
                if known := self._find_open(event.iteration):
                    state["open_iteration"] = known.with_session(event)
            case IterationEnded():
                known = self._find_open(event.iteration)
                state["last_iteration"] = _ended_iteration(event, known)
                if known is not None:
                    state["open_iteration"] = None
            case RunEnded():
                state.update(ended_at=event.at, end_reason=event.reason)
            case _:
                assert_never(event)

    def _find_open(self, number: int) -> OpenIteration | None:
        known: OpenIteration | None = self._fields["open_iteration"]
        return known if known is not None and known.number == number else None


def _ended_iteration(event: IterationEnded, known: OpenIteration | None) -> EndedIteration:
    return EndedIteration(
        number=event.iteration,
        started_at=known.started_at if known else None,
        ended_at=event.at,
        status=event.status,
        reason=event.reason,
        elapsed_seconds=event.elapsed_seconds,
        agent=known.agent if known else None,
        session=known.session if known else None,
        frozen=known.frozen if known else None,
        trusted=known.trusted if known else None,
    )


_BLANK: dict[str, Any] = {
    "command": (),
    "started_at": None,
    "ended_at": None,
    "end_reason": None,
    "iterations": 0,
    "open_iteration": None,
    "last_iteration": None,
}

RUN = worktree_view(
    Run,
    RunFold,
    get_args(RunEvent),
    "run",
    b'"type":"run_',
    b'"type":"iteration_',
    b'"type":"session_seen"',
)
