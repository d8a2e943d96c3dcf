"""What a hook of git left in the spool: a commit, or commits that took the place of others."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from guard.core.base.fields import BootSeconds, Count, Frozen, Line, Oid, is_id
from guard.core.hooks.git.events import How, Rewrite
from guard.core.iteration.run import Run


class HookNote(Frozen):
    """One call of a hook."""

    schema_: Literal["guard/noted-commit/1"] = Field("guard/noted-commit/1", alias="schema")
    event: Literal["post-commit", "post-rewrite"]
    seconds: Annotated[float, Field(ge=0, le=2**37)]
    """Since the epoch."""
    boot_seconds: BootSeconds
    boot_id: Line | None
    mark: Line | None
    """The run and the iteration of the process that made the commit, as guard marks those that it starts."""
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
    """The run and the iteration; None if it was made outside of every one.

    What guard started bears its mark. Where a guard watches over the iteration, a commit without it is somebody else's.
    """
    if run is None:
        return None
    marked = _marked(mark)
    if marked is not None:
        return marked if marked[0] == run.run else None
    opened, ended = run.open_iteration, run.last_iteration
    if opened is not None and opened.started_at <= at:
        return (run.run, opened.number) if opened.supervisor is None else None
    if ended is not None and ended.started_at is not None:
        within = ended.started_at <= at <= ended.ended_at
        return (run.run, ended.number) if within else None
    return None


def _marked(mark: str | None) -> IterationName:
    name, _, number = (mark or "").partition("/")
    is_number = number.isascii() and number.isdecimal() and len(number) < 10
    return (name, int(number)) if is_id(name) and is_number and int(number) > 0 else None
