"""The report of one step of a workflow, and the report on what GitHub was told."""

from typing import Literal, get_args

from pydantic import Field

from guard.core.base.fields import Count, Frozen, Line, Oid, Report
from guard.core.check.report import BreakerLine, CheckReport
from guard.core.iteration.facts import Status
from guard.core.iteration.report import BaselineReport

Mode = Literal["run", "baseline", "check"]
StepStatus = Literal[Status, "begun", "breaker_open", "fault"]
STATUSES: tuple[str, ...] = get_args(StepStatus)


class StepReport(Report):
    """The result of one step of guard's action: a verdict, a baseline, or why there is neither."""

    schema_: Literal["guard/github-step/1"] = Field("guard/github-step/1", alias="schema")
    mode: Mode
    complete: bool
    status: StepStatus
    """The verdict's; `begun` after a baseline, `breaker_open` if nothing may begin, `fault` if guard could not tell."""
    reason: Line
    detail: str
    exit_code: Count
    """What guard itself would have ended with."""
    breaker: BreakerLine | None
    probe_cost_usd: float | None
    settled: bool
    """Whether no iteration is left open, so that the state can be gone on with elsewhere."""
    baseline: BaselineReport | None
    check: CheckReport | None

    @classmethod
    def without_check(
        cls, mode: Mode, status: StepStatus, reason: str, detail: str, exit_code: int
    ) -> "StepReport":
        return cls(
            mode=mode,
            complete=False,
            status=status,
            reason=reason,
            detail=detail,
            exit_code=exit_code,
            breaker=None,
            probe_cost_usd=None,
            settled=False,
            baseline=None,
            check=None,
        )


class Push(Frozen):
    """Whether guard pushed rescued commits, and where to."""

    ref: Line | None
    pushed: bool
    why: Line
    """In a word: pushed, not_asked, nothing_rescued, fork, no_token, refused."""
    detail: str


class ToldReport(Report):
    """What guard reported to GitHub about a verdict."""

    schema_: Literal["guard/github-status/1"] = Field("guard/github-status/1", alias="schema")
    repository: Line
    sha: Oid
    state: Line
    """The state of the commit status, or the conclusion of the check run."""
    status_url: str | None
    comment_url: str | None
    comment: Literal["created", "updated", "none"]
    refused: tuple[str, ...]
    """What was not permitted, where the caller can do without."""
