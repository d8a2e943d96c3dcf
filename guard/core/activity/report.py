"""The report of `guard activity`, as a document and as text."""

from collections.abc import Iterator
from datetime import datetime
from typing import Literal

from pydantic import Field

from guard.core.activity.assess import Level, Share, Signal
from guard.core.activity.judge import Judgement
from guard.core.activity.lookback import Origin, Rhythm
from guard.core.activity.sources import AnySource, Tier, find_source
from guard.core.activity.state import FalseAlarm, WatchedAgent
from guard.core.agents.agent import Agent
from guard.core.agents.events import AgentStatus
from guard.core.base.fast_models import entry_from
from guard.core.base.fields import Count, Frozen, Id, Instant, Line, Report
from guard.core.base.text import escape, plural


class ShownSignal(Frozen):
    """One sign that counts, with what its source is worth by itself."""

    source: AnySource
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
    """The signs that did not count, and why."""
    passed_over_more: Count
    warnings: tuple[Line, ...]
    """The sources that could not be read."""
    lookback_minutes: float
    lookback_origin: Origin
    """What decided the look-back: an option, the settings of this agent, a lesson, its rhythm, or the general settings."""
    lookback_why: Line
    min_confidence: Share
    last_seen: Instant | None
    """The newest sign, even if it is too old to count."""
    rhythm: Rhythm
    total_resumes: Count
    """How many prompts the agent was sent."""
    false_alarms: tuple[FalseAlarm, ...]
    """The prompts that proved needless."""


_MOST_PASSED_OVER = 20


def activity_report(
    agent: Agent,
    seen: Judgement,
    watched: WatchedAgent | None,
    *,
    warnings: tuple[str, ...],
    last_seen: datetime | None,
) -> ActivityReport:
    found = seen.assessment
    shortened = {
        "signals": tuple(map(_show_signal, found.signals)),
        "passed_over": found.passed_over[:_MOST_PASSED_OVER],
    }
    return ActivityReport(
        task_id=agent.task_id,
        agent_id=agent.agent_id,
        status=agent.status,
        **{**dict(found), **shortened},
        passed_over_more=max(0, len(found.passed_over) - _MOST_PASSED_OVER),
        warnings=warnings,
        lookback_minutes=seen.lookback.minutes,
        lookback_origin=seen.lookback.origin,
        lookback_why=seen.lookback.why,
        min_confidence=seen.terms.min_confidence,
        last_seen=last_seen,
        rhythm=seen.rhythm,
        total_resumes=watched.total_resumes if watched is not None else 0,
        false_alarms=watched.false_alarms if watched is not None else (),
    )


def _show_signal(signal: Signal) -> ShownSignal:
    source = find_source(signal.source, signal.custom_tier)
    return entry_from(ShownSignal, signal, tier=source.tier, confidence=source.confidence)


def activity_text(report: ActivityReport) -> str:
    return "\n".join(escape(line) for line in _lines(report))


def _lines(report: ActivityReport) -> Iterator[str]:
    word = "active" if report.is_active else "not active"
    quiet = report.inactivity_minutes
    since = "no sign of activity" if quiet is None else f"last sign {quiet:.0f} min ago"
    yield f"{report.agent_id} of {report.task_id} ({report.status}): {word}, {since}"
    yield from (f"  {reason}" for reason in report.reasons)
    for signal in report.signals:
        when = f"{signal.at:%Y-%m-%d %H:%M:%S} UTC"
        yield f"  {when}  tier {signal.tier}  {signal.source} ({signal.confidence:g}): {signal.detail}"
    yield from (f"  passed over: {sign}" for sign in report.passed_over)
    if report.passed_over_more:
        yield f"  passed over: {report.passed_over_more} more"
    yield from (f"  could not tell: {warning}" for warning in report.warnings)
    yield f"  look-back {report.lookback_minutes:g} min ({report.lookback_origin}: {report.lookback_why})"
    yield f"  rhythm: {_rhythm(report.rhythm)}"
    yield from _resume_lines(report)


def _rhythm(found: Rhythm) -> str:
    if found.pattern == "too_few":
        return f"too few signs to tell ({plural(found.gaps, 'pause')})"
    quiet = (
        "" if found.quiet_minutes is None else f", quiet for up to {found.quiet_minutes:.0f} min"
    )
    return f"{found.pattern}, usually a sign every {found.usual_minutes:.0f} min{quiet}"


def _resume_lines(report: ActivityReport) -> Iterator[str]:
    if report.total_resumes:
        yield f"  {plural(report.total_resumes, 'prompt')} sent to it"
    for alarm in report.false_alarms:
        yield (
            f"  false alarm of {alarm.resumed_at:%Y-%m-%d %H:%M} UTC, after "
            f"{alarm.silence_minutes:.0f} min: {alarm.proof}; look-back "
            f"{alarm.lookback_minutes:g} min since {alarm.learned_at:%Y-%m-%d %H:%M} UTC"
        )
