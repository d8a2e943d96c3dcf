"""`guard plan dispatch`, `ready`, `audit`, `checkpoint`, `lost`, `done`: record the work on tasks."""

import click

from guard.commands.options import (
    agent_id_option,
    plan_agent_option,
    print_change,
    record_request,
    records_plan,
    records_request,
)
from guard.context.invocation import Invocation
from guard.core.coordinator import decide_agents, decide_tasks
from guard.core.coordinator.requests import Request
from guard.errors import WrongUsage


@click.command("dispatch")
@click.argument("task")
@plan_agent_option
@click.option("--auditor", is_flag=True, help="Give the task to the agent for an audit.")
@records_request
def dispatch(task_id: str, agent_id: str, auditor: bool) -> Request:
    """Give a task to an agent, and register the agent.

    Exit code 1 if the task is not available, no place is free, the infrastructure is blocked, or a question is
    open.
    """
    if auditor:
        return decide_agents.dispatch_agent(task_id=task_id, agent_id=agent_id)
    return decide_tasks.dispatch_developer(task_id=task_id, agent_id=agent_id)


@click.command("ready")
@click.argument("task")
@click.option(
    "--agent",
    "agent_id",
    metavar="ID",
    help="The agent's id; by default that of the task's developer.",
)
@records_request
def ready(task_id: str, agent_id: str | None) -> Request:
    """Submit a task for its audit; it is complete only after it has passed."""
    return decide_tasks.submit_for_audit(task_id=task_id, agent_id=agent_id)


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
@click.option("--no-commits", is_flag=True, help="With `pass`: the task needs no commits.")
@records_request
def audit(task_id: str, agent_id: str, verdict: str, message: str, no_commits: bool) -> Request:
    """Record the verdict on a task that is pending audit.

    With `pass` the task is complete, guard records its commits, and tasks that depend on it may begin. Exit code 1
    if the task is not pending audit, the auditor is its developer, the task has no commits, or there is neither a
    message nor an auditor that the plan sent.
    """
    if verdict == "pass":
        return decide_tasks.pass_audit(
            task_id=task_id, agent_id=agent_id, evidence_summary=message, no_commits=no_commits
        )
    if verdict == "fail":
        return decide_tasks.fail_audit(task_id=task_id, agent_id=agent_id, reason=message)
    issue = message or "failures that were there before"
    return decide_tasks.block_audit(task_id=task_id, agent_id=agent_id, issue=issue)


@click.command("checkpoint")
@agent_id_option("--agent", "agent_id", text="The agent's id.")
@click.option("--all", "everyone", is_flag=True, help="Ask all developers at work for one.")
@click.argument("text", required=False)
@records_plan
def checkpoint(
    guard: Invocation,
    agent_id: str | None,
    everyone: bool,
    text: str | None,
    event_id: str | None,
    form: str,
) -> None:
    """Record an agent's progress; it earns the agent more time at its limit.

    With --all guard records what the developers reported since their last checkpoints, and the outbox asks each of
    them how far it is.
    """
    from guard.coordinator.plan import collect_checkpoints

    if everyone:
        if agent_id is not None or text is not None:
            raise WrongUsage("--all asks every developer", "leave out --agent and TEXT")
        print_change(guard, collect_checkpoints(guard, event_id), form)
        return
    if agent_id is None or text is None:
        raise WrongUsage("a checkpoint needs --agent ID and TEXT", "or ask all agents with --all")
    request = decide_agents.record_checkpoint(agent_id=agent_id, checkpoint=text)
    record_request(guard, request, event_id, form)


@click.command("lost")
@plan_agent_option
@click.option("--reason", default="", metavar="TEXT", help="What happened to the agent.")
@records_request
def lost(agent_id: str, reason: str) -> Request:
    """Record that an agent crashed; its task is free again, up to `coordinator.redispatch_limit` times."""
    return decide_agents.crash_agent(agent_id=agent_id, reason=reason)


@click.command("done")
@plan_agent_option
@records_request
def done(agent_id: str) -> Request:
    """Record that an agent that repaired or audited the infrastructure has ended."""
    return decide_agents.complete_agent(agent_id=agent_id)
