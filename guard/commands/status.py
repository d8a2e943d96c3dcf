"""`guard status`."""

from typing import NoReturn

import click

from guard.context.invocation import Invocation
from guard.context.output import prints_report
from guard.core.activity.status_report import status_text
from guard.errors import WrongUsage


@click.command("status")
@click.option(
    "--no-activity-check",
    is_flag=True,
    help="Judge only by the age of each agent's last report, not by its activity.",
)
@click.option(
    "--watch",
    is_flag=True,
    help="Update the output whenever something changes, until Ctrl-C; JSON is one document per line.",
)
@click.option(
    "--fleet",
    is_flag=True,
    help="Show the agents, runs and open breakers of all machines and repositories of the PostgreSQL database.",
)
@prints_report
def command(
    guard: Invocation, no_activity_check: bool, watch: bool, fleet: bool, form: str
) -> None:
    """Show every task with its agents, and which of them are alive, at work or stale.

    Guard first marks agents as ended whose tmux session or process is gone. By the age of its last report an agent
    is `fresh` (under 2 hours), `warning` (to 6), `critical` (to 12) or `auto_resume` (over 12); an agent that is at
    work is at most `warning`. `guard activity AGENT` shows the signs of one agent.
    """
    if fleet:
        _show_fleet(guard, form, watch=watch)
        return
    from guard.activity.survey import survey

    if watch:
        _watch(guard, form, activity=not no_activity_check)
    live = guard.output.live()
    try:
        report = survey(
            guard,
            activity=not no_activity_check,
            progress=lambda done, of: live.show_progress(f"looking at agents; {done} of {of}"),
        )
    finally:
        live.clear()
    guard.output.document(report, form, status_text)


def _show_fleet(guard: Invocation, form: str, *, watch: bool) -> None:
    from guard.core.fleet.report import fleet_text
    from guard.fleet import look_over_fleet

    if watch:
        raise WrongUsage("--watch follows one workspace", "leave out --watch or --fleet")
    guard.output.document(look_over_fleet(guard), form, fleet_text)


def _watch(guard: Invocation, form: str, *, activity: bool) -> NoReturn:
    from guard.activity.watch import PrintedStatus, watch_status

    if form == "json" or not guard.output.is_drawn_on:
        watch_status(guard, PrintedStatus(guard, form), activity=activity)
    from guard.activity.live_table import Screen

    with Screen() as screen:
        watch_status(guard, screen, activity=activity)
