"""The newest completion check of a work tree: its verdict, what it saw alive, and what it saw uncommitted."""

from typing import Any, Literal

from pydantic import Field

from guard.core.base.fields import Count, Id, Instant, Line
from guard.core.base.paths import Spelled
from guard.core.check.events import CheckMade
from guard.core.iteration.events import GOES_ON, DirtyFile, Seconds, Status
from guard.core.log.events import IterationNumber
from guard.core.log.view import FieldsFold, WorktreeView, worktree_view


class LastCheck(WorktreeView):
    """How the newest check of one work tree ended."""

    schema_: Literal["guard/last-check/1"] = Field("guard/last-check/1", alias="schema")
    run: Id
    iteration: IterationNumber
    at: Instant
    status: Status
    reason: Line
    detail: Line
    complete: bool
    new_commits: Count
    rescued_commits: Count
    retry_at: Instant | None
    left: tuple[DirtyFile, ...]
    aside: tuple[Spelled, ...]
    """What changed while no guard watched."""
    living: tuple[dict[str, Any], ...]
    """What was alive, as the evidence had it: the next check of this iteration goes on from there."""
    waited_seconds: Seconds
    """How long the checks of this iteration have waited for what is alive: all of them together have one limit."""
    output: dict[str, Any] | None
    """What the agent's output meant to the guard that saw it end, if one did."""
    left_open: bool
    """Whether the guard that watched over it left it with the verdict that something goes on."""


_COPIED = CheckMade.model_fields.keys() & LastCheck.model_fields.keys()


class LastCheckFold(FieldsFold[LastCheck]):
    document_class = LastCheck

    def apply(self, event: CheckMade) -> None:
        look = event.looks[-1] if event.looks else {}
        before = self._fields if self._is_same(event) else {}
        self._fields = {name: getattr(event, name) for name in _COPIED}
        self._fields["living"] = tuple(look.get("living", ()))
        self._fields["waited_seconds"] = look.get("waited_seconds", 0)
        self._fields["output"] = look.get("output") or before.get("output")
        goes_on = (event.status, event.reason) in GOES_ON
        self._fields["left_open"] = goes_on if event.supervised else before.get("left_open", False)

    def _is_same(self, event: CheckMade) -> bool:
        known = (self._fields.get("run"), self._fields.get("iteration"))
        return known == (event.run, event.iteration)


LAST_CHECK = worktree_view(LastCheck, LastCheckFold, (CheckMade,), "check", b'"type":"check_made"')
