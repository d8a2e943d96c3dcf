"""`guard dashboard`."""

import click

from guard.context.invocation import Invocation


@click.command("dashboard")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="N",
    help="Listen on this port; by default on a free one.",
)
@click.option("--read-only", is_flag=True, help="Refuse every action; only show.")
@click.option(
    "--all", "every", is_flag=True, help="Show every workspace of this user, not only this one."
)
@click.pass_obj
def command(guard: Invocation, port: int, read_only: bool, every: bool) -> None:
    """Show runs in a browser while they go on: iterations, agents, plan, and the log.

    Prints the address to open, with a token that is new at each start, and serves until Ctrl-C, to this machine
    alone. It needs the packages of the extra `web`: pip install 'completion-guard[web]'.
    """
    from guard.dashboard.serve import serve_dashboard

    serve_dashboard(guard, port=port, read_only=read_only, every=every)
