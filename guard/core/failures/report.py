"""The reports of `guard failures`, as documents and as text."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from pydantic import Field

from guard.core.base.fields import Id, Report
from guard.core.base.text import escape, plural
from guard.core.failures.pattern import FailurePattern, FailureWarning


class FailuresReport(Report):
    """The failures of audits, by kind."""

    schema_: Literal["guard/failures/1"] = Field("guard/failures/1", alias="schema")
    failure_patterns: dict[Id, FailurePattern]


class FailureWarningsReport(Report):
    """The warnings for one task."""

    schema_: Literal["guard/failure-warnings/1"] = Field("guard/failure-warnings/1", alias="schema")
    task_id: Id
    warnings: tuple[FailureWarning, ...]
    text: str
    """The warnings as text for a prompt; empty if there are none."""


def failures_text(report: FailuresReport, names: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the report for people; `names` are the tasks' names in the plan."""
    patterns = sorted(report.failure_patterns.items(), key=lambda item: (-item[1].count, item[0]))
    if not patterns:
        return "no failure was recorded"
    lines = []
    for kind, pattern in patterns:
        tasks = escape(", ".join(names.get(task_id, task_id) for task_id in pattern.tasks[-10:]))
        lines.append(f"{kind}: {plural(pattern.count, 'time')}, in {tasks}" if tasks else kind)
        lines += [f"  cause: {escape(cause)}" for cause in pattern.common_causes]
        if pattern.suggested_prevention:
            lines.append(f"  prevention: {escape(pattern.suggested_prevention)}")
    return "\n".join(lines)
