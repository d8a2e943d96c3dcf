"""`guard install`."""

from pathlib import Path

import click

from guard.context.invocation import Invocation
from guard.context.output import format_option
from guard.install import git_options as git_asked
from guard.install.apply import DoesNotFit, put_piece
from guard.install.json_edit import render
from guard.install.options import (
    InstallTarget,
    install_target,
    refuse_foreign_options,
    report,
    text,
    where_options,
)


@click.command("install")
@where_options
@click.option(
    "--command",
    "told",
    metavar="CMD",
    help="The command by which the hooks call guard; by default its name or path.",
)
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
    told: str | None,
    form: str,
) -> None:
    """Install guard's hooks in an agent's settings or in a git repository.

    All other settings stay as they are. Guard keeps a git hook that exists already, and calls it first. Installing
    again changes nothing, or replaces the hooks of an older guard.
    """
    scopes = {"user": user, "project": project, "local": local}
    refuse_foreign_options(agent, scopes, plugin, bool(hooks or shared))
    if agent == git_asked.AGENT:
        done = git_asked.install_git_hooks(
            guard, hooks, shared=shared, dry_run=dry_run, command=told
        )
        guard.output.document(done, form, git_asked.text)
        return
    wanted = install_target(guard, agent, scopes, plugin, told)
    try:
        changes = [
            put_piece(piece, wanted.root, guard.environ, dry_run=True) for piece in wanted.pieces
        ]
        if not dry_run:
            # The dry run has shown that each piece fits.
            changes = [
                put_piece(piece, wanted.root, guard.environ, dry_run=False)
                for piece in wanted.pieces
            ]
    except DoesNotFit:
        if form == "text":
            guard.output.result(_by_hand(wanted))
        raise
    guard.output.document(report(wanted, changes, "install", dry_run=dry_run), form, text)


def _by_hand(wanted: InstallTarget) -> str:
    hooks = {**wanted.cli.skeleton, "hooks": wanted.cli.hooks(wanted.command)}
    return f"What would be put into it:\n{render(hooks).rstrip()}"
