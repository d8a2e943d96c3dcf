"""Judge one agent by its signs: find its rhythm, choose how far to look back, and assess it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from guard.core.activity.assess import ActivityTerms, Assessment, Signal, assess
from guard.core.activity.clocks import Gap, window_start
from guard.core.activity.lookback import (
    AgentTerms,
    Lookback,
    LookbackInput,
    Rhythm,
    lookback,
    parse_agent_terms,
    rhythm,
)
from guard.core.activity.noise import NOISE_PATTERNS
from guard.core.activity.settings import ActivitySettings, split_list
from guard.core.activity.state import WatchedAgent


@dataclass(frozen=True)
class JudgeInput:
    """The settings, options and lessons that an agent is judged by, besides its signs."""

    settings: ActivitySettings
    agent_id: str = ""
    option_minutes: float | None = None
    watched: WatchedAgent | None = None
    gaps: tuple[Gap, ...] = ()

    @property
    def agent_terms(self) -> AgentTerms:
        return parse_agent_terms(self.settings.agent_terms).get(self.agent_id, AgentTerms())


@dataclass(frozen=True)
class Judgement:
    """The verdict on one agent, with the terms, look-back and rhythm that it was made by."""

    assessment: Assessment
    terms: ActivityTerms
    lookback: Lookback
    rhythm: Rhythm


def judge(
    signals: Iterable[Signal], history: Iterable[datetime], now: datetime, given: JudgeInput
) -> Judgement:
    """Judge an agent: the rhythm of its older signs decides how far back the newer ones count."""
    sent = given.watched.resumes if given.watched is not None else ()
    # A pause that ended in a prompt that was needed is a stall, not a rhythm.
    needed = [resume.at for resume in sent if not resume.false_alarm]
    found = rhythm(history, given.settings.max_lookback_minutes, needed)
    back = lookback(_lookback_input(given, found))
    terms = _terms(given, back)
    since = window_start(now, back.minutes, given.gaps)
    assessment = assess((signal for signal in signals if signal.at >= since), now, terms)
    return Judgement(_explain_lookback(assessment, back), terms, back, found)


def initial_terms(given: JudgeInput) -> ActivityTerms:
    return _terms(given, lookback(_lookback_input(given, None)))


def _lookback_input(given: JudgeInput, found: Rhythm | None) -> LookbackInput:
    watched = given.watched
    return LookbackInput(
        general=given.settings.lookback_minutes,
        most=given.settings.max_lookback_minutes,
        option=given.option_minutes,
        setting=given.agent_terms.lookback_minutes,
        learned=watched.learned_lookback_minutes if watched is not None else None,
        rhythm=found if given.settings.adaptive else None,
    )


def _terms(given: JudgeInput, back: Lookback) -> ActivityTerms:
    settings, least = given.settings, given.agent_terms.min_confidence
    general = settings.min_confidence_threshold
    if general is None:
        general = settings.min_confidence
    return ActivityTerms(
        lookback_minutes=back.minutes,
        min_confidence=general if least is None else least,
        windows=(
            settings.tier1_window_seconds,
            settings.tier2_window_seconds,
            settings.tier3_window_seconds,
        ),
        noise_patterns=(*NOISE_PATTERNS, *split_list(settings.noise_patterns)),
        pace=back.pace,
        gaps=given.gaps,
    )


def _explain_lookback(found: Assessment, back: Lookback) -> Assessment:
    # A look-back of the agent's own is one of the reasons.
    if back.origin in ("option", "general"):
        return found
    why = f"{back.why}: looked back {back.minutes:g} min"
    return found.model_copy(update={"reasons": (*found.reasons[:-1], why, found.reasons[-1])})
