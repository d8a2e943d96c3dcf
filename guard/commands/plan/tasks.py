"""`guard plan dispatch`, `ready`, `audit`, `checkpoint`, `lost`, `done`: record the work on tasks."""

from typing import Any

import click

from guard.commands.options import plan_agent_option, record_request, records_plan
from guard.context.invocation import Invocation
from guard.core.coordinator import decide_agents, decide_tasks
from guard.core.coordinator.requests import Request


@click.command("dispatch")
@click.argument("task")
@plan_agent_option
@click.option("--auditor", is_flag=True, help="Give the task to the agent for an audit.")
@records_plan
def dispatch(
    guard: Invocation, task: str, agent_id: str, auditor: bool, event_id: str | None, form: str
) -> None:
    """Give a task to an agent, and register the agent.

    Exit code 1 if the task is not available, no place is free, the infrastructure is blocked, or a question is
    open.
    """
    from guard.coordinator.plan import find_task_id

    task_id = find_task_id(guard, task)
    request: Request = decide_tasks.dispatch_developer(task_id=task_id, agent_id=agent_id)
    if auditor:
        request = decide_agents.dispatch_agent(task_id=task_id, agent_id=agent_id)
    record_request(guard, request, event_id, form)


@click.command("ready")
@click.argument("task")
@click.option(
    "--agent",
    "agent_id",
    metavar="ID",
    help="The agent's id; by default that of the task's developer.",
)
@records_plan
def ready(
    guard: Invocation, task: str, agent_id: str | None, event_id: str | None, form: str
) -> None:
    """Submit a task for its audit; it is complete only after it has passed."""
    from guard.coordinator.plan import find_task_id

    request = decide_tasks.submit_for_audit(task_id=find_task_id(guard, task), agent_id=agent_id)
    record_request(guard, request, event_id, form)


@click.command("audit")
@click.argument("task")
@plan_agent_option
@click.option(
    "--verdict",
    required=True,
    type=click.Choice(["pass", "fail", "blocked"]),
    help="The verdict; `blocked` if earlier failures made an audit impossible.",
)
@click.option(
    "--message",
    default="",
    metavar="TEXT",
    help="The evidence, the defect, or what blocks the audit.",
)
@records_plan
def audit(
    guard: Invocation,
    task: str,
    agent_id: str,
    verdict: str,
    message: str,
    event_id: str | None,
    form: str,
) -> None:
    """Record the verdict on a task that is pending audit.

    With `pass` the task is complete, guard records its commits, and tasks that depend on it may begin. Exit code 1
    if the task is not pending audit, or the auditor is its developer.
    """
    from guard.coordinator.plan import find_task_id

    names: dict[str, Any] = {"task_id": find_task_id(guard, task), "agent_id": agent_id}
    request: Request
    if verdict == "pass":
        request = decide_tasks.pass_audit(**names, evidence_summary=message)
    elif verdict == "fail":
        request = decide_tasks.fail_audit(**names, reason=message)
    else:
        request = decide_tasks.block_audit(
            **names, issue=message or "failures that were there before"
        )
    record_request(guard, request, event_id, form)


@click.command("checkpoint")
@plan_agent_option
@click.argument("text")
@records_plan
def checkpoint(
    guard: Invocation, agent_id: str, text: str, event_id: str | None, form: str
) -> None:
    """Record an agent's progress; it earns the agent more time at its limit."""
    record_request(
        guard, decide_agents.record_checkpoint(agent_id=agent_id, checkpoint=text), event_id, form
    )


@click.command("lost")
@plan_agent_option
@click.option("--reason", default="", metavar="TEXT", help="What happened to the agent.")
@records_plan
def lost(guard: Invocation, agent_id: str, reason: str, event_id: str | None, form: str) -> None:
    """Record that an agent crashed; its task is free again, up to `coordinator.redispatch_limit` times."""
    record_request(
        guard, decide_agents.crash_agent(agent_id=agent_id, reason=reason), event_id, form
    )


@click.command("done")
@plan_agent_option
@records_plan
def done(guard: Invocation, agent_id: str, event_id: str | None, form: str) -> None:
    """Record that an agent that repaired or audited the infrastructure has ended."""
    record_request(guard, decide_agents.complete_agent(agent_id=agent_id), event_id, form)
