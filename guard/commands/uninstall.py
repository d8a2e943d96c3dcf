"""`guard uninstall`."""

from pathlib import Path

import click

from guard.context.invocation import Invocation
from guard.context.output import format_option
from guard.install import git_options as git_asked
from guard.install.apply import take_piece
from guard.install.options import (
    install_target,
    refuse_foreign_options,
    report,
    text,
    where_options,
)


@click.command("uninstall")
@where_options
@format_option
@click.pass_obj
def command(
    guard: Invocation,
    agent: str,
    user: bool,
    project: bool,
    local: bool,
    plugin: Path | None,
    hooks: tuple[str, ...],
    shared: bool,
    dry_run: bool,
    form: str,
) -> int:
    """Remove guard's hooks from an agent's settings or from a git repository.

    Everything else stays as it is; entries that only guard's hooks needed go with them. Guard restores the git
    hooks that were there before. Exit code 1 if a hook was changed by hand: guard leaves it in place.
    """
    scopes = {"user": user, "project": project, "local": local}
    refuse_foreign_options(agent, scopes, plugin, bool(hooks or shared))
    if agent == git_asked.AGENT:
        done = git_asked.uninstall_git_hooks(guard, hooks, shared=shared, dry_run=dry_run)
        guard.output.document(done, form, git_asked.text)
        return 1 if any(one.step == "left" for one in done.hooks) else 0
    wanted = install_target(guard, agent, scopes, plugin)
    # The last piece goes first, because the folders made for the first piece may hold the others.
    pieces = reversed(wanted.pieces)
    changes = [take_piece(piece, wanted.root, guard.environ, dry_run=dry_run) for piece in pieces]
    guard.output.document(report(wanted, changes, "uninstall", dry_run=dry_run), form, text)
    return 0
