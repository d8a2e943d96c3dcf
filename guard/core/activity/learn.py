"""What is learned from a prompt that was not needed.

A prompt is a false alarm if a sign of the first tier turns up that is dated before it, but was not known when it was sent: a
commit that was fetched later, an event that was written late. What happens after the prompt proves nothing, because the
prompt may have caused it; only a person can tell that. Each prompt teaches once.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from guard.core.activity.assess import CLOCK_SKEW, Signal
from guard.core.activity.noise import is_noise
from guard.core.activity.state import SentResume, WatchedAgent
from guard.core.base.fields import Frozen, Instant, Line

FACTOR = 1.5
"""How far one looks back beside the silence that was taken for a stall."""


class Lesson(Frozen):
    """One prompt that was not needed, and what follows."""

    resumed_at: Instant
    proof: Line
    silence_minutes: float
    lookback_minutes: float


def lesson_from_signs(
    watched: WatchedAgent,
    incarnation: int,
    signals: Iterable[Signal],
    most_minutes: float,
    patterns: tuple[str, ...],
) -> Lesson | None:
    """What the signs that are known now say of the prompts that were sent to this agent; the newest that teaches."""
    known = [one for one in signals if one.tier == 1 and not is_noise(one.message, patterns)]
    for sent in reversed(watched.resumes):
        if sent.incarnation != incarnation or not _teaches(watched, sent):
            continue
        proofs = [one for one in known if _proves(one.at, sent)]
        if proofs:
            newest = max(proofs, key=lambda one: one.at)
            proof = f"{newest.source} at {newest.at:%Y-%m-%d %H:%M:%S} UTC: {newest.detail}"
            return _lesson(watched, sent, proof, most_minutes)
    return None


def lesson_from_person(
    watched: WatchedAgent | None, reason: str, most_minutes: float
) -> Lesson | None:
    """The newest prompt, which a person calls a false alarm; None if there is none that can still teach."""
    sent = watched.resumes[-1] if watched is not None and watched.resumes else None
    if watched is None or sent is None or not _teaches(watched, sent):
        return None
    return _lesson(
        watched, sent, f"said by a person{f': {reason}' if reason else ''}", most_minutes
    )


def _teaches(watched: WatchedAgent, sent: SentResume) -> bool:
    """Once, and not after what was learned until then was forgotten."""
    forgotten = watched.forgotten_at
    return not sent.false_alarm and (forgotten is None or sent.at > forgotten)


def _proves(at: datetime, sent: SentResume) -> bool:
    """In the time that was looked at, later than what was known of it; clocks may differ a little."""
    since = sent.at - timedelta(minutes=sent.lookback_minutes)
    if sent.last_activity is not None:
        since = max(since, sent.last_activity + timedelta(seconds=1))
    return since <= at < sent.at - CLOCK_SKEW


def _lesson(watched: WatchedAgent, sent: SentResume, proof: str, most_minutes: float) -> Lesson:
    quiet = sent.lookback_minutes
    if sent.last_activity is not None:
        quiet = max(0.0, (sent.at - sent.last_activity).total_seconds() / 60)
    before = max(sent.lookback_minutes, watched.learned_lookback_minutes or 0.0)
    wanted = max(before, quiet * FACTOR)
    return Lesson(
        resumed_at=sent.at,
        proof=proof[:512],
        silence_minutes=round(quiet, 2),
        lookback_minutes=round(min(wanted, max(most_minutes, before)), 2),
    )
