"""The report of `guard status`, as a document and as text: every task with its agents, alive, at work or stale."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from guard.core.activity.assess import Share
from guard.core.activity.outages import Outage
from guard.core.activity.sources import AnySource
from guard.core.agents.agent import ACTIVE
from guard.core.agents.report import ListedAgent, align_rows, ends_text, percent_text
from guard.core.base.fields import Count, Frozen, Id, Instant, Report
from guard.core.base.text import plural

Category = Literal["fresh", "warning", "critical", "auto_resume", "ended"]
WARNING_HOURS, CRITICAL_HOURS, AUTO_RESUME_HOURS = 2, 6, 12
_MOST_SOURCES = 3
CELLS = ("task", "agent", "status", "seen", "category", "activity", "done", "message")
_URGENCY: tuple[Category, ...] = ("auto_resume", "critical", "warning", "fresh", "ended")


class TaskLine(Frozen):
    """The counts of one task."""

    task_id: Id
    active_count: Count
    completed_count: Count
    """How many have ended and were not killed, failed ones included."""
    failed_count: Count
    """How many of those ended as `failed` or `error`."""
    total_spawned: Count


class SurveyedAgent(ListedAgent):
    """An agent, whether it was found alive, and whether it is at work."""

    category: Category
    age_minutes: Annotated[float, Field(ge=0)]
    """How long ago it last reported its state, in its status file or to the registry."""
    is_active: bool | None
    """None if it was not assessed, or has ended."""
    confidence: Share | None
    sources: tuple[AnySource, ...]
    """The sources that showed it at work, the newest first."""
    last_seen: Instant | None
    """The newest sign of it, even if it is too old to count; None if it was not assessed."""


class StatusReport(Report):
    """Every task with its counts, and the agents of all tasks."""

    schema_: Literal["guard/status/1"] = Field("guard/status/1", alias="schema")
    active_agents: Count
    completed_agents: Count
    failed_agents: Count
    """How many of the completed agents ended as `failed` or `error`."""
    total_agents_spawned: Count
    tasks: tuple[TaskLine, ...]
    agents: tuple[SurveyedAgent, ...]
    outage: Outage | None
    """Agents that fell silent together: they are not escalated while the outage explains it."""
    warnings: tuple[str, ...]
    """What the newest check of each work tree warned of: committed secrets, and files that a rescue held back."""


def category(
    age_minutes: float, *, is_active: bool | None, ended: bool, in_outage: bool = False
) -> Category:
    """How stale an agent is by the age of its last report; activity or an outage stops the escalation at `warning`."""
    if ended:
        return "ended"
    hours = age_minutes / 60
    if hours < WARNING_HOURS:
        return "fresh"
    if hours < CRITICAL_HOURS or is_active or in_outage:
        return "warning"
    return "critical" if hours <= AUTO_RESUME_HOURS else "auto_resume"


def counts_line(report: StatusReport) -> str:
    ends = ends_text(report.completed_agents, report.failed_agents)
    spawned = f"{report.total_agents_spawned} spawned in {plural(len(report.tasks), 'task')}"
    return f"{report.active_agents} active, {ends}, {spawned}"


def status_text(report: StatusReport) -> str:
    lines = [counts_line(report)]
    lines += [
        f"task {task.task_id}: {task.active_count} active, "
        f"{ends_text(task.completed_count, task.failed_count)}, {task.total_spawned} spawned"
        for task in report.tasks
    ]
    if report.outage is not None:
        lines.append(report.outage.summary)
    lines += [f"warning: {warning}" for warning in report.warnings]
    rows = [cells(agent) for agent in report.agents]
    return "\n".join([*lines, *align_rows([CELLS, *rows] if rows else [])])


def cells(agent: SurveyedAgent) -> tuple[str, ...]:
    """The values of one agent under the columns of `CELLS`."""
    return (
        agent.task_id,
        agent.agent_id,
        agent.status,
        agent.liveness if agent.status in ACTIVE else "",
        agent.category if agent.status in ACTIVE else "",
        _activity(agent),
        percent_text(agent.progress),
        agent.message,
    )


def sort_by_urgency(agents: Sequence[SurveyedAgent]) -> list[SurveyedAgent]:
    return sorted(agents, key=lambda agent: _URGENCY.index(agent.category))


def _activity(agent: SurveyedAgent) -> str:
    if agent.is_active is None:
        return ""
    sources = ", ".join(agent.sources[:_MOST_SOURCES])
    return f"{'active' if agent.is_active else 'quiet'} {agent.confidence:g}" + (
        f" ({sources})" if sources else ""
    )
