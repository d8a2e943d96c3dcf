"""`guard schema`."""

import json

import click

from guard import schemas
from guard.context.invocation import Invocation
from guard.context.output import prints_report
from guard.errors import WrongUsage


@click.command("schema")
@click.argument("name", required=False)
@prints_report
def command(guard: Invocation, name: str | None, form: str) -> None:
    """Print a JSON Schema, or list all schemas.

    A schema is always JSON; --format applies to the list.
    """
    if name is None:
        _list(guard, form)
        return
    try:
        guard.output.result(json.dumps(schemas.load(name), indent=2))
    except LookupError:
        from difflib import get_close_matches

        near = get_close_matches(name, schemas.names(), n=1)
        hint = f"did you mean {near[0]}?" if near else "`guard schema` lists all schemas"
        raise WrongUsage(f"there is no schema {name!r}", hint) from None


def _list(guard: Invocation, form: str) -> None:
    if form == "text":
        guard.output.result("\n".join(schemas.names()))
        return
    from guard.core.log.reports import SchemaList

    guard.output.document(SchemaList(schemas=tuple(schemas.names())), form, str)
