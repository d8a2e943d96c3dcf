"""Describe a note that a git hook left in the spool, and find the iteration that its commit belongs to."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from guard.core.base.fields import BootSeconds, Count, Frozen, Line, Oid
from guard.core.base.text import is_id
from guard.core.hooks.git.events import How, Rewrite
from guard.core.iteration.run import Run


class HookNote(Frozen):
    """One call of a git hook: a commit, or commits that replaced others."""

    schema_: Literal["guard/noted-commit/1"] = Field("guard/noted-commit/1", alias="schema")
    event: Literal["post-commit", "post-rewrite"]
    seconds: Annotated[float, Field(ge=0, le=2**37)]
    """Since the epoch."""
    boot_seconds: BootSeconds
    boot_id: Line | None
    mark: Line | None
    """The run and the iteration that guard marked the process with which made the commit."""
    oid: Oid | None = None
    previous: Oid | None = None
    branch: Line | None = None
    how: How = "other"
    verified: bool | None = None
    command: Line = ""
    count: Count = 0
    rewrites: tuple[tuple[Oid, Oid], ...] = ()

    def pairs(self) -> tuple[Rewrite, ...]:
        return tuple(Rewrite(old=old, new=new) for old, new in self.rewrites)


IterationName = tuple[str, int] | None


def iteration_of(run: Run | None, mark: str | None, at: datetime) -> IterationName:
    """Return the run and the iteration in which a commit was made; None outside of every iteration."""
    if run is None:
        return None
    # What guard started bears its mark. While a guard supervises the iteration, a commit without it is not the agent's.
    marked = _parse_mark(mark)
    if marked is not None:
        return marked if marked[0] == run.run else None
    opened, ended = run.open_iteration, run.last_iteration
    if opened is not None and opened.started_at <= at:
        return (run.run, opened.number) if opened.supervisor is None else None
    if ended is not None and ended.started_at is not None:
        is_within = ended.started_at <= at <= ended.ended_at
        return (run.run, ended.number) if is_within else None
    return None


def _parse_mark(mark: str | None) -> IterationName:
    name, _, number = (mark or "").partition("/")
    is_number = number.isascii() and number.isdecimal() and len(number) < 10
    return (name, int(number)) if is_id(name) and is_number and int(number) > 0 else None
