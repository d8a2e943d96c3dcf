"""The report of `guard status`, as a document and as text: every task with its agents, alive, at work or stale."""

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from guard.core.activity.assess import Share
from guard.core.activity.outages import Outage
from guard.core.activity.sources import AnySource
from guard.core.agents.agent import ACTIVE
from guard.core.agents.report import ListedAgent, align_rows, ends_text, percent_text
from guard.core.base.fields import Count, Frozen, Id, Instant, Line, Report
from guard.core.base.text import plural
from guard.core.cost.text import dollars
from guard.core.cost.usage import Dollars

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


class RunLine(Frozen):
    """A run that goes on: an iteration that a living guard watches over, or a limit that is waited out."""

    run: Id
    worktree: Id
    iteration: Count
    agent: Line | None
    since: Instant | None
    """When the iteration began."""
    last_seen: Instant | None
    """When the guard that watches over it last looked."""
    waits_for: Line | None
    """What the run waits for; null while its agent works."""
    until: Instant | None
    breaker: Literal["closed", "open", "half_open"]
    streak: Count
    open_tasks: Count | None
    """Open boxes of `tasks.md`, if the run is that of this work tree and it has one."""
    cost_usd: Dollars | None
    """What the iterations of the run have cost so far, as far as that is known."""


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
    runs: tuple[RunLine, ...]
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


def has_agents(report: StatusReport) -> bool:
    """Tell whether to count agents: beside a run that goes on, "0 active in 0 tasks" reads as if nothing did."""
    return bool(report.total_agents_spawned or report.tasks or not report.runs)


def status_text(report: StatusReport) -> str:
    lines = [counts_line(report)] if has_agents(report) else []
    lines += [
        f"task {task.task_id}: {task.active_count} active, "
        f"{ends_text(task.completed_count, task.failed_count)}, {task.total_spawned} spawned"
        for task in report.tasks
    ]
    lines += [run_text(run) for run in report.runs]
    if report.outage is not None:
        lines.append(report.outage.summary)
    lines += [f"warning: {warning}" for warning in report.warnings]
    rows = [cells(agent) for agent in report.agents]
    return "\n".join([*lines, *align_rows([CELLS, *rows] if rows else [])])


def run_text(run: RunLine) -> str:
    """Return one line about a run that goes on."""
    return "; ".join(_run_parts(run))


def run_lines(run: RunLine, columns: int) -> list[str]:
    """Return the same on as many lines as a terminal of this width needs."""
    first, *parts = _run_parts(run)
    lines = [first]
    for part in parts:
        if len(lines[-1]) + len(part) + 2 <= columns:
            lines[-1] += f"; {part}"
        else:
            lines.append(f"  {part}")
    return lines


def _run_parts(run: RunLine) -> list[str]:
    parts = [f"run {run.run}: iteration {run.iteration}"]
    if run.since is not None:
        parts[0] += f" since {run.since:%Y-%m-%d %H:%M:%S} UTC"
    if run.waits_for is not None:
        until = f" until {run.until:%Y-%m-%d %H:%M:%S} UTC" if run.until is not None else ""
        parts.append(f"waits for {run.waits_for}{until}")
    elif run.last_seen is not None:
        parts.append(f"last seen alive {run.last_seen:%H:%M:%S} UTC")
    parts.append(f"breaker {run.breaker}, streak {run.streak}")
    if run.open_tasks is not None:
        parts.append(f"{plural(run.open_tasks, 'task')} left")
    if run.cost_usd is not None:
        parts.append(f"{dollars(run.cost_usd)} so far")
    return parts


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
