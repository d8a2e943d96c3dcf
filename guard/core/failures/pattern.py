"""The record of failures that recur."""

from guard.core.base.fields import Count, Frozen, Id, Line, Text
from guard.core.base.text import shorten

MOST_CAUSES = 20


class FailurePattern(Frozen):
    """What is known about one kind of failure."""

    count: Count = 0
    tasks: tuple[Id, ...] = ()
    """Each task once, in the order in which it first failed so."""
    common_causes: tuple[Line, ...] = ()
    suggested_prevention: Text | None = None


class FailureWarning(Frozen):
    """A warning of one kind of failure that recurs."""

    type: Line
    message: Line
    prevention: Text | None
    occurrence_count: Count
    common_causes: tuple[Line, ...]


def add_occurrence(pattern: FailurePattern, task: str, cause: str | None) -> FailurePattern:
    """Return the pattern after one more occurrence, with the causes found last."""
    causes = pattern.common_causes
    if cause and cause not in causes:
        causes = (*causes, shorten(cause, 400))[-MOST_CAUSES:]
    return pattern.model_copy(
        update={
            "count": pattern.count + 1,
            "tasks": pattern.tasks if task in pattern.tasks else (*pattern.tasks, task),
            "common_causes": causes,
        }
    )
