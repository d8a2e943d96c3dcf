"""`guard activity`."""

import click

from guard.core.reports.activity import activity_text
from guard.invocation import Invocation
from guard.options import Seconds
from guard.output import format_option


@click.command("activity")
@click.argument("agent")
@click.option(
    "--task", metavar="ID", help="Whose agent it is, where several tasks have one of this name."
)
@click.option(
    "--lookback",
    type=Seconds(least=0.01, most=43200),
    metavar="MIN",
    help="How far back signs of activity count; by default `activity.lookback_minutes`.",
)
@click.option(
    "--all-sources",
    is_flag=True,
    help="Ask every source, also when the first have proved enough.",
)
@format_option
@click.pass_obj
def command(
    guard: Invocation,
    agent: str,
    task: str | None,
    lookback: float | None,
    all_sources: bool,
    form: str,
) -> None:
    """Tell whether an agent is at work: the signs, the arithmetic and the verdict.

    Signs come from guard's log, git, test runs, files that the agent writes, its processes, its terminal and its
    session. Each source has a tier and a window; messages that only try to wake an agent, or acknowledge that, are noise.
    """
    from guard.activity.assessing import activity_of

    report = activity_of(
        guard, agent, task_id=task, lookback_minutes=lookback, all_sources=all_sources
    )
    guard.output.document(report, form, activity_text)
