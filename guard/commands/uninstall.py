"""`guard uninstall`."""

from functools import partial
from typing import Any

import click

from guard.context.invocation import Invocation
from guard.context.output import prints_report
from guard.install import agent_hooks, git_options, options


@click.command("uninstall")
@options.where_options
@prints_report
def command(guard: Invocation, /, form: str, **given: Any) -> int:
    """Remove guard's hooks from an agent's settings or a git repository.

    Everything else stays as it is; entries that only guard's hooks needed go with them. Guard restores the git
    hooks that were there before. Exit code 1 if a hook was changed by hand: guard leaves it in place.
    """
    install_options = options.InstallOptions(**given)
    if install_options.agent == git_options.AGENT:
        done = git_options.uninstall_git_hooks(
            guard,
            install_options.hooks,
            shared=install_options.shared,
            dry_run=install_options.dry_run,
        )
        guard.output.document(done, form, git_options.text)
        return 1 if any(hook.step == "left" for hook in done.hooks) else 0
    report = agent_hooks.uninstall_hooks(guard, install_options)
    with_diff = install_options.with_diff or guard.output.verbosity > 0
    guard.output.document(report, form, partial(options.text, with_diff=with_diff))
    return 0
