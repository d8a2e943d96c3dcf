"""`guard activity`."""

import click

from guard.commands.options import activity_options
from guard.context.invocation import Invocation
from guard.context.output import format_option
from guard.core.activity.report import activity_text


@click.command("activity")
@click.argument("agent")
@activity_options
@click.option(
    "--all-sources",
    is_flag=True,
    help="Ask every source, also when the first have proved enough.",
)
@click.option(
    "--false-alarm",
    is_flag=True,
    help="The last prompt that it was sent was not needed: look back further for it from now on.",
)
@click.option(
    "--forget", is_flag=True, help="Let what was learned from false alarms count no longer."
)
@click.option("--reason", default="", metavar="TEXT", help="Why, for the log.")
@format_option
@click.pass_obj
def command(
    guard: Invocation,
    agent: str,
    task: str | None,
    lookback: float | None,
    all_sources: bool,
    false_alarm: bool,
    forget: bool,
    reason: str,
    form: str,
) -> None:
    """Tell whether an agent is at work: the signs, the arithmetic and the verdict.

    Signs come from guard's log, git, test runs, files that the agent writes, its processes, its terminal and its
    session. Each source has a tier and a window; messages that only try to wake an agent, or acknowledge that, are noise.
    One looks back further for an agent whose own rhythm, or a prompt that proved needless, asks for it.
    """
    from guard.activity.assess import assess_activity, record_feedback

    if false_alarm or forget:
        record_feedback(
            guard, agent, task_id=task, false_alarm=false_alarm, forget=forget, reason=reason
        )
    report = assess_activity(
        guard, agent, task_id=task, lookback_minutes=lookback, all_sources=all_sources
    )
    guard.output.document(report, form, activity_text)
