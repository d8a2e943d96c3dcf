"""An agent's own rhythm: how long it is usually quiet between two signs of its work.

Signs in quick succession are one burst; only the quiet between bursts tells how long a silence may last. Quiet that a prompt
ended, or that lasted longer than one ever looks back (a night), is not the agent's rhythm.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import pairwise
from math import ceil
from typing import Annotated, Literal

from pydantic import Field

from guard.core.base.fields import Count, Frozen

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


def asked_minutes(found: Rhythm) -> float | None:
    """How far one has to look back for an agent of this rhythm; None if it does not tell."""
    return None if found.quiet_minutes is None else ceil(found.quiet_minutes * MARGIN)


def _quantile(ordered: Sequence[float], share: float) -> float:
    """The nearest rank: a value that occurred."""
    return ordered[max(0, ceil(share * len(ordered)) - 1)]
