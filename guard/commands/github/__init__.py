"""`guard github`: what guard's action calls, and what tells GitHub of a verdict."""

import click

from guard.commands.github import status, step


@click.group("github")
def command() -> None:
    """Work inside a GitHub workflow: the steps of guard's action, and a verdict for people to see."""


for verb in (step.prepare, step.step, step.publish, status.status):
    command.add_command(verb)
