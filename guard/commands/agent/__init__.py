"""`guard agent`: one module per kind of verb."""

import click

from guard.commands.agent import import_registry as importing
from guard.commands.agent import kill as ending
from guard.commands.agent import report as reporting
from guard.commands.agent import show as looking


@click.group("agent")
def command() -> None:
    """Keep the registries of agents: who is active, who has ended, and how that is known."""


for verb in (
    reporting.spawn,
    reporting.update,
    reporting.finding,
    reporting.test,
    looking.list_agents,
    looking.show,
    looking.wait,
    ending.kill,
    importing.import_agents,
):
    command.add_command(verb)
