"""What `guard agent` prints: documents and text."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypedDict

from pydantic import Field

from guard.core.agents.agent import ACTIVE, Agent
from guard.core.agents.events import AgentStatus
from guard.core.agents.findings import FoundOut
from guard.core.base.fields import Count, Frozen, Id, Line, Report
from guard.core.base.text import escape
from guard.core.claims.completion_validation import CompletionValidation

Liveness = Literal["alive", "ended", "unknown"]
RecordedAs = Literal[
    "spawned", "updated", "late", "refused", "ended", "killed", "finding", "test_run"
]


class AgentReport(Report):
    """One agent after a change, with the counts of its task and of all tasks."""

    schema_: Literal["guard/agent/1"] = Field("guard/agent/1", alias="schema")
    agent: Agent
    previous_status: AgentStatus | None
    recorded_as: RecordedAs
    active_count: Count
    completed_count: Count
    total_spawned: Count
    active_agents: Count
    completed_agents: Count
    total_agents_spawned: Count
    completion_validation: CompletionValidation | None
    """The validation, if this report was a claim of completion."""


class ListedAgent(Agent):
    """An agent, and whether guard just found it alive."""

    liveness: Liveness
    seen: Line
    """How guard found out."""


class AgentsReport(Report):
    """Agents with the counts over all tasks, or of one task."""

    schema_: Literal["guard/agents/1"] = Field("guard/agents/1", alias="schema")
    task_id: str | None
    active: Count
    completed: Count
    spawned: Count
    agents: tuple[ListedAgent, ...]


class AgentDetailReport(Report):
    """One agent with its findings and the score of its claim."""

    schema_: Literal["guard/agent-detail/1"] = Field("guard/agent-detail/1", alias="schema")
    agent: ListedAgent
    findings: tuple[FoundOut, ...]
    score: tuple[Line, ...]
    """The confidence in the claim of completion, line by line."""


class AgentName(Frozen):
    task_id: Id
    agent_id: Id


class ImportReport(Report):
    """Which agents of a foreign registry were imported."""

    schema_: Literal["guard/agent-import/1"] = Field("guard/agent-import/1", alias="schema")
    source: Line
    imported: tuple[AgentName, ...]
    known: tuple[AgentName, ...]
    """Agents that were registered already; they are unchanged."""
    warnings: tuple[Line, ...]


class TaskAgents(TypedDict):
    """The agents of a task and their counts."""

    active: int
    completed: int
    spawned: int
    by_status: dict[str, int]
    list: list[dict[str, Any]]


class TaskStatus(TypedDict):
    """The agents of a task in plain values: `status["agents"]["active"]`."""

    task_id: str
    agents: TaskAgents


FAILED: tuple[AgentStatus, ...] = ("failed", "error")
"""The statuses of agents that ended without what they were started for."""
_COLUMNS = ("task", "agent", "status", "seen", "done", "confidence", "ended by", "message")
_LONGEST_MESSAGE = 80
_MOST_FINDINGS = 20


def agents_text(report: AgentsReport) -> str:
    failed = sum(agent.status in FAILED for agent in report.agents)
    ends = ends_text(report.completed, failed)
    counts = f"{report.active} active, {ends}, {report.spawned} spawned"
    rows = [
        (
            agent.task_id,
            agent.agent_id,
            agent.status,
            agent.liveness if agent.status in ACTIVE else "",
            percent_text(agent.progress),
            _confidence_text(agent),
            agent.detected_by or "",
            agent.message,
        )
        for agent in report.agents
    ]
    return "\n".join([counts, *align_rows([_COLUMNS, *rows] if rows else [])])


def ends_text(completed: int, failed: int) -> str:
    """Return how many agents completed, and apart from them how many failed, if any did."""
    return f"{completed - failed} completed" + (f", {failed} failed" if failed else "")


def _confidence_text(agent: Agent) -> str:
    validation = agent.completion_validation
    return "" if validation is None else f"{validation.confidence:.2f}"


def transition_line(report: AgentReport) -> str:
    """Return one line on what a report changed, with both counts."""
    agent = report.agent
    return (
        f"agent {agent.agent_id} of task {agent.task_id}: {report.previous_status or 'new'} to "
        f"{agent.status}; active in the task {report.active_count}, "
        f"in all tasks {report.active_agents}"
    )


def align_rows(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the rows in columns; the last cell is a message, which is cut."""
    widths = [max(map(len, column)) for column in list(zip(*rows, strict=True))[:-1]]
    lines = []
    for *cells, message in rows:
        padded = "  ".join(f"{cell:{width}}" for cell, width in zip(cells, widths, strict=True))
        lines.append(f"{padded}  {escape(message)[:_LONGEST_MESSAGE]}".rstrip())
    return lines


def detail_text(report: AgentDetailReport) -> str:
    agent = report.agent
    lines = [f"{agent.task_id}/{agent.agent_id}: {agent.status}, {agent.agent_type}"]
    lines += [f"  {name}: {value}" for name, value in _facts(agent) if value]
    lines += [
        f"  finding ({finding.severity}): {f'{finding.file}: ' if finding.file else ''}{finding.text}"
        for finding in report.findings[-_MOST_FINDINGS:]
    ]
    if report.score:
        lines.append("  confidence in its completion:")
        lines += [f"    {line}" for line in report.score]
    return "\n".join(escape(line) for line in lines)


def _facts(agent: ListedAgent) -> Iterator[tuple[str, str]]:
    yield "seen", f"{agent.liveness} ({agent.seen})"
    yield "incarnation", str(agent.incarnation)
    yield "progress", percent_text(agent.progress)
    yield "message", agent.message
    yield "spawned", f"{agent.spawned_at:%Y-%m-%d %H:%M:%S} UTC"
    yield "last report", f"{agent.updated_at:%Y-%m-%d %H:%M:%S} UTC"
    ended = agent.completed_at or agent.terminated_at
    yield "ended", f"{ended:%Y-%m-%d %H:%M:%S} UTC, {agent.detected_by}" if ended else ""
    yield "how", agent.detail or ""
    yield "reason", agent.reason or ""
    yield "host", agent.host.name if agent.host else ""
    yield "tmux session", agent.tmux_session or ""
    yield "process", str(agent.pid or "")
    yield "reports", f"{agent.updates}, {agent.working_updates} at work, {agent.late_reports} late"
    yield "findings", str(agent.findings or "")
    yield "test runs", str(agent.test_runs or "")
    yield "refused claims", str(agent.refused_claims or "")


def percent_text(progress: int | None) -> str:
    return "" if progress is None else f"{progress}%"
