"""`guard plan remediate`, `health`, `ask`, `answer`: the infrastructure, and questions to a person."""

import click

from guard.commands.plan.options import agent_option, recorded, tell
from guard.context.ids import given_id
from guard.context.invocation import Invocation
from guard.core.coordinator.decide_agents import (
    answer_question,
    ask_question,
    dispatch_remediation,
    fail_health_audit,
    pass_health_audit,
)
from guard.core.coordinator.requests import Request


@click.command("remediate")
@agent_option
@click.option("--issue", metavar="TEXT", help="What is wrong; by default what is known already.")
@recorded
def remediate(
    guard: Invocation, agent_id: str, issue: str | None, event_id: str | None, form: str
) -> None:
    """Send an agent to remedy the infrastructure: nobody gets a task until it is healthy.

    Refused (exit code 1) while one is at it, and at `coordinator.remediation_attempts`.
    """
    tell(guard, dispatch_remediation(agent_id=agent_id, issue=issue), event_id, form)


@click.command("health")
@agent_option
@click.option(
    "--verdict",
    required=True,
    type=click.Choice(["healthy", "unhealthy"]),
    help="How the infrastructure is.",
)
@click.option("--issue", metavar="TEXT", help="What is wrong now.")
@recorded
def health(
    guard: Invocation,
    agent_id: str,
    verdict: str,
    issue: str | None,
    event_id: str | None,
    form: str,
) -> None:
    """Record whether a blocked infrastructure is healthy again; at the limit of attempts a person is asked."""
    request: Request = pass_health_audit(agent_id=agent_id)
    if verdict == "unhealthy":
        request = fail_health_audit(agent_id=agent_id, issue=issue)
    tell(guard, request, event_id, form)


@click.command("ask")
@click.option(
    "--agent",
    "agent_id",
    metavar="ID",
    callback=given_id("an agent id"),
    help="The agent that waits for the answer.",
)
@click.argument("question")
@recorded
def ask(
    guard: Invocation, agent_id: str | None, question: str, event_id: str | None, form: str
) -> None:
    """Ask a person; until the answer no new task is given to anybody."""
    tell(guard, ask_question(agent_id=agent_id, question=question), event_id, form)


@click.command("answer")
@click.argument("question_id", metavar="QUESTION", callback=given_id("a question id"))
@click.argument("response")
@recorded
def answer(
    guard: Invocation, question_id: str, response: str, event_id: str | None, form: str
) -> None:
    """Answer an open question; whoever waits for it finds the answer in the outbox."""
    tell(guard, answer_question(question_id=question_id, response=response), event_id, form)
