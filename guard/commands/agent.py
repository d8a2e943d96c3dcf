"""`guard agent`."""

from typing import Any, cast

import click

from guard import agents
from guard.core.events import AgentStatus
from guard.core.lifecycle import STATUSES
from guard.core.reports.agents import AgentReport, AgentsReport
from guard.core.text import visible
from guard.ids import given_id
from guard.invocation import Invocation
from guard.output import format_option

_task = click.option(
    "--task",
    "task_id",
    required=True,
    metavar="ID",
    callback=given_id("a task id"),
    help="The task it works on.",
)
_agent = click.option(
    "--agent",
    "agent_id",
    required=True,
    metavar="ID",
    callback=given_id("an agent id"),
    help="The agent.",
)
_message = click.option("--message", default="", metavar="TEXT", help="What it says of itself.")


@click.group("agent")
def command() -> None:
    """Keep the registries of agents: spawn, update, list."""


@command.command("spawn")
@_task
@_agent
@click.option(
    "--type",
    "agent_type",
    default="agent",
    show_default=True,
    metavar="NAME",
    help="What kind of agent it is.",
)
@_message
@format_option
@click.pass_obj
def spawn(
    guard: Invocation, task_id: str, agent_id: str, agent_type: str, message: str, form: str
) -> None:
    """Register an agent that has been started.

    Refused (exit code 1) while an agent of that name is active in the task.
    """
    report = agents.spawn(
        guard.writable_store,
        guard.clock.now(),
        task_id=task_id,
        agent_id=agent_id,
        agent_type=agent_type,
        message=message,
        keep_finished=guard.config.settings.registry.keep_finished,
    )
    _tell(guard, report, form)


@command.command("update")
@_task
@_agent
@click.option("--status", required=True, type=click.Choice(STATUSES), help="Its status now.")
@click.option("--progress", type=click.IntRange(0, 100), metavar="PERCENT", help="How far it is.")
@_message
@format_option
@click.pass_obj
def update(guard: Invocation, /, status: str, form: str, **reported: Any) -> None:
    """Record what an agent reports of itself.

    The counts move only when it goes from an active status to a terminal one; a report after that is kept and changes none.
    """
    report = agents.update(
        guard.writable_store, guard.clock.now(), status=cast(AgentStatus, status), **reported
    )
    _tell(guard, report, form)


@command.command("list")
@click.option(
    "--task",
    "task_id",
    metavar="ID",
    callback=given_id("a task id"),
    help="Only the agents of this task.",
)
@click.option("--all", "everything", is_flag=True, help="Also those that ended long ago.")
@format_option
@click.pass_obj
def list_agents(guard: Invocation, task_id: str | None, everything: bool, form: str) -> None:
    """List the agents and their counts."""
    report = agents.listed(guard.store, task_id, everything=everything)
    guard.output.document(report, form, _table)


def _tell(guard: Invocation, report: AgentReport, form: str) -> None:
    agent = report.agent
    before = report.previous_status or "new"
    guard.output.note(
        f"agent {agent.agent_id} of task {agent.task_id}: {before} to {agent.status}; "
        f"active in the task {report.active_count}, in all tasks {report.active_agents}"
    )
    guard.output.document(report, form, _sentence)


def _sentence(report: AgentReport) -> str:
    agent = report.agent
    told = f"{agent.task_id}/{agent.agent_id}: {agent.status}"
    if report.recorded_as == "late":
        told += " (the report came after its end: kept, counts unchanged)"
    counts = f"{report.active_count} active, {report.completed_count} completed, {report.total_spawned} spawned"
    return visible(f"{told}; task: {counts}; all tasks: {report.active_agents} active")


def _table(report: AgentsReport) -> str:
    lines = [f"{report.active} active, {report.completed} completed, {report.spawned} spawned"]
    rows = [
        (agent.task_id, agent.agent_id, agent.status, _percent(agent.progress), agent.message)
        for agent in report.agents
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(4)] if rows else []
    for *cells, message in rows:
        padded = "  ".join(f"{cell:{width}}" for cell, width in zip(cells, widths, strict=True))
        lines.append(f"{padded}  {visible(message)[:80]}".rstrip())
    return "\n".join(lines)


def _percent(progress: int | None) -> str:
    return "" if progress is None else f"{progress}%"
