"""`guard status`."""

import click

from guard.core.listing_agents import status_text
from guard.invocation import Invocation
from guard.output import format_option


@click.command("status")
@format_option
@click.pass_obj
def command(guard: Invocation, form: str) -> None:
    """Show every task with its agents, and which of them are alive.

    Agents whose tmux session or process is gone are marked as ended first.
    """
    from guard.monitoring import overview

    guard.output.document(overview(guard), form, status_text)
