"""`guard install`."""

from typing import Any

import click

from guard.context.invocation import Invocation
from guard.context.output import prints_report
from guard.install import git_options, options
from guard.install.apply import DoesNotFit, put_piece
from guard.install.json_edit import render


@click.command("install")
@options.where_options
@click.option(
    "--command",
    metavar="CMD",
    help="The command by which the hooks call guard; by default its name or path.",
)
@prints_report
def command(guard: Invocation, /, form: str, **given: Any) -> None:
    """Install guard's hooks in an agent's settings or in a git repository.

    All other settings stay as they are. Guard keeps a git hook that exists already, and calls it first. Installing
    again changes nothing, or replaces the hooks of an older guard.
    """
    install_options = options.InstallOptions(**given)
    if install_options.agent == git_options.AGENT:
        done = git_options.install_git_hooks(
            guard,
            install_options.hooks,
            shared=install_options.shared,
            dry_run=install_options.dry_run,
            command=install_options.command,
        )
        guard.output.document(done, form, git_options.text)
        return
    target = options.install_target(guard, install_options)
    try:
        # The dry run shows that each piece fits before any is written.
        for dry_run in (True,) if install_options.dry_run else (True, False):
            changes = [
                put_piece(piece, target.root, guard.environ, dry_run=dry_run)
                for piece in target.pieces
            ]
    except DoesNotFit:
        if form == "text":
            guard.output.result(_by_hand(target))
        raise
    report = options.report(target, changes, "install", dry_run=install_options.dry_run)
    guard.output.document(report, form, options.text)


def _by_hand(target: options.InstallTarget) -> str:
    hooks = {**target.cli.skeleton, "hooks": target.cli.hooks(target.command)}
    return f"What would be put into it:\n{render(hooks).rstrip()}"
