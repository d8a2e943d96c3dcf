"""`guard plan prompt`: print what an agent is told."""

from typing import TYPE_CHECKING

import click

from guard.commands.options import agent_id_option, settles_plan_rollbacks
from guard.context.invocation import Invocation
from guard.context.output import prints_report

if TYPE_CHECKING:
    from guard.core.coordinator.prompt import PromptRole

_ROLES = ("developer", "auditor", "analyst", "remediation", "health-auditor", "supporter")


@click.command("prompt")
@click.argument("task", required=False)
@click.option(
    "--role",
    type=click.Choice(_ROLES),
    help="The role of the agent; by default the one that --agent was sent for, else developer.",
)
@agent_id_option("--agent", "agent_id", text="The agent, or the run of a supporting agent.")
@prints_report
@settles_plan_rollbacks
def prompt(
    guard: Invocation,
    task: str | None,
    role: "PromptRole | None",
    agent_id: str | None,
    form: str,
) -> None:
    """Print the prompt of an agent: its task, what came before, what a person answered, how to report.

    With --agent, TASK may be left out: it is the one that the agent was sent for. The warnings in the prompt of a
    developer that is at work on the task count as issued, and are logged once; any other prompt is a preview.
    """
    from guard.plan.prompt import prompt_report

    report = prompt_report(guard, task, role=role, agent_id=agent_id)
    guard.output.document(report, form, lambda document: document.text)
