"""Decide after each iteration, from its verdict and the task file, whether a loop goes on, waits or ends."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from guard.core.check.report import EXIT_OF, CheckReport
from guard.core.cost.budget import BudgetEnd, Spending, spend

AFTER_RESET = timedelta(minutes=1)
"""A limit is asked about a minute after its reset, never before."""
_OF_THE_SERVICE = frozenset({"outage", "overloaded"})
"""Reasons that concern no account."""
_STILL_ALIVE = ("alive", "team", "agent_alive")
_ALIVE_SECONDS = 10.0
_FIRST_BACKOFF_SECONDS = 60.0
_MOST_BACKOFF_SECONDS = 900.0


End = Literal[
    "tasks_done",
    "nothing_to_do",
    "max_iterations",
    "max_time",
    "blocked",
    "breaker_open",
    "stopped",
    "fault",
    BudgetEnd,
]


@dataclass(frozen=True, slots=True)
class Next:
    """Go on after so many seconds, or end with a reason and an exit code."""

    ends: End | None
    code: int = 0
    seconds: float = 0


@dataclass(frozen=True, slots=True)
class LoopLimits:
    """The limits at which a loop ends, whatever the verdicts are."""

    max_iterations: int | None = None
    max_seconds: float | None = None


def before_iteration(
    limits: LoopLimits,
    iterations: int,
    elapsed: float,
    open_tasks: int | None,
    last: int,
    unsaved: bool = False,
    unproven: bool = False,
    budget: BudgetEnd | None = None,
) -> Next | None:
    """Decide whether the loop ends before the next iteration; `last` is the exit code of the newest verdict.

    `unsaved` says that its iteration left work uncommitted: then the ticked boxes may be a claim, and its verdict stands.
    A `budget` that is used up is a limit of the user's, whatever the last verdict was: what is left is still to be worked on.
    Work that is `unproven`, because it was refuted or a proof is required, is not done, whatever boxes are ticked.
    """
    if open_tasks == 0 and not unproven:
        return Next("tasks_done", last if unsaved else 0)
    if limits.max_iterations is not None and iterations >= limits.max_iterations:
        return Next("max_iterations", last)
    if limits.max_seconds is not None and elapsed >= limits.max_seconds:
        return Next("max_time", last)
    if budget is not None:
        return Next(budget, EXIT_OF["working"])
    return None


def count_spending(reports: Sequence[CheckReport]) -> Spending:
    """Add up what the iterations used; of several verdicts on one iteration the last one counts."""
    newest = {(report.run, report.iteration): report for report in reports}
    return spend((report.usage, has_progress(report)) for report in newest.values())


def has_progress(report: CheckReport) -> bool:
    """Tell whether the iteration brought new work, which is proven where there is a command."""
    is_new = report.new_commits > 0 or report.rescued_commits > 0
    is_held = report.proof is None or report.proof.result == "proven"
    return is_new and is_held and report.status != "refuted"


def count_iterations(reports: Sequence[CheckReport], is_last_open: bool) -> int:
    """Return how many iterations count for `max_iterations`: neither a limit, which the loop waits out, nor an open one."""
    statuses = {(report.run, report.iteration): report.status for report in reports}
    if reports and is_last_open:
        del statuses[reports[-1].run, reports[-1].iteration]
    return sum(status != "limited" for status in statuses.values())


def after_iteration(report: CheckReport, now: datetime, limited: int, has_tasks: bool) -> Next:
    """Decide what the verdict means for the loop; `limited` is how many verdicts in a row were limits."""
    code = EXIT_OF[report.status]
    if report.status == "blocked":
        return Next("blocked", code)
    if report.reason == "nothing_to_do" and not has_tasks:
        return Next("nothing_to_do", code)
    if report.status == "limited" or report.retry_at is not None:
        return Next(None, code, _seconds_to_wait(report.retry_at, now, limited))
    if report.reason in _STILL_ALIVE:
        return Next(None, code, _ALIVE_SECONDS)
    return Next(None, code)


def account_pause(report: CheckReport, now: datetime) -> float:
    """Return for how many seconds all who share the account have to pause; 0 if the verdict tells of no limit of it."""
    if report.retry_at is None or report.reason in _OF_THE_SERVICE:
        return 0.0
    return max(0.0, (report.retry_at + AFTER_RESET - now).total_seconds())


def _seconds_to_wait(retry_at: datetime | None, now: datetime, limited: int) -> float:
    # A limit that goes on after its own end is asked about less and less often: limits use up no iterations.
    if retry_at is not None:
        left = max(0.0, (retry_at + AFTER_RESET - now).total_seconds())
        return max(left, _backoff_seconds(limited - 1)) if limited > 1 else left
    return _backoff_seconds(limited)


def _backoff_seconds(times: int) -> float:
    return float(min(_MOST_BACKOFF_SECONDS, _FIRST_BACKOFF_SECONDS * 2 ** min(10, times - 1)))
