"""What a layer takes from the confidence: points, with the sentence that says why."""

from collections.abc import Iterable
from typing import NamedTuple

from guard.core.base.text import shortened, valid, visible
from guard.core.events.validation import ScoreLine

BLOCKING = -0.55
"""One blocking issue alone leaves less than half."""
FAILED = -0.35
"""What alone is enough not to be believed."""
_LONGEST_SENTENCE = 480
_LONGEST_NAME = 160


class Deduction(NamedTuple):
    """One line of the arithmetic, and whether it blocks."""

    points: float
    why: str
    blocking: bool = False


def warned(points: float, why: str) -> Deduction:
    """A deduction with a sentence that fits into a line, whatever names are in it."""
    return Deduction(points, shortened(visible(why), _LONGEST_SENTENCE))


def blocked(why: str) -> Deduction:
    """A deduction for what stands against the claim."""
    return warned(BLOCKING, why)._replace(blocking=True)


def score_lines(deductions: Iterable[Deduction]) -> tuple[ScoreLine, ...]:
    """The deductions as the result has them."""
    return tuple(ScoreLine(points=one.points, why=one.why) for one in deductions)


def name(text: str) -> str:
    """A name from outside, short enough that a sentence holds three."""
    return shortened(valid(text), _LONGEST_NAME)


def names(texts: Iterable[str], most: int = 50) -> tuple[str, ...]:
    """The first of some names."""
    return tuple(name(text) for text, _ in zip(texts, range(most), strict=False))
