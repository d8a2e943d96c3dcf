"""`guard uninstall`."""

from pathlib import Path

import click

from guard.installing.asked import asked, report, text, where_options
from guard.installing.changing import take
from guard.invocation import Invocation
from guard.output import format_option


@click.command("uninstall")
@where_options
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@format_option
@click.pass_obj
def command(
    guard: Invocation,
    agent: str,
    user: bool,
    project: bool,
    local: bool,
    plugin: Path | None,
    dry_run: bool,
    form: str,
) -> None:
    """Take guard's hooks out of an agent's own settings.

    Everything else stays as it is; what only guard's hooks had made necessary goes with them.
    """
    scopes = {"user": user, "project": project, "local": local}
    wanted = asked(guard, agent, scopes, plugin)
    # The last that came goes first: the folders that were made for the first held the others too.
    pieces = reversed(wanted.pieces)
    changes = [take(piece, wanted.root, guard.environ, dry_run=dry_run) for piece in pieces]
    guard.output.document(report(wanted, changes, "uninstall", dry_run=dry_run), form, text)
