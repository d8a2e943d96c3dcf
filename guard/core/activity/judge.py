"""One agent, judged by all that was seen of it: its rhythm, how far one looks back for it, and what follows."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from guard.core.activity.assess import MIN_CONFIDENCE, ActivityTerms, Assessment, Signal, assess
from guard.core.activity.gaps import Gap, oldest
from guard.core.activity.lookback import MAX_LOOKBACK_MINUTES, AgentTerms, Known, Lookback, lookback
from guard.core.activity.noise import NOISE_PATTERNS
from guard.core.activity.rhythm import Rhythm, rhythm
from guard.core.activity.sources import LOOKBACK_MINUTES
from guard.core.activity.watched import WatchedAgent


@dataclass(frozen=True)
class Given:
    """By what an agent is judged, besides what is seen of it."""

    general_minutes: float = LOOKBACK_MINUTES
    most_minutes: float = MAX_LOOKBACK_MINUTES
    min_confidence: float = MIN_CONFIDENCE
    noise_patterns: tuple[str, ...] = NOISE_PATTERNS
    adaptive: bool = True
    single: AgentTerms | None = None
    option_minutes: float | None = None
    watched: WatchedAgent | None = None
    gaps: tuple[Gap, ...] = ()


@dataclass(frozen=True)
class Judged:
    """The verdict on one agent, with all that it was made by."""

    assessment: Assessment
    terms: ActivityTerms
    lookback: Lookback
    rhythm: Rhythm


def judged(
    signals: Iterable[Signal], history: Iterable[datetime], now: datetime, given: Given
) -> Judged:
    """What its older signs tell of its rhythm decides how far back the newer ones count."""
    sent = given.watched.resumes if given.watched is not None else ()
    # A pause that ended in a prompt that was needed is a stall, not a rhythm.
    needed = [one.at for one in sent if not one.false_alarm]
    found = rhythm(history, given.most_minutes, needed)
    back = lookback(_known(given, found))
    terms = _terms(given, back)
    since = oldest(now, back.minutes, given.gaps)
    assessment = assess((one for one in signals if one.at >= since), now, terms)
    return Judged(_explained(assessment, back), terms, back, found)


def first_terms(given: Given) -> ActivityTerms:
    """The terms before anything is known of the agent's rhythm."""
    return _terms(given, lookback(_known(given, None)))


def _known(given: Given, found: Rhythm | None) -> Known:
    watched = given.watched
    return Known(
        general=given.general_minutes,
        most=given.most_minutes,
        option=given.option_minutes,
        setting=given.single.lookback_minutes if given.single is not None else None,
        learned=watched.learned_lookback_minutes if watched is not None else None,
        rhythm=found if given.adaptive else None,
    )


def _terms(given: Given, back: Lookback) -> ActivityTerms:
    least = given.single.min_confidence if given.single is not None else None
    return ActivityTerms(
        lookback_minutes=back.minutes,
        min_confidence=given.min_confidence if least is None else least,
        noise_patterns=given.noise_patterns,
        pace=back.pace,
        gaps=given.gaps,
    )


def _explained(found: Assessment, back: Lookback) -> Assessment:
    """A look-back that is the agent's own is a reason like others."""
    if back.origin in ("option", "general"):
        return found
    why = f"{back.why}: looked back {back.minutes:g} min"
    return found.model_copy(update={"reasons": (*found.reasons[:-1], why, found.reasons[-1])})
