"""The notices that follow from a verdict and from the end of a loop, in words that are safe to send."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Literal

from pydantic import Field

from guard.core.base.fields import Count, Frozen, Id, Instant, Line, Report
from guard.core.base.text import escape, fit_line
from guard.core.check.report import CheckReport
from guard.core.check.words import status_word
from guard.core.rescue.secrets import find_secrets

NoticeKind = Literal["blocked", "breaker", "refuted", "limit", "ended", "budget", "test"]
_REFUTED_TIMES = 2
_LONGEST = 400


class Notice(Frozen):
    """What a person is to know, before it is made safe to send."""

    kind: NoticeKind
    about: str
    """What the notice is about: it is sent once."""
    title: str
    text: str
    run: Id | None = None
    iteration: Count | None = None

    @property
    def event_id(self) -> str:
        """Return the id of the event that remembers it."""
        return f"notice-{sha256(f'{self.kind} {self.about}'.encode()).hexdigest()[:32]}"


class NoticeReport(Report):
    """A notice, as programs and webhooks get it."""

    schema_: Literal["guard/notice/1"] = Field("guard/notice/1", alias="schema")
    kind: NoticeKind
    title: Line
    text: Line
    repository: Line
    """The name of the work tree's folder."""
    run: Id | None
    iteration: Count | None
    at: Instant


def make_safe(notice: Notice, repository: str, at: datetime) -> NoticeReport:
    """Return the notice without secrets and without control characters."""
    name = _safe(repository)
    return NoticeReport(
        kind=notice.kind,
        title=fit_line(f"{name}: {_safe(notice.title)}", _LONGEST),
        text=_safe(notice.text),
        repository=name,
        run=notice.run,
        iteration=notice.iteration,
        at=at,
    )


def _safe(text: str) -> str:
    data = " ".join(text.split()).encode(errors="replace")
    for secret in sorted(set(find_secrets(data)), key=lambda found: -len(found.value)):
        data = data.replace(secret.value, f"[{secret.rule}]".encode())
    return fit_line(escape(data.decode(errors="replace")), _LONGEST)


def notices_of_verdict(
    report: CheckReport,
    refuted_streak: int,
    limited_since: datetime | None,
    now: datetime,
    limit_minutes: float,
) -> Iterator[Notice]:
    """Yield what a person is to know of an iteration; `limited_since` is when the first of the limits in a row came."""
    about = f"{report.run} {report.iteration}"
    words = f"{status_word(report.status)}: {report.reason}: {report.detail}"

    def notice(kind: NoticeKind, title: str, text: str, about: str = about) -> Notice:
        run, number = report.run, report.iteration
        return Notice(kind=kind, about=about, title=title, text=text, run=run, iteration=number)

    if report.status == "blocked":
        yield notice("blocked", "a person is needed", words)
    if report.breaker.state == "open":
        why = report.breaker.reason or report.reason
        yield notice("breaker", "the breaker is open", f"{why}; the last verdict: {words}")
    if report.status == "refuted" and refuted_streak == _REFUTED_TIMES:
        yield notice("refuted", "the work was refuted twice in a row", words)
    if report.status == "limited":
        begun = limited_since or now
        until = max(now, report.retry_at or now)
        if until - begun > timedelta(minutes=limit_minutes):
            known = f"until {until:%Y-%m-%d %H:%M} UTC" if until > now else "with no end known"
            title = f"limited {known}"
            yield notice("limit", title, words, f"{report.run} {begun.isoformat()}")


def notice_of_end(run: str | None, reason: str, iterations: int, commits: int) -> Notice:
    """Return the notice that a loop has ended."""
    return Notice(
        kind="ended",
        about=f"{run} {reason}",
        title=f"the loop has ended: {reason}",
        text=f"{iterations} iterations, {commits} new commits",
        run=run,
    )


def notice_of_budget(about: str, name: str, spent: str, run: str | None = None) -> Notice:
    """Return the notice that 80 % of a budget are used up."""
    title = f"80 % of {name} is used up"
    return Notice(kind="budget", about=f"{about} {name}", title=title, text=spent, run=run)


def notice_of_person(about: str, words: str) -> Notice:
    """Return the notice that the plan cannot go on without a person."""
    return Notice(kind="blocked", about=about, title="a person is needed", text=words)


def notice_of_plan_breaker(about: str, reason: str) -> Notice:
    """Return the notice that the breaker opened that all agents of a plan share."""
    return Notice(kind="breaker", about=about, title="the breaker of the plan is open", text=reason)


def notice_of_plan_end(about: str, reason: str, landed: str) -> Notice:
    """Return the notice that a run of the plan has ended."""
    title = f"the run of the plan has ended: {reason}"
    return Notice(kind="ended", about=f"{about} {reason}", title=title, text=landed)


TEST = Notice(kind="test", about="test", title="a test notice", text="notices of guard arrive here")


class Delivery(Frozen):
    """Whether a notice went out on one of the ways that are set."""

    way: Literal["command", "url", "services"]
    sent: bool
    detail: str


class NotifyReport(Report):
    """What became of a test notice."""

    schema_: Literal["guard/notify/1"] = Field("guard/notify/1", alias="schema")
    deliveries: tuple[Delivery, ...]
