"""Assess whether an agent is at work from the signs of its activity, with the arithmetic.

A sign counts while it is younger than the window of its tier. A sign with a time in the future proves nothing, because a
clock or a file can be set: it is passed over and reported.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import Field

from guard.core.activity.clocks import Gap, age, uncounted_time
from guard.core.activity.noise import NOISE_PATTERNS, is_noise
from guard.core.activity.sources import (
    LOOKBACK_MINUTES,
    WINDOWS,
    AnySource,
    Tier,
    find_source,
    window_seconds,
)
from guard.core.base.fields import Frozen, Instant, Line
from guard.core.base.text import plural

MIN_CONFIDENCE = 0.5
CONSISTENT_HOURS = 24
CLOCK_SKEW = timedelta(minutes=2)
"""How far the clocks of one fleet may differ."""
_HALF_HOUR, _HOUR = 30, 60
_PENALTIES = ((_HOUR, 0.7), (_HALF_HOUR, 0.85))

Level = Literal["VERY_HIGH", "HIGH", "MEDIUM", "LOW", "NONE"]
_ROWS: tuple[tuple[Tier, int, float, Level], ...] = (
    (1, 2, 0.9, "VERY_HIGH"),
    (1, 1, 0.7, "HIGH"),
    (2, 2, 0.7, "HIGH"),
    (2, 1, 0.5, "MEDIUM"),
    (3, 1, 0.3, "LOW"),
)
"""Tier, least number of different sources of it, and what they are worth together."""
Share = Annotated[float, Field(ge=0, le=1)]


class Signal(Frozen):
    """One sign that an agent may be at work."""

    source: AnySource
    at: Instant
    detail: Line
    """What was seen."""
    message: str = ""
    """The agent's words, where the sign is a message: they may be noise."""
    custom_tier: Tier | None = None
    """The tier of a plugin's source."""

    @property
    def tier(self) -> Tier:
        return find_source(self.source, self.custom_tier).tier


class ActivityTerms(Frozen):
    """The look-back, the least confidence and the noise patterns that an agent is assessed by."""

    lookback_minutes: Annotated[float, Field(gt=0, le=60 * 24 * 30)] = LOOKBACK_MINUTES
    min_confidence: Share = MIN_CONFIDENCE
    windows: tuple[float, float, float] = WINDOWS
    """For how many seconds signs of each tier count, with the usual look-back."""
    noise_patterns: tuple[str, ...] = NOISE_PATTERNS
    pace: Annotated[float, Field(ge=1)] = 1.0
    """How much slower than usual the agent is: penalties for old signs begin so much later."""
    gaps: tuple[Gap, ...] = ()
    """Time that does not count as silence."""


class Assessment(Frozen):
    """Whether an agent is at work, how surely, and why."""

    is_active: bool
    confidence: Share
    level: Level
    last_activity: Instant | None
    inactivity_minutes: Annotated[float, Field(ge=0)] | None
    signals: tuple[Signal, ...]
    """The signs that count, the newest first."""
    passed_over: tuple[Line, ...]
    """The signs that do not count, and why."""
    validation_passed: bool
    reasons: tuple[Line, ...]


def assess(signals: Iterable[Signal], now: datetime, terms: ActivityTerms) -> Assessment:
    counting, passed_over = _sift(signals, now, terms)
    base, level, why = _confidence(counting)
    penalty, penalised = _penalty(counting, now, terms)
    confidence = round(base * penalty, 4)
    level = level if penalty == 1.0 else _level(confidence)
    failed = _failed_rules(counting, now, terms)
    last = counting[0].at if counting else None
    quiet = max(0.0, _minutes(age(last, now, terms.gaps))) if last is not None else None
    active = bool(counting) and not failed and confidence >= terms.min_confidence
    return Assessment(
        is_active=active,
        confidence=confidence,
        level=level,
        last_activity=last,
        inactivity_minutes=round(quiet, 2) if quiet is not None else None,
        signals=tuple(counting),
        passed_over=tuple(passed_over),
        validation_passed=bool(counting) and not failed,
        reasons=(
            *why,
            *penalised,
            *_gap_note(last, now, terms),
            *failed,
            _verdict(active, confidence, terms),
        ),
    )


