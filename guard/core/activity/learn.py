"""Learn from a prompt that was not needed to look back further for its agent.

A prompt is a false alarm if a sign of the first tier turns up that is older than the prompt but was not known when it was
sent: a commit that was fetched later, an event that was written late. A sign after the prompt proves nothing, because the
prompt may have caused it; only a person can say so. Each prompt teaches once.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from guard.core.activity.assess import CLOCK_SKEW, Signal
from guard.core.activity.noise import is_noise
from guard.core.activity.state import SentResume, WatchedAgent
from guard.core.base.fields import Frozen, Instant, Line

FACTOR = 1.5
"""How much longer the look-back becomes than the silence that was taken for a stall."""


class Lesson(Frozen):
    """A prompt that was not needed, and the look-back that follows from it."""

    resumed_at: Instant
    proof: Line
    silence_minutes: float
    lookback_minutes: float


def lesson_from_signs(
    watched: WatchedAgent,
    incarnation: int,
    signals: Iterable[Signal],
    max_minutes: float,
    patterns: tuple[str, ...],
) -> Lesson | None:
    """The lesson of the newest prompt that a sign proves needless; None if there is none."""
    reliable = [
        signal for signal in signals if signal.tier == 1 and not is_noise(signal.message, patterns)
    ]
    for sent in reversed(watched.resumes):
        if sent.incarnation != incarnation or not _may_teach(watched, sent):
            continue
        proofs = [signal for signal in reliable if _is_proof(signal.at, sent)]
        if proofs:
            newest = max(proofs, key=lambda signal: signal.at)
            proof = f"{newest.source} at {newest.at:%Y-%m-%d %H:%M:%S} UTC: {newest.detail}"
            return _lesson(watched, sent, proof, max_minutes)
    return None


def lesson_from_person(
    watched: WatchedAgent | None, reason: str, max_minutes: float
) -> Lesson | None:
    """The lesson of the newest prompt, which a person calls a false alarm; None if it has taught already."""
    sent = watched.resumes[-1] if watched is not None and watched.resumes else None
    if watched is None or sent is None or not _may_teach(watched, sent):
        return None
    return _lesson(watched, sent, f"said by a person{f': {reason}' if reason else ''}", max_minutes)


def _may_teach(watched: WatchedAgent, sent: SentResume) -> bool:
    # A prompt teaches once, and not if the lessons of its time were forgotten.
    forgotten = watched.forgotten_at
    return not sent.false_alarm and (forgotten is None or sent.at > forgotten)


def _is_proof(at: datetime, sent: SentResume) -> bool:
    # The sign lies in the look-back of the prompt, after the last sign known then; clocks may differ a little.
    since = sent.at - timedelta(minutes=sent.lookback_minutes)
    if sent.last_activity is not None:
        since = max(since, sent.last_activity + timedelta(seconds=1))
    return since <= at < sent.at - CLOCK_SKEW


def _lesson(watched: WatchedAgent, sent: SentResume, proof: str, max_minutes: float) -> Lesson:
    quiet = sent.lookback_minutes
    if sent.last_activity is not None:
        quiet = max(0.0, (sent.at - sent.last_activity).total_seconds() / 60)
    before = max(sent.lookback_minutes, watched.learned_lookback_minutes or 0.0)
    wanted = max(before, quiet * FACTOR)
    return Lesson(
        resumed_at=sent.at,
        proof=proof[:512],
        silence_minutes=round(quiet, 2),
        lookback_minutes=round(min(wanted, max(max_minutes, before)), 2),
    )
