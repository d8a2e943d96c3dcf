"""`guard agent`: one module for the verbs that record, one for the verbs that show."""

import click

from guard.commands.agent import record as report
from guard.commands.agent import show


@click.group("agent")
def command() -> None:
    """Keep the registries of agents: register, update, list, await and kill agents."""


for verb in (
    report.spawn,
    report.update,
    report.finding,
    report.test,
    show.list_agents,
    show.show,
    show.wait,
    report.kill,
    report.import_agents,
):
    command.add_command(verb)