def _sift(
    signals: Iterable[Signal], now: datetime, terms: ActivityTerms
) -> tuple[list[Signal], list[str]]:
    counting, passed_over = [], []
    for signal in signals:
        why = rejection(signal, now, terms)
        if why is None:
            counting.append(signal)
        else:
            passed_over.append(f"{signal.source}: {signal.detail}: {why}"[:512])
    counting.sort(key=lambda sign: sign.at, reverse=True)
    return counting, passed_over


def rejection(signal: Signal, now: datetime, terms: ActivityTerms) -> str | None:
    """Why a sign does not count; None if it does."""
    old = age(signal.at, now, terms.gaps)
    if old < -CLOCK_SKEW:
        return f"its time is {_minutes(-old):.0f} min in the future"
    if is_noise(signal.message, terms.noise_patterns):
        return "noise"
    window = window_seconds(signal.tier, terms.lookback_minutes, terms.windows)
    if old.total_seconds() > window:
        return f"older than {window / 60:g} min"
    return None


def _confidence(signals: Sequence[Signal]) -> tuple[float, Level, list[str]]:
    # Several signs of one source count as one; the first row that applies wins.
    named: dict[Tier, list[str]] = {1: [], 2: [], 3: []}
    for signal in signals:
        if signal.source not in named[signal.tier]:
            named[signal.tier].append(signal.source)
    for tier, least, confidence, level in _ROWS:
        if len(named[tier]) >= least:
            count, sources = plural(len(named[tier]), "source"), ", ".join(named[tier])
            return confidence, level, [f"{count} of tier {tier} ({sources}): {confidence}"]
    return 0.0, "NONE", ["no sign of activity"]


def _level(confidence: float) -> Level:
    # A penalty may lead to a value between two rows: then the lower row names the level.
    rows = ((least, level) for _tier, _count, least, level in _ROWS)
    return next(
        (level for least, level in rows if confidence >= least), "NONE" if not confidence else "LOW"
    )


def _penalty(
    signals: Sequence[Signal], now: datetime, terms: ActivityTerms
) -> tuple[float, list[str]]:
    quiet = _minutes(age(signals[0].at, now, terms.gaps)) if signals else 0.0
    for minutes, factor in _PENALTIES:
        if quiet > minutes * terms.pace:
            return factor, [f"the newest is {quiet:.0f} min old: × {factor}"]
    return 1.0, []


def _failed_rules(signals: Sequence[Signal], now: datetime, terms: ActivityTerms) -> list[str]:
    """The rules that the signs break; signs must be close in time, recent, and not all of tier 3."""
    if not signals:
        return []
    failed = []
    newest, oldest = (age(signals[place].at, now, terms.gaps) for place in (0, -1))
    if oldest - newest > timedelta(hours=CONSISTENT_HOURS):
        failed.append(f"the signs are more than {CONSISTENT_HOURS} hours apart")
    if _minutes(newest) > terms.lookback_minutes:
        failed.append(f"none of the last {terms.lookback_minutes:g} min")
    if all(signal.tier == 3 for signal in signals):
        failed.append("none of tier 1 or 2")
    return failed


def _gap_note(last: datetime | None, now: datetime, terms: ActivityTerms) -> list[str]:
    spared = _minutes(uncounted_time(last, now, terms.gaps)) if last is not None else 0.0
    return (
        [f"{spared:.0f} min are not counted: the machine slept, or its clock was set"]
        if spared >= 1
        else []
    )


def is_real(signal: Signal, now: datetime, terms: ActivityTerms) -> bool:
    """Whether a sign was valid at its time, however long ago: no noise, and not in the future."""
    return signal.at - now <= CLOCK_SKEW and not is_noise(signal.message, terms.noise_patterns)


def _verdict(active: bool, confidence: float, terms: ActivityTerms) -> str:
    if active:
        return f"active: {confidence:g} is at least {terms.min_confidence:g}"
    if confidence < terms.min_confidence:
        return f"not active: {confidence:g} is below {terms.min_confidence:g}"
    return "not active: the signs do not confirm each other"


def _minutes(span: timedelta) -> float:
    return span.total_seconds() / 60
