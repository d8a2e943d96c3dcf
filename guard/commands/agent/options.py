"""The options that name an agent, and the sentences that every verb prints of one."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from guard.context.ids import given_id
from guard.context.invocation import Invocation
from guard.core.agents.report import AgentReport, transition_line
from guard.core.base.text import visible

F = TypeVar("F", bound=Callable[..., Any])
_WORDS = {
    "late": " (the report came after its end: kept, counts unchanged)",
    "refused": " (the claim of completion was refused)",
    "finding": ", finding recorded",
    "test_run": ", test run recorded",
}

task_option = click.option(
    "--task",
    "task_id",
    required=True,
    metavar="ID",
    envvar="GUARD_TASK_ID",
    callback=given_id("a task id"),
    help="The task it works on; also GUARD_TASK_ID.",
)
agent_option = click.option(
    "--agent",
    "agent_id",
    required=True,
    metavar="ID",
    envvar="GUARD_AGENT_ID",
    callback=given_id("an agent id"),
    help="The agent; also GUARD_AGENT_ID.",
)
incarnation_option = click.option(
    "--incarnation",
    type=click.IntRange(1, 2**31),
    metavar="N",
    help="Which life of the agent speaks, as `spawn` told it; a report of an earlier one changes nothing. Also "
    "GUARD_AGENT_INCARNATION, for the agent that GUARD_TASK_ID and GUARD_AGENT_ID name.",
)
message_option = click.option(
    "--message", default="", metavar="TEXT", help="What it says of itself."
)


def named(function: F) -> F:
    """The options that name one agent of one task."""
    return task_option(agent_option(function))


def tell(guard: Invocation, report: AgentReport, form: str) -> None:
    """What became of the agent, with the counts of its task and of all tasks."""
    if report.recorded_as == "spawned" or report.previous_status != report.agent.status:
        guard.output.note(transition_line(report))
    guard.output.document(report, form, sentence)


def sentence(report: AgentReport) -> str:
    agent = report.agent
    told = f"{agent.task_id}/{agent.agent_id}: {agent.status}{_WORDS.get(report.recorded_as, '')}"
    counts = f"{report.active_count} active, {report.completed_count} completed, {report.total_spawned} spawned"
    lines = [visible(f"{told}; task: {counts}; all tasks: {report.active_agents} active")]
    if report.completion_validation is not None:
        lines += [visible(line) for line in judgement(report)]
    return "\n".join(lines)


def judgement(report: AgentReport) -> list[str]:
    """What is to be thought of the claim, in a few lines."""
    found = report.completion_validation
    assert found is not None
    lines = [f"  confidence {found.confidence:.2f}"]
    lines += [f"  blocking: {issue}" for issue in found.blocking_issues]
    return lines + [f"  warning: {warning}" for warning in found.warnings]
