"""A rollback that was killed half-way is seen to by the next command: finished or undone, if there is one."""

from collections.abc import Callable
from copy import copy
from functools import wraps
from typing import Any

import click

from guard.context.invocation import Invocation
from guard.rollback.journals import announced, has_journals


def see_to_killed(guard: Invocation) -> None:
    """Finish or undo a rollback that was killed: its half-swapped files are nobody's work."""
    if guard.repository_if_any is not None and has_journals(guard):
        _finish_or_undo(guard)


def see_to_unrecorded(guard: Invocation) -> None:
    """The same for what reads or changes the plan: also one that only lacks the record of its end."""
    if guard.repository_if_any is not None and (has_journals(guard) or announced(guard)):
        _finish_or_undo(guard)


def seen_to_first(command: click.Command, see_to: Callable[[Invocation], None]) -> click.Command:
    """The command, or every verb of it, that sees to a killed rollback when it is run, and not when its help is asked for."""
    twin = copy(command)
    if isinstance(twin, click.Group):
        twin.commands = {name: seen_to_first(verb, see_to) for name, verb in twin.commands.items()}
    elif callback := command.callback:

        @wraps(callback)
        def settled(*args: Any, **told: Any) -> Any:
            see_to(click.get_current_context().obj)
            return callback(*args, **told)

        twin.callback = settled
    return twin


def _finish_or_undo(guard: Invocation) -> None:
    from guard.rollback.rollback import finish_or_undo

    finish_or_undo(guard)
