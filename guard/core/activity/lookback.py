"""How far one looks back for one agent, and who says so.

What is asked for on the command line decides; then what the settings have for this agent; then what was learned of it from a
false alarm, or its own rhythm, whichever asks for more; then the general setting.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from guard.core.activity.rhythm import Rhythm, asked_minutes
from guard.core.base.fields import Frozen, Line

MAX_LOOKBACK_MINUTES = 480
LONGEST_MINUTES = 60 * 24 * 30
_TERM = r"(lookback_minutes|min_confidence)=[0-9]+(\.[0-9]+)?"
AGENT_TERMS_PATTERN = rf"^( *[A-Za-z0-9][A-Za-z0-9_-]*: *{_TERM}( +{_TERM})* *(;|$))* *$"
_PATTERN = re.compile(AGENT_TERMS_PATTERN)
Origin = Literal["option", "agent_terms", "learned", "adapted", "general"]


@dataclass(frozen=True)
class AgentTerms:
    """What the settings have for a single agent; None where the general ones hold."""

    lookback_minutes: float | None = None
    min_confidence: float | None = None


class Lookback(Frozen):
    """How far one looks back, and why so far."""

    minutes: float
    origin: Origin
    why: Line
    pace: float = 1.0
    """How much slower than usual the agent is: what is old for others is not old for it."""


@dataclass(frozen=True)
class Known:
    """All that may have a say."""

    general: float
    most: float = MAX_LOOKBACK_MINUTES
    option: float | None = None
    setting: float | None = None
    learned: float | None = None
    rhythm: Rhythm | None = None
    """None where the settings do not want it to count."""


def lookback(known: Known) -> Lookback:
    """The first that has a say; what was learned or seen never shortens, and never goes beyond the most."""
    if known.option is not None:
        return Lookback(minutes=known.option, origin="option", why="asked for")
    if known.setting is not None:
        why = "the settings of this agent"
        return _own(known, known.setting, "agent_terms", why)
    bound = max(known.most, known.general)
    asked = asked_minutes(known.rhythm) if known.rhythm is not None else None
    adapted, learned = min(asked or 0.0, bound), min(known.learned or 0.0, bound)
    if learned > known.general and learned >= adapted:
        return _own(known, learned, "learned", "learned from a false alarm")
    if adapted > known.general and known.rhythm is not None:
        why = f"its usual gaps are up to {known.rhythm.quiet_minutes:.0f} min"
        return _own(known, adapted, "adapted", why)
    return Lookback(minutes=known.general, origin="general", why="the settings")


def _own(known: Known, minutes: float, origin: Origin, why: str) -> Lookback:
    pace = max(1.0, minutes / known.general)
    return Lookback(minutes=minutes, origin=origin, why=why, pace=pace)


@lru_cache(maxsize=8)
def parsed_agent_terms(text: str) -> Mapping[str, AgentTerms]:
    """Terms by agent from `builder-1: lookback_minutes=180 min_confidence=0.6; docs: lookback_minutes=30`."""
    if not _PATTERN.match(text):
        raise ValueError("write terms as `builder-1: lookback_minutes=180 min_confidence=0.6; ...`")
    found: dict[str, AgentTerms] = {}
    for entry in filter(str.strip, text.split(";")):
        name, _, terms = entry.partition(":")
        pairs = list(_pairs(name.strip(), terms))
        if name.strip() in found or len(dict(pairs)) < len(pairs):
            raise ValueError(f"the terms of {name.strip()} are given twice")
        found[name.strip()] = AgentTerms(**dict(pairs))
    return found


def _pairs(name: str, terms: str) -> Iterator[tuple[str, float]]:
    for term in terms.split():
        key, _, number = term.partition("=")
        value = float(number)
        most, least = (1.0, 0.0) if key == "min_confidence" else (float(LONGEST_MINUTES), 0.01)
        if not least <= value <= most:
            raise ValueError(f"{key} of {name} is not between {least:g} and {most:g}")
        yield key, value


def checked_agent_terms(text: str) -> str:
    """The same text, if it can be read."""
    parsed_agent_terms(text)
    return text
