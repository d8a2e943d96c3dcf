"""What all machines and repositories of a fleet do: `guard status --fleet` and `guard agent list --fleet`."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from guard.core.agents.agent import ACTIVE, Agent
from guard.core.agents.events import AgentStatus
from guard.core.base.fields import Count, Frozen, Id, Instant, Line, Report
from guard.core.base.text import escape, plural
from guard.core.breaker.state import Breaker
from guard.core.iteration.run import Run


class FleetAgent(Frozen):
    """An agent of one of the workspaces."""

    workspace: str
    task_id: Id
    agent_id: Id
    status: AgentStatus
    host: Line | None
    """The name of the machine where it runs; null if that was not told."""
    updated_at: Instant


class FleetRun(Frozen):
    """An iteration that has begun and not ended."""

    workspace: str
    worktree: Id
    run: Id
    iteration: Count
    agent: Line | None
    host: Line | None
    """The machine of the guard that watches over it; null if none does."""
    since: Instant
    is_watched: bool
    """Whether that guard lives: by the process table of this machine, by its lease on another one."""


class FleetBreaker(Frozen):
    """A breaker that is not closed."""

    workspace: str
    worktree: Id
    state: Literal["open", "half_open"]
    reason: Line | None
    retry_at: Instant | None


class FleetWorkspace(Frozen):
    """One workspace of the database."""

    name: str
    records: Count
    active_agents: Count
    completed_agents: Count
    total_agents_spawned: Count


class FleetReport(Report):
    """All workspaces of a database."""

    schema_: Literal["guard/fleet/1"] = Field("guard/fleet/1", alias="schema")
    workspaces: tuple[FleetWorkspace, ...]
    agents: tuple[FleetAgent, ...]
    """The active agents, and those that ended lately."""
    runs: tuple[FleetRun, ...]
    breakers: tuple[FleetBreaker, ...]
    warnings: tuple[str, ...]
    """What could not be read."""


def fleet_agent(workspace: str, agent: Agent) -> FleetAgent:
    host = agent.host.name if agent.host is not None else None
    return FleetAgent(
        workspace=workspace,
        task_id=agent.task_id,
        agent_id=agent.agent_id,
        status=agent.status,
        host=host,
        updated_at=agent.updated_at,
    )


def fleet_run(workspace: str, run: Run, *, is_watched: bool) -> FleetRun | None:
    """Return the line of a run; None if no iteration of it is open."""
    opened = run.open_iteration
    if opened is None:
        return None
    watch = opened.supervisor
    return FleetRun(
        workspace=workspace,
        worktree=run.worktree,
        run=run.run,
        iteration=opened.number,
        agent=opened.agent,
        host=watch.host.name if watch is not None and watch.host is not None else None,
        since=opened.started_at,
        is_watched=is_watched,
    )


def fleet_breaker(workspace: str, breaker: Breaker) -> FleetBreaker | None:
    if breaker.state == "closed":
        return None
    return FleetBreaker(
        workspace=workspace,
        worktree=breaker.worktree,
        state=breaker.state,
        reason=breaker.reason,
        retry_at=breaker.retry_at,
    )


def fleet_text(report: FleetReport) -> str:
    lines = list(_workspaces(report))
    lines += _runs(report)
    lines += _breakers(report)
    lines += _agents(report)
    lines += [f"not seen: {escape(warning)}" for warning in report.warnings]
    return "\n".join(lines) or "the database has no workspace"


def fleet_agents_text(report: FleetReport) -> str:
    lines = [*_agents(report), *(f"not seen: {escape(warning)}" for warning in report.warnings)]
    return "\n".join(lines) or "no agents"


def _workspaces(report: FleetReport) -> Iterator[str]:
    for one in report.workspaces:
        counts = f"{one.active_agents} active, {one.completed_agents} completed"
        yield f"{escape(one.name)}: {counts}, {one.total_agents_spawned} spawned; {plural(one.records, 'record')}"


def _runs(report: FleetReport) -> Iterator[str]:
    for run in report.runs:
        where = escape(run.host) if run.host else "no guard watches"
        state = "" if run.is_watched or not run.host else "; its guard is gone"
        since = f"{run.since:%Y-%m-%d %H:%M:%S} UTC"
        yield f"  run {run.run}/{run.iteration} in {run.worktree} on {where} since {since}{state}"


def _breakers(report: FleetReport) -> Iterator[str]:
    for breaker in report.breakers:
        yield f"  breaker {breaker.state} in {breaker.worktree}: {escape(breaker.reason or '')}"


def _agents(report: FleetReport) -> Iterator[str]:
    for agent in report.agents:
        if agent.status in ACTIVE:
            where = f" on {escape(agent.host)}" if agent.host else ""
            yield f"  {agent.task_id}/{agent.agent_id} {agent.status}{where} ({escape(agent.workspace)})"
