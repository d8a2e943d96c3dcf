"""Choose how far to look back for one agent, from options, settings, lessons and the agent's own rhythm.

The command line decides first, then the settings of this agent, then a lesson from a false alarm or the rhythm (whichever
asks for more), then the general setting. The rhythm is how long the agent is usually quiet between two signs. Signs in quick
succession are one burst: only the quiet between bursts tells how long a silence may last. Quiet that a prompt ended, or that
is longer than any look-back (a night), is no rhythm.
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
"""Fewer pauses show no rhythm."""
LEAST_QUIET = 4
"""Fewer quiet times do not show how long they may last."""
MOST_SIGNS = 300
"""How many of the newest signs are used."""
BURST_MINUTES = 10.0
QUANTILE = 0.9
MARGIN = 1.3
_BURSTY = 3.0
"""An agent works in bursts if its longest quiet is this many times its usual pause."""
Minutes = Annotated[float, Field(ge=0)]


class Rhythm(Frozen):
    """How an agent works, as far as its past signs tell."""

    pattern: Pattern
    gaps: Count
    """How many pauses between signs this is known from."""
    usual_minutes: Minutes | None
    """The median pause."""
    quiet_minutes: Minutes | None
    """How long the agent is usually quiet at most, where that is known."""


def rhythm(
    times: Iterable[datetime], longest_minutes: float, prompted: Sequence[datetime] = ()
) -> Rhythm:
    """The rhythm in the times of an agent's signs; `prompted` are the times at which it was sent a prompt."""
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
    # The nearest rank: a value that occurred.
    return ordered[max(0, ceil(share * len(ordered)) - 1)]


@dataclass(frozen=True)
class AgentTerms:
    """What the settings have for a single agent; None where the general ones hold."""

    lookback_minutes: float | None = None
    min_confidence: float | None = None


class Lookback(Frozen):
    """How far to look back for an agent, and why so far."""

    minutes: float
    origin: Origin
    why: Line
    pace: float = 1.0
    """How much slower than usual the agent is: its signs grow old so much later."""


@dataclass(frozen=True)
class LookbackInput:
    """All that may decide the look-back."""

    general: float
    most: float = MAX_LOOKBACK_MINUTES
    option: float | None = None
    setting: float | None = None
    learned: float | None = None
    rhythm: Rhythm | None = None
    """None if the settings say that the rhythm does not count."""


def lookback(given: LookbackInput) -> Lookback:
    """Choose the look-back; a lesson or the rhythm never shortens it, and never exceeds `most`."""
    if given.option is not None:
        return Lookback(minutes=given.option, origin="option", why="asked for")
    if given.setting is not None:
        why = "the settings of this agent"
        return _own_lookback(given, given.setting, "agent_terms", why)
    bound = max(given.most, given.general)
    quiet = given.rhythm.quiet_minutes if given.rhythm is not None else None
    adapted, learned = min(ceil((quiet or 0) * MARGIN), bound), min(given.learned or 0.0, bound)
    if learned > given.general and learned >= adapted:
        return _own_lookback(given, learned, "learned", "learned from a false alarm")
    if adapted > given.general:
        why = f"its usual gaps are up to {quiet:.0f} min"
        return _own_lookback(given, adapted, "adapted", why)
    return Lookback(minutes=given.general, origin="general", why="the settings")


def _own_lookback(given: LookbackInput, minutes: float, origin: Origin, why: str) -> Lookback:
    pace = max(1.0, minutes / given.general)
    return Lookback(minutes=minutes, origin=origin, why=why, pace=pace)


@lru_cache(maxsize=8)
def parse_agent_terms(text: str) -> Mapping[str, AgentTerms]:
    """Parse terms by agent from `builder-1: lookback_minutes=180 min_confidence=0.6; docs: lookback_minutes=30`."""
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
    parse_agent_terms(text)
    return text
