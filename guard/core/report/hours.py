"""Tell where the hours went: each moment of a run, from its first iteration on, is counted once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from guard.core.iteration.facts import Status
from guard.core.report.document import HOURS, HoursEntry, HoursKind
from guard.core.report.night import BreakerChange, IterationFacts, KnownRun

_KINDS: dict[Status, HoursKind] = {
    "complete": "work",
    "waiting": "work",
    "working": "work",
    "refuted": "work",
    "timeout": "hangs",
    "limited": "limits",
    "blocked": "person",
    "error": "failures",
    "interrupted": "failures",
}


@dataclass(frozen=True)
class Stretch:
    """A part of a run, and what it went to."""

    run: str
    kind: HoursKind
    begin: datetime
    end: datetime
    iteration: int | None
    """None between two iterations."""

    @property
    def seconds(self) -> float:
        return (self.end - self.begin).total_seconds()


def list_stretches(
    run: KnownRun,
    iterations: Sequence[IterationFacts],
    changes: Sequence[BreakerChange],
    sent_back: dict[str, list[datetime]],
    until: datetime,
) -> list[Stretch]:
    """Return what each part of the run went to, in order; `iterations` are the run's, in order.

    `sent_back` says when the work of a task did not pass its audit. What is open goes on `until` then.
    """
    found: list[Stretch] = []
    is_refuted, at = False, iterations[0].began if iterations else run.began
    before: IterationFacts | None = None
    for each in iterations:
        if each.began > at and before is not None:
            found.append(Stretch(run.run, _gap(before, each, changes), at, each.began, None))
        begin, end = max(at, each.began), max(at, each.began, each.ended or until)
        kind = _kind(each, is_refuted, sent_back)
        found.append(Stretch(run.run, kind, begin, end, each.number))
        is_refuted = each.status == "refuted" or (is_refuted and each.status != "complete")
        before, at = each, end
    last = iterations[-1] if iterations else None
    end = run.ended or until
    if last is not None and last.status == "limited" and last.ended and end > at:
        # A limit is waited out in the run; after any other verdict the run is over, or its loop has died.
        waits_until = min(end, max(at, last.retry_at or at)) if run.ended is None else end
        found.append(Stretch(run.run, "limits", at, waits_until, None))
    return [each for each in found if each.seconds > 0]


def _kind(
    each: IterationFacts, is_refuted: bool, sent_back: dict[str, list[datetime]]
) -> HoursKind:
    if each.status is None:
        return "open"
    kind = _KINDS[each.status]
    returned = any(at <= each.began for at in sent_back.get(each.task or "", ()))
    return "rework" if kind == "work" and (is_refuted or returned) else kind


def _gap(
    before: IterationFacts, following: IterationFacts, changes: Iterable[BreakerChange]
) -> HoursKind:
    if before.status == "limited":
        return "limits"
    if before.status == "blocked":
        return "person"
    opened = [
        change
        for change in changes
        if change.worktree == following.worktree and change.at <= following.began
    ]
    # The breaker opens with the verdict, and closes with the trial that follows.
    if any(change.what == "opened" and change.at >= before.began for change in opened):
        return "breaker"
    return "between"


def sum_hours(stretches: Iterable[Stretch]) -> tuple[HoursEntry, ...]:
    """Add up the parts by what they went to; what took no time is left out."""
    sums: dict[HoursKind, float] = dict.fromkeys(HOURS, 0.0)
    for each in stretches:
        sums[each.kind] += each.seconds
    return tuple(
        HoursEntry(kind=kind, seconds=round(seconds, 3), about=HOURS[kind])
        for kind, seconds in sums.items()
        if seconds > 0
    )
