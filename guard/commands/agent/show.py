"""`guard agent list`, `show`, `wait`: list the agents, and tell whether they are still active."""

import click

from guard.commands.options import registered_agent_options, task_id_option, tells_what_is_safe
from guard.context.ids import id_callback
from guard.context.invocation import Invocation
from guard.context.output import format_option, prints_report
from guard.core.agents.report import agents_text, detail_text
from guard.errors import WrongUsage


@click.command("list")
@task_id_option("task_id", text="List only the agents of this task.")
@click.option("--all", "everything", is_flag=True, help="Also list agents that ended long ago.")
@click.option(
    "--no-look", is_flag=True, help="Do not check whether sessions and processes still exist."
)
@click.option(
    "--fleet",
    is_flag=True,
    help="List the agents of all machines and repositories of the PostgreSQL database.",
)
@prints_report
def list_agents(
    guard: Invocation,
    task_id: str | None,
    everything: bool,
    no_look: bool,
    fleet: bool,
    form: str,
) -> None:
    """List the agents and their counts, and mark those whose session or process is gone."""
    if fleet:
        _list_fleet(guard, form, alone=not (task_id or everything or no_look))
        return
    from guard.agents.monitor import list_agents

    report = list_agents(guard, task_id, everything=everything, looks=not no_look)
    guard.output.document(report, form, agents_text)


def _list_fleet(guard: Invocation, form: str, *, alone: bool) -> None:
    from guard.core.fleet.report import fleet_agents_text
    from guard.fleet import look_over_fleet

    if not alone:
        raise WrongUsage("--fleet lists all agents", "leave out the other options")
    guard.output.document(look_over_fleet(guard), form, fleet_agents_text)


@click.command("show")
@registered_agent_options
@prints_report
def show(guard: Invocation, task_id: str, agent_id: str, form: str) -> None:
    """Show one agent: where it runs, its reports, its findings, and the score of its claim line by line."""
    from guard.agents.monitor import describe_agent

    report = describe_agent(guard, task_id, agent_id)
    guard.output.document(report, form, detail_text)


@click.command("wait")
@click.argument("task_id", metavar="TASK", callback=id_callback("a task id"))
@click.option(
    "--timeout",
    type=click.FloatRange(0),
    metavar="SECONDS",
    help="Give up after this time, with exit code 11; by default wait without limit.",
)
@format_option
@click.pass_context
def wait(ctx: click.Context, task_id: str, timeout: float | None, form: str) -> None:
    """Wait until every agent of a task has ended.

    Exit code 0 if all have ended, 11 if some are still active at the time limit, 1 if the task never had an agent.
    """
    from guard.agents.monitor import active_agents, wait_for_agents

    guard: Invocation = ctx.obj
    live = guard.output.live()
    kept = (
        "no agent was stopped, and all reports so far are recorded; `guard agent list` shows them"
    )
    try:
        with tells_what_is_safe(lambda: kept):
            report = wait_for_agents(guard, task_id, timeout, live.say)
    finally:
        live.clear()
    guard.output.verdict(report, form, agents_text)
    if active_agents(report):
        ctx.exit(11)
