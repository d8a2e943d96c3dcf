"""`guard plan`: one module per kind of verb."""

import click

from guard.commands.plan import help as helping
from guard.commands.plan import ingest as ingesting
from guard.commands.plan import show as looking
from guard.commands.plan import support as supporting
from guard.commands.plan import tasks as working
from guard.commands.plan import upkeep


@click.group("plan")
def command() -> None:
    """Coordinate agents on the tasks of a plan: who does what, what is audited, asked and due."""


for verb in (
    looking.load,
    looking.show,
    looking.next_task,
    looking.graph,
    working.dispatch,
    working.ready,
    working.audit,
    working.checkpoint,
    working.lost,
    working.done,
    helping.remediate,
    helping.health,
    helping.ask,
    helping.answer,
    supporting.assess,
    supporting.analyst,
    supporting.expand,
    supporting.delegate,
    supporting.support,
    ingesting.ingest,
    upkeep.outbox,
    upkeep.usage,
    upkeep.tick,
):
    command.add_command(verb)
