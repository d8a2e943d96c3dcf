"""`guard completion`."""

import click
from click.shell_completion import get_completion_class

from guard.context.invocation import Invocation


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script for a shell.

    For bash: eval "$(guard completion bash)"
    """
    guard: Invocation = ctx.obj
    completion = get_completion_class(shell)
    assert completion is not None
    guard.output.result(
        completion(ctx.find_root().command, {}, "guard", "_GUARD_COMPLETE").source()
    )
