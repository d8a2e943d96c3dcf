"""One look at one agent: all that is seen of it, and what follows."""

from dataclasses import dataclass
from datetime import datetime

from guard.activity.collect import Collected, collect
from guard.activity.subject import AgentSubject
from guard.core.activity.assess import assess
from guard.core.activity.file_patterns import split
from guard.core.activity.judge import Given, Judged, first_terms, judged
from guard.core.activity.lookback import parsed_agent_terms
from guard.core.activity.noise import NOISE_PATTERNS
from guard.core.agents.agent import ACTIVE

HISTORY_MINUTES = 7 * 24 * 60
"""How far back an agent's rhythm is looked for."""


@dataclass(frozen=True)
class Look(Judged):
    """What one look found."""

    collected: Collected

    @property
    def last_seen(self) -> datetime | None:
        """The newest sign of the agent, however old."""
        return self.collected.last_seen


def look(subject: AgentSubject, *, option: float | None = None, all_sources: bool = False) -> Look:
    """Look at an agent."""
    given = _given(subject, option)
    if subject.agent.status not in ACTIVE:
        return _over(subject, given)
    seen = collect(subject, first_terms(given), all_sources=all_sources)
    found = judged(seen.signals, seen.history, subject.now, given)
    return Look(**vars(found), collected=seen)


def _given(subject: AgentSubject, option: float | None) -> Given:
    settings = subject.settings
    return Given(
        general_minutes=settings.lookback_minutes,
        most_minutes=settings.max_lookback_minutes,
        min_confidence=settings.min_confidence,
        noise_patterns=(*NOISE_PATTERNS, *split(settings.noise_patterns)),
        adaptive=settings.adaptive,
        single=parsed_agent_terms(settings.agent_terms).get(subject.agent.agent_id),
        option_minutes=option,
        watched=subject.watched,
        gaps=subject.gaps,
    )


def _over(subject: AgentSubject, given: Given) -> Look:
    """Whoever has ended is not at work, whatever happens where it was."""
    found = judged((), (), subject.now, given)
    over = assess((), subject.now, found.terms)
    over = over.model_copy(update={"reasons": (f"it has ended: {subject.agent.status}",)})
    return Look(over, found.terms, found.lookback, found.rhythm, Collected((), ()))
