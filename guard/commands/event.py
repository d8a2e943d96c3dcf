"""`guard event`."""

from typing import Any, get_args, get_origin

import click

from guard.commands.options import print_change, repeatable_option, settles_plan_rollbacks
from guard.context.invocation import Invocation
from guard.context.output import prints_report
from guard.errors import WrongUsage


@click.command("event")
@click.argument("kind", metavar="TYPE")
@click.argument("fields", nargs=-1, metavar="KEY=VALUE...")
@repeatable_option
@prints_report
@settles_plan_rollbacks
def command(
    guard: Invocation, kind: str, fields: tuple[str, ...], event_id: str | None, form: str
) -> None:
    """Record an event of the coordinator by its type.

    Write lists with commas and objects as JSON. Exit code 1, with the reason, if the state of the plan does not
    allow the event.
    """
    from pydantic import ValidationError

    from guard.coordinator.record import record
    from guard.core.base.fields import first_problem
    from guard.core.coordinator.decide import REQUESTS, load_plan

    request = REQUESTS.get(kind)
    if request is None or request is load_plan:
        names = ", ".join(sorted(name for name in REQUESTS if REQUESTS[name] is not load_plan))
        own = "use `guard plan load`" if request else f"use one of {names}"
        raise WrongUsage(f"{kind[:80]!r} is not an event that `guard event` records", own)
    known = request.fields_class.model_fields
    values = _values(guard, known, fields)
    try:
        parsed_request = request.parse(values)
    except ValidationError as error:
        takes = ", ".join(known) or "nothing"
        raise WrongUsage(f"{kind}: {first_problem(error)}", f"it takes {takes}") from None
    done = record(guard, parsed_request, event_id)
    print_change(guard, done, form)


def _values(guard: Invocation, known: dict[str, Any], fields: tuple[str, ...]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for field in fields:
        name, equals, text = field.partition("=")
        if not equals or name in values or name == "type":
            raise WrongUsage(
                f"{field[:80]!r} is not KEY=VALUE, or repeats a key",
                "quote the value for the shell",
            )
        values[name] = _value(guard, name, text, known.get(name))
    return values


def _value(guard: Invocation, name: str, text: str, field: Any) -> Any:
    from guard.coordinator.plan import find_task_id

    if name == "task_id":
        return find_task_id(guard, text)
    kind = get_origin(field.annotation) if field is not None else None
    if kind is dict or (kind is tuple and text.startswith("[")):
        return _document(name, text)
    if kind is tuple and get_args(field.annotation):
        return tuple(part.strip() for part in text.split(",") if part.strip())
    return text


def _document(name: str, text: str) -> Any:
    from guard.core.base.json_text import loads

    try:
        found = loads(text.encode())
    except ValueError as error:
        raise WrongUsage(f"{name} is not JSON: {error}", "quote the value for the shell") from None
    return tuple(found) if isinstance(found, list) else found
