"""`guard plan`: one module per kind of verb."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from guard.commands.plan import helping, ingesting, looking, supporting, upkeep, working
from guard.rollback.pending import see_to_unrecorded


@click.group("plan")
def command() -> None:
    """Coordinate agents on the tasks of a plan: who does what, what is audited, asked and due."""


def _settling(callback: Callable[..., Any]) -> Callable[..., Any]:
    """The verb, once a killed rollback is seen to; not the group, which also runs for the help of a verb."""

    @wraps(callback)
    def settled(*args: Any, **told: Any) -> Any:
        see_to_unrecorded(click.get_current_context().obj)
        return callback(*args, **told)

    return settled


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
    assert verb.callback is not None
    verb.callback = _settling(verb.callback)
    command.add_command(verb)
