"""One look at one agent: all that is seen of it, how far one looks back for it, and what follows."""

from dataclasses import dataclass
from datetime import datetime

from guard.activity.collecting import Collected, collect
from guard.activity.subject import Subject
from guard.core.activity.assessment import Assessment, Terms, assess
from guard.core.activity.gaps import oldest
from guard.core.activity.lookbacks import AgentTerms, Known, Lookback, lookback, parsed_agent_terms
from guard.core.activity.noise import NOISE_PATTERNS
from guard.core.activity.patterns import split
from guard.core.activity.rhythm import Rhythm, rhythm
from guard.core.lifecycle import ACTIVE

HISTORY_MINUTES = 7 * 24 * 60
"""How far back an agent's rhythm is looked for."""


@dataclass(frozen=True)
class Look:
    """What one look found."""

    assessment: Assessment
    collected: Collected
    terms: Terms
    lookback: Lookback
    rhythm: Rhythm

    @property
    def last_seen(self) -> datetime | None:
        """The newest sign of the agent, however old."""
        return self.collected.last_seen


def look(subject: Subject, *, option: float | None = None, all_sources: bool = False) -> Look:
    """Look at an agent. What its older signs tell of its rhythm decides how far back the newer ones count."""
    single = parsed_agent_terms(subject.settings.agent_terms).get(subject.agent.agent_id)
    first = lookback(_known(subject, option, single, None))
    if subject.agent.status not in ACTIVE:
        return _over(subject, first)
    seen = collect(subject, _terms(subject, first, single), all_sources=all_sources)
    found = rhythm_of(subject, seen)
    back = lookback(_known(subject, option, single, found))
    terms = _terms(subject, back, single)
    since = oldest(subject.now, back.minutes, subject.gaps)
    assessment = assess((one for one in seen.signals if one.at >= since), subject.now, terms)
    return Look(_explained(assessment, back), seen, terms, back, found)


def rhythm_of(subject: Subject, seen: Collected) -> Rhythm:
    """The rhythm in all that is known of its past; pauses that a prompt ended are not its own."""
    sent = subject.watched.resumes if subject.watched is not None else ()
    needed = [one.at for one in sent if not one.false_alarm]
    return rhythm(seen.history, subject.settings.max_lookback_minutes, needed)


def _known(
    subject: Subject, option: float | None, single: AgentTerms | None, found: Rhythm | None
) -> Known:
    settings, watched = subject.settings, subject.watched
    return Known(
        general=settings.lookback_minutes,
        most=settings.max_lookback_minutes,
        option=option,
        setting=single.lookback_minutes if single is not None else None,
        learned=watched.learned_lookback_minutes if watched is not None else None,
        rhythm=found if settings.adaptive else None,
    )


def _terms(subject: Subject, back: Lookback, single: AgentTerms | None) -> Terms:
    settings = subject.settings
    least = single.min_confidence if single is not None else None
    return Terms(
        lookback_minutes=back.minutes,
        min_confidence=settings.min_confidence if least is None else least,
        noise_patterns=(*NOISE_PATTERNS, *split(settings.noise_patterns)),
        pace=back.pace,
        gaps=subject.gaps,
    )


def _explained(found: Assessment, back: Lookback) -> Assessment:
    """A look-back that is the agent's own is a reason like others."""
    if back.origin in ("option", "general"):
        return found
    why = f"{back.why}: looked back {back.minutes:g} min"
    return found.model_copy(update={"reasons": (*found.reasons[:-1], why, found.reasons[-1])})


def _over(subject: Subject, back: Lookback) -> Look:
    """Whoever has ended is not at work, whatever happens where it was."""
    found = assess((), subject.now, Terms())
    found = found.model_copy(update={"reasons": (f"it has ended: {subject.agent.status}",)})
    empty = Collected((), ())
    return Look(found, empty, _terms(subject, back, None), back, rhythm((), 0))
