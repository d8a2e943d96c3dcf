"""`guard plan`: one module per group of verbs."""

import click

from guard.commands.plan import show, support, tasks, upkeep


@click.group("plan")
def command() -> None:
    """Coordinate agents on the tasks of a plan."""


for verb in (
    show.load,
    show.show,
    show.next_task,
    show.graph,
    tasks.dispatch,
    tasks.ready,
    tasks.audit,
    tasks.checkpoint,
    tasks.lost,
    tasks.done,
    support.remediate,
    support.health,
    support.ask,
    support.answer,
    support.assess,
    support.analyst,
    support.expand,
    support.delegate,
    support.support,
    upkeep.ingest,
    upkeep.outbox,
    upkeep.usage,
    upkeep.tick,
):
    command.add_command(verb)
