"""The options that every verb takes, and how each tells what came of it."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from guard.commands.options import event_id_option, settles_plan_rollbacks
from guard.context.ids import given_id
from guard.context.invocation import Invocation
from guard.context.output import format_option
from guard.core.coordinator.requests import Request

agent_option = click.option(
    "--agent",
    "agent_id",
    required=True,
    metavar="ID",
    callback=given_id("an agent id"),
    help="The agent.",
)
task_option = click.option("--task", metavar="TASK", help="The task that it is about.")


def recorded(function: Callable[..., None]) -> Callable[..., None]:
    """The options of all verbs that record something; what cannot be recorded is the caller's fault."""

    @wraps(function)
    def checked(*given: Any, **options: Any) -> None:
        from guard.coordinator.record import reject_invalid

        with reject_invalid():
            function(*given, **options)

    return event_id_option(format_option(click.pass_obj(settles_plan_rollbacks(checked))))


def tell(guard: Invocation, request: Request, event_id: str | None, form: str) -> None:
    """Record what was asked for, and say what came of it."""
    from guard.coordinator.record import record

    tell_of(guard, record(guard, request, event_id), form)


def tell_of(guard: Invocation, done: Any, form: str) -> None:
    """Say what came of a request."""
    from guard.core.coordinator.report import change_report, change_text

    report = change_report(done.events, done.state, repeated=done.repeated)
    guard.output.document(report, form, lambda one: change_text(one, done.state))
