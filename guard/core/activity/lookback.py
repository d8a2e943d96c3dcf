"""How far one looks back for one agent, and who says so.

What is asked for on the command line decides; then what the settings have for this agent; then what was learned of it from a
false alarm, or its own rhythm, whichever asks for more; then the general setting.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import pairwise
from math import ceil
from typing import Annotated, Literal

from pydantic import Field

from guard.core.base.fields import Count, Frozen, Line

MAX_LOOKBACK_MINUTES = 480
LONGEST_MINUTES = 60 * 24 * 30
_TERM = r"(lookback_minutes|min_confidence)=[0-9]+(\.[0-9]+)?"
AGENT_TERMS_PATTERN = rf"^( *[A-Za-z0-9][A-Za-z0-9_-]*: *{_TERM}( +{_TERM})* *(;|$))* *$"
_PATTERN = re.compile(AGENT_TERMS_PATTERN)
Origin = Literal["option", "agent_terms", "learned", "adapted", "general"]
Pattern = Literal["steady", "bursty", "too_few"]
LEAST_GAPS = 8
"""Fewer tell nothing,"""
LEAST_QUIET = 4
"""nor do fewer quiet ones tell how long those may last."""
MOST_SIGNS = 300
"""So many of the newest are looked at."""
BURST_MINUTES = 10.0
QUANTILE = 0.9
MARGIN = 1.3
_BURSTY = 3.0
"""The longest quiet beside the usual gap, from which on the agent works in bursts."""
Minutes = Annotated[float, Field(ge=0)]


class Rhythm(Frozen):
    """How an agent works, as far as its past signs tell."""

    pattern: Pattern
    gaps: Count
    """How many pauses between signs this is known from."""
    usual_minutes: Minutes | None
    """The median pause;"""
    quiet_minutes: Minutes | None
    """and up to how long it is usually quiet, where it is."""


def rhythm(
    times: Iterable[datetime], longest_minutes: float, prompted: Sequence[datetime] = ()
) -> Rhythm:
    """The rhythm in the times of its own signs; `prompted` is when it was sent something."""
    moments = sorted(times)[-MOST_SIGNS:]
    gaps = [
        (after - before).total_seconds() / 60
        for before, after in pairwise(moments)
        if not prompted or not any(before <= sent <= after for sent in prompted)
    ]
    gaps = sorted(gap for gap in gaps if 0 < gap <= longest_minutes)
    if len(gaps) < LEAST_GAPS:
        return Rhythm(pattern="too_few", gaps=len(gaps), usual_minutes=None, quiet_minutes=None)
    usual, quiet = _quantile(gaps, 0.5), [gap for gap in gaps if gap > BURST_MINUTES]
    longest = _quantile(quiet, QUANTILE) if len(quiet) >= LEAST_QUIET else None
    bursty = longest is not None and longest >= _BURSTY * max(usual, 1.0)
    return Rhythm(
        pattern="bursty" if bursty else "steady",
        gaps=len(gaps),
        usual_minutes=round(usual, 2),
        quiet_minutes=round(longest, 2) if longest is not None else None,
    )


def _quantile(ordered: Sequence[float], share: float) -> float:
    """The nearest rank: a value that occurred."""
    return ordered[max(0, ceil(share * len(ordered)) - 1)]


def rhythm_minutes(found: Rhythm) -> float | None:
    """How far one has to look back for an agent of this rhythm; None if it does not tell."""
    return None if found.quiet_minutes is None else ceil(found.quiet_minutes * MARGIN)


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
class LookbackInput:
    """All that may have a say."""

    general: float
    most: float = MAX_LOOKBACK_MINUTES
    option: float | None = None
    setting: float | None = None
    learned: float | None = None
    rhythm: Rhythm | None = None
    """None where the settings do not want it to count."""


def lookback(known: LookbackInput) -> Lookback:
    """The first that has a say; what was learned or seen never shortens, and never goes beyond the most."""
    if known.option is not None:
        return Lookback(minutes=known.option, origin="option", why="asked for")
    if known.setting is not None:
        why = "the settings of this agent"
        return _own(known, known.setting, "agent_terms", why)
    bound = max(known.most, known.general)
    asked = rhythm_minutes(known.rhythm) if known.rhythm is not None else None
    adapted, learned = min(asked or 0.0, bound), min(known.learned or 0.0, bound)
    if learned > known.general and learned >= adapted:
        return _own(known, learned, "learned", "learned from a false alarm")
    if adapted > known.general and known.rhythm is not None:
        why = f"its usual gaps are up to {known.rhythm.quiet_minutes:.0f} min"
        return _own(known, adapted, "adapted", why)
    return Lookback(minutes=known.general, origin="general", why="the settings")


def _own(known: LookbackInput, minutes: float, origin: Origin, why: str) -> Lookback:
    pace = max(1.0, minutes / known.general)
    return Lookback(minutes=minutes, origin=origin, why=why, pace=pace)


@lru_cache(maxsize=8)
def parse_agent_terms(text: str) -> Mapping[str, AgentTerms]:
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


def validate_agent_terms(text: str) -> str:
    """The same text, if it can be read."""
    parse_agent_terms(text)
    return text
