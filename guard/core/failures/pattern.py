"""What is kept of failures that recur."""

from guard.core.base.fields import Count, Frozen, Id, Line, Text
from guard.core.base.text import shorten

MOST_CAUSES = 20


class FailurePattern(Frozen):
    """What is known of one kind of failure."""

    count: Count = 0
    tasks: tuple[Id, ...] = ()
    """Each task once, in the order in which it first happened to them."""
    common_causes: tuple[Line, ...] = ()
    suggested_prevention: Text | None = None


class FailureWarning(Frozen):
    """What a prompt says of a kind of failure that recurs."""

    type: Line
    message: Line
    prevention: Text | None
    occurrence_count: Count
    common_causes: tuple[Line, ...]


def recorded(pattern: FailurePattern, task: str, cause: str | None) -> FailurePattern:
    """The pattern after one more occurrence. The causes that were found last are kept."""
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
