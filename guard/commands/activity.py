"""`guard activity`."""

import click

from guard.commands.options import activity_options
from guard.context.invocation import Invocation
from guard.context.output import prints_report
from guard.core.activity.report import activity_text


@click.command("activity")
@click.argument("agent")
@activity_options
@click.option(
    "--all-sources", is_flag=True, help="Ask every source, even if the first ones are conclusive."
)
@click.option(
    "--false-alarm",
    is_flag=True,
    help="Record that the last prompt to the agent was not needed; look back further from now on.",
)
@click.option("--forget", is_flag=True, help="Forget what was learned from false alarms.")
@click.option("--reason", default="", metavar="TEXT", help="The reason, for the log.")
@prints_report
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
    """Show whether an agent is at work, with the signs, the score and the verdict.

    Guard looks for signs of activity in its log, in git, in test runs, in the files that the agent writes, and in
    its processes, its terminal and its session. Each source has a tier and a time window. Messages that only try to
    wake the agent, and its acknowledgements of them, do not count.

    Guard looks back further for an agent whose own rhythm is slow, or after a prompt that was not needed. Exit code
    0, whatever the verdict is.
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
