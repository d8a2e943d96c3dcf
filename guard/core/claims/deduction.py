"""Define a deduction from the confidence in a claim: points and the sentence that gives the reason."""

from collections.abc import Iterable
from typing import NamedTuple

from guard.core.base.text import escape, shorten, utf8_text
from guard.core.claims.completion_validation import ScoreLine

BLOCKING = -0.55
"""One blocking issue alone leaves less than half."""
FAILED = -0.35
"""One of these alone takes the confidence below the threshold."""
_LONGEST_SENTENCE = 480
_LONGEST_NAME = 160


class Deduction(NamedTuple):
    points: float
    why: str
    blocking: bool = False


def warning(points: float, why: str) -> Deduction:
    """Make a deduction whose sentence is cut to fit into one line."""
    return Deduction(points, shorten(escape(why), _LONGEST_SENTENCE))


def blocking_issue(why: str) -> Deduction:
    return warning(BLOCKING, why)._replace(blocking=True)


def score_lines(deductions: Iterable[Deduction]) -> tuple[ScoreLine, ...]:
    return tuple(ScoreLine(points=deduction.points, why=deduction.why) for deduction in deductions)


def short_name(text: str) -> str:
    """Cut a name so that a sentence can hold three of them."""
    return shorten(utf8_text(text), _LONGEST_NAME)


def short_names(texts: Iterable[str], most: int = 50) -> tuple[str, ...]:
    return tuple(short_name(text) for text, _ in zip(texts, range(most), strict=False))
