"""The record of failures that recur."""

from guard.core.base.fields import Count, Frozen, Id, Line, Text
from guard.core.base.text import shorten

MOST_CAUSES = 20
_PREVENTIONS = {
    "timeout": "Run what was slow on its own, and give it a time limit, before the task is reported as ready.",
    "environment_disagreement": "Run the checks in every environment that the project supports.",
    "missing_dependency": "Declare what is imported, and run the checks in a fresh environment.",
    "type_errors": "Run the type checker on the whole project before the task is reported as ready.",
    "lint_errors": "Run the linter and the formatter before the task is reported as ready.",
    "test_failures": "Run the whole test suite and read its output before the task is reported as ready.",
    "build_errors": "Build from a clean tree before the task is reported as ready.",
}


class FailurePattern(Frozen):
    """What is known about one kind of failure."""

    count: Count = 0
    tasks: tuple[Id, ...] = ()
    """Each task once, in the order in which it first failed so."""
    common_causes: tuple[Line, ...] = ()
    suggested_prevention: Text | None = None
    """What a person suggested, else what is known of this kind."""


class FailureWarning(Frozen):
    """A warning of one kind of failure that recurs."""

    type: Line
    message: Line
    prevention: Text | None
    occurrence_count: Count
    common_causes: tuple[Line, ...]


def prevention_of(kind: str, pattern: FailurePattern) -> str | None:
    return pattern.suggested_prevention or _PREVENTIONS.get(kind)


def add_occurrence(
    pattern: FailurePattern, kind: str, task: str, cause: str | None
) -> FailurePattern:
    """Return the pattern after one more occurrence, with the causes found last."""
    causes = pattern.common_causes
    if cause and cause not in causes:
        causes = (*causes, shorten(cause, 400))[-MOST_CAUSES:]
    return pattern.model_copy(
        update={
            "count": pattern.count + 1,
            "tasks": pattern.tasks if task in pattern.tasks else (*pattern.tasks, task),
            "common_causes": causes,
            "suggested_prevention": prevention_of(kind, pattern),
        }
    )
