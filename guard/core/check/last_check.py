"""The newest completion check of a work tree: its verdict, what it saw alive, and what it saw uncommitted."""

from typing import Annotated, Any, Literal

from pydantic import Field

from guard.core.base.fields import Count, Frozen, Id, Instant, Line
from guard.core.base.paths import Spelled
from guard.core.check.events import CheckMade
from guard.core.cost.usage import SessionUsage, Usage
from guard.core.iteration.facts import GOES_ON, DirtyFile, Seconds, Status
from guard.core.log.events import IterationNumber
from guard.core.log.view import FieldsFold, WorktreeView, worktree_view

_MOST_SESSIONS = 8


class SessionTotals(Frozen):
    """What a session has used since its beginning, as its agent CLI said last."""

    session: Line
    usage: SessionUsage


class LastCheck(WorktreeView):
    """How the newest check of one work tree ended."""

    schema_: Literal["guard/last-check/2"] = Field("guard/last-check/2", alias="schema")
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
    usage: Usage | None
    totals: Annotated[tuple[SessionTotals, ...], Field(max_length=_MOST_SESSIONS)]
    """Of the newest sessions whose agent CLI tells totals only: the next iteration of the session used the difference."""
    left_open: bool
    """Whether the guard that watched over it left it with the verdict that something goes on."""

    def totals_of(self, session: str | None) -> SessionUsage | None:
        return next((each.usage for each in self.totals if each.session == session), None)


_COPIED = CheckMade.model_fields.keys() & LastCheck.model_fields.keys()


class LastCheckFold(FieldsFold[LastCheck]):
    document_class = LastCheck

    def apply(self, event: CheckMade) -> None:
        look = event.looks[-1] if event.looks else {}
        before = self._fields if self._is_same(event) else {}
        totals = _keep_totals(self._fields.get("totals", ()), look.get("output") or {})
        self._fields = {name: getattr(event, name) for name in _COPIED}
        self._fields["totals"] = totals
        self._fields["living"] = tuple(look.get("living", ()))
        self._fields["waited_seconds"] = look.get("waited_seconds", 0)
        self._fields["output"] = look.get("output") or before.get("output")
        goes_on = (event.status, event.reason) in GOES_ON
        self._fields["left_open"] = goes_on if event.supervised else before.get("left_open", False)

    def _is_same(self, event: CheckMade) -> bool:
        known = (self._fields.get("run"), self._fields.get("iteration"))
        return known == (event.run, event.iteration)


def _keep_totals(
    known: tuple[SessionTotals, ...], output: dict[str, Any]
) -> tuple[SessionTotals, ...]:
    session, usage = output.get("session"), output.get("usage")
    if session is None or usage is None or not usage.get("is_cumulative"):
        return known
    newest = SessionTotals.model_validate({"session": session, "usage": usage}, strict=False)
    return (*(each for each in known if each.session != session), newest)[-_MOST_SESSIONS:]


LAST_CHECK = worktree_view(LastCheck, LastCheckFold, (CheckMade,), "check", b'"type":"check_made"')
