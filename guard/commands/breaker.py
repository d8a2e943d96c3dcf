"""`guard breaker`."""

import os
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar, get_args

import click

from guard import breaker
from guard.breaker import Outcome
from guard.context.invocation import Invocation
from guard.context.output import colour, prints_report
from guard.core.base.text import escape, plural
from guard.core.breaker.report import BreakerReport
from guard.core.check.words import status_word
from guard.core.iteration.facts import Status

T = TypeVar("T")
_OPEN = 20
_WHY = {
    "closed": "the breaker is closed",
    "cooldown_over": "the cooldown is over",
    "commit_outside": "a commit was made outside the iterations",
    "trial_returned": "the last trial decided nothing",
    "holder_gone": "the process that claimed the last trial is gone",
    "lease_over": "the lease of the last trial is over",
    "cooling_down": "the cooldown is not over",
    "trial_taken": "another process has claimed the trial",
}


@click.group("breaker")
def command() -> None:
    """Show and control the breaker, which stops a run that makes no progress."""


_of_plan = click.option(
    "--plan",
    "of_plan",
    is_flag=True,
    help="The breaker that all agents of `guard plan run` share, not that of this work tree.",
)


@command.command("show")
@_of_plan
@prints_report
def show(guard: Invocation, of_plan: bool, form: str) -> None:
    """Show the state, the counts and the history; claim nothing."""
    guard.check_config()
    report = breaker.show(guard, of_plan=of_plan)
    guard.output.document(report, form, lambda found: _text(found, history=True))


@command.command("allow")
@click.option(
    "--pid",
    type=click.IntRange(min=1),
    metavar="N",
    help="The process that claims the trial; by default the one that called guard.",
)
@prints_report
def allow(guard: Invocation, pid: int | None, form: str) -> int:
    """Tell whether an iteration may begin.

    Exit code 0 if it may, 20 if the breaker is open. After its cooldown, or at once after a commit from outside, an
    open breaker allows one trial. The trial is claimed for the process that called guard, until that process ends,
    its lease is over, or `guard breaker record` reports the result.
    """
    guard.check_config()
    report = breaker.claim_trial(guard, pid or os.getppid())
    guard.output.verdict(report, form, _answer)
    return 0 if report.allowed else _OPEN


@command.command("record")
@click.option(
    "--status",
    required=True,
    type=click.Choice(get_args(Status)),
    help="The status of the iteration, as `guard check` prints it.",
)
@click.option(
    "--reason",
    default="",
    metavar="WORD",
    help="The reason of the iteration, as `guard check` prints it.",
)
@click.option(
    "--fingerprint",
    default="",
    metavar="TEXT",
    help="A text that identifies the error, if there was one.",
)
@click.option("--denied", is_flag=True, help="The iteration ended because permissions were denied.")
@click.option("--rescued", is_flag=True, help="Work of the iteration had to be rescued.")
@prints_report
def record(guard: Invocation, /, form: str, **outcome: Any) -> None:
    """Record how an iteration ended.

    For loops of your own; `guard run` does it by itself. `timeout` raises the streak that opens the breaker,
    `complete` resets it. The exit code is 0 even if the breaker opens: ask `guard breaker allow`.
    """
    _change(guard, form, breaker.record_outcome, Outcome(**outcome))


@command.command("trip")
@click.option("--reason", default="tripped", show_default=True, metavar="WORD", help="The reason.")
@prints_report
def trip(guard: Invocation, reason: str, form: str) -> None:
    """Open the breaker by hand."""
    _change(guard, form, breaker.trip, reason)


@command.command("reset")
@click.option("--reason", default="reset", show_default=True, metavar="WORD", help="The reason.")
@_of_plan
@prints_report
def reset(guard: Invocation, reason: str, of_plan: bool, form: str) -> None:
    """Close the breaker by hand, and set every count to zero."""
    guard.check_config()
    breaker.reset(guard, reason, of_plan=of_plan)
    guard.output.document(breaker.show(guard, of_plan=of_plan), form, _text)


def _change(
    guard: Invocation, form: str, change: Callable[[Invocation, T], object], value: T
) -> None:
    guard.check_config()
    change(guard, value)
    guard.output.document(breaker.show(guard), form, _text)


def _answer(report: BreakerReport) -> str:
    word = colour("allowed", "ok") if report.allowed else colour("not allowed", "problem")
    return f"{word}: {_WHY[report.permission]}\n{_text(report)}"


def _text(report: BreakerReport, *, history: bool = False) -> str:
    lines = [_state(report), f"counts: {_counts(report)}"]
    if history or report.refuted_streak:
        lines.append(f"refuted: {_refuted(report)}")
    if history:
        lines += [
            f"{_time(entry.at)}  {entry.what:18}  {status_word(entry.status or ''):11}  "
            f"{'' if entry.reason == entry.status else status_word(entry.reason)}".rstrip()
            for entry in report.history
        ]
    return "\n".join(escape(line) for line in lines)


def _state(report: BreakerReport) -> str:
    if report.state == "closed" or report.opened_at is None:
        return report.state
    since = f"{report.state}: {report.reason}; since {_time(report.opened_at)}"
    if report.allowed or report.retry_at is None:
        return f"{since}; a trial may begin" if report.allowed else since
    return f"{since}; next trial at {_time(report.retry_at)}; `guard breaker reset` closes it"


def _counts(report: BreakerReport) -> str:
    error = f", {report.fingerprint_count} times {report.fingerprint[:80]}"
    return (
        f"{report.streak} without commits, {report.nothing_to_do_streak} with nothing to do, "
        f"{report.rescue_streak} rescued, {report.denied_streak} denied"
        f"{error if report.fingerprint_count else ''}"
    )


def _refuted(report: BreakerReport) -> str:
    streak, limit = report.refuted_streak, report.refuted_limit
    found = f"{plural(streak, 'iteration') if streak else 'no iteration'} in a row"
    if not limit:
        return f"{found}; no number of them opens the breaker (breaker.refuted_limit = 0)"
    return f"{found}; the breaker opens at {limit} (breaker.refuted_limit)"


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
