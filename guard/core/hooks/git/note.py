"""What a hook of git left in the spool: a commit, or commits that took the place of others."""

from typing import Annotated, Literal

from pydantic import Field

from guard.core.base.fields import BootSeconds, Count, Frozen, Line, Oid
from guard.core.hooks.git.events import How, Rewrite


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
