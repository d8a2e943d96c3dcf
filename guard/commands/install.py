"""`guard install`."""

from functools import partial
from typing import Any

import click

from guard.context.invocation import Invocation
from guard.context.output import prints_report
from guard.install import agent_hooks, git_options, options
from guard.install.apply import DoesNotFit
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
    """Install guard's hooks in an agent's settings or a git repository.

    The hooks are for you alone, and kept out of commits, unless you say `--project`. All other settings stay as they are.
    Guard keeps a git hook that exists already, and calls it first. Installing
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
    target = agent_hooks.choose_target(guard, install_options)
    try:
        report = agent_hooks.install_hooks(guard, target, dry_run=install_options.dry_run)
    except DoesNotFit:
        if form == "text":
            guard.output.result(_by_hand(target))
        raise
    with_diff = install_options.with_diff or guard.output.verbosity > 0
    guard.output.document(report, form, partial(options.text, with_diff=with_diff))


def _by_hand(target: options.InstallTarget) -> str:
    hooks = {**target.cli.skeleton, "hooks": target.cli.hooks(target.command)}
    return f"What would be put into it:\n{render(hooks).rstrip()}"
