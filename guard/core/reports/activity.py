"""What `guard activity` prints."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from guard.core.activity.assessment import Assessment, Level, Share, Signal, Terms
from guard.core.activity.sources import SOURCES, SourceName, Tier
from guard.core.events.agent import AgentStatus
from guard.core.fields import Count, Frozen, Id, Instant, Line
from guard.core.reports.base import Report
from guard.core.text import visible


class ShownSignal(Frozen):
    """One sign that counts, with what its source is worth by itself."""

    source: SourceName
    tier: Tier
    confidence: Share
    at: Instant
    detail: Line


class ActivityReport(Report):
    """Whether one agent is at work, how surely, and why."""

    schema_: Literal["guard/activity/1"] = Field("guard/activity/1", alias="schema")
    task_id: Id
    agent_id: Id
    status: AgentStatus
    is_active: bool
    confidence: Share
    level: Level
    last_activity: Instant | None
    inactivity_minutes: float | None
    signals: tuple[ShownSignal, ...]
    validation_passed: bool
    reasons: tuple[Line, ...]
    passed_over: tuple[Line, ...]
    """What was seen and did not count, and why."""
    passed_over_more: Count
    warnings: tuple[Line, ...]
    """Sources that could not tell."""
    lookback_minutes: float
    min_confidence: Share


_MOST_PASSED_OVER = 20


def activity_report(
    task_id: str,
    agent_id: str,
    status: AgentStatus,
    found: Assessment,
    terms: Terms,
    warnings: tuple[str, ...],
) -> ActivityReport:
    """The assessment of one agent as a document."""
    return ActivityReport(
        task_id=task_id,
        agent_id=agent_id,
        status=status,
        is_active=found.is_active,
        confidence=found.confidence,
        level=found.level,
        last_activity=found.last_activity,
        inactivity_minutes=found.inactivity_minutes,
        signals=tuple(map(_shown, found.signals)),
        validation_passed=found.validation_passed,
        reasons=found.reasons,
        passed_over=found.passed_over[:_MOST_PASSED_OVER],
        passed_over_more=max(0, len(found.passed_over) - _MOST_PASSED_OVER),
        warnings=warnings,
        lookback_minutes=terms.lookback_minutes,
        min_confidence=terms.min_confidence,
    )


def _shown(signal: Signal) -> ShownSignal:
    source = SOURCES[signal.source]
    return ShownSignal(
        source=signal.source,
        tier=source.tier,
        confidence=source.confidence,
        at=signal.at,
        detail=signal.detail,
    )


def activity_text(report: ActivityReport) -> str:
    """The verdict, then why, then what was seen."""
    return "\n".join(visible(line) for line in _lines(report))


def _lines(report: ActivityReport) -> Iterator[str]:
    word = "active" if report.is_active else "not active"
    quiet = report.inactivity_minutes
    since = "no sign of activity" if quiet is None else f"last sign {quiet:.0f} min ago"
    yield f"{report.agent_id} of {report.task_id} ({report.status}): {word}, {since}"
    yield from (f"  {reason}" for reason in report.reasons)
    for signal in report.signals:
        when = f"{signal.at:%Y-%m-%d %H:%M:%S} UTC"
        yield f"  {when}  tier {signal.tier}  {signal.source} ({signal.confidence:g}): {signal.detail}"
    yield from (f"  passed over: {one}" for one in report.passed_over)
    if report.passed_over_more:
        yield f"  passed over: {report.passed_over_more} more"
    yield from (f"  could not tell: {one}" for one in report.warnings)
