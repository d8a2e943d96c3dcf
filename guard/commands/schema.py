"""`guard schema`."""

import json
from difflib import get_close_matches

import click

from guard.context.invocation import Invocation
from guard.context.output import prints_report
from guard.core.log.reports import SchemaList
from guard.errors import WrongUsage


@click.command("schema")
@click.argument("name", required=False)
@prints_report
def command(guard: Invocation, name: str | None, form: str) -> None:
    """Print a JSON Schema, or list all schemas.

    A schema is always JSON; --format applies to the list.
    """
    from guard.schemas import generate as schemas

    if name is None:
        report = SchemaList(schemas=tuple(schemas.names()))
        guard.output.document(report, form, lambda found: "\n".join(found.schemas))
        return
    try:
        guard.output.result(json.dumps(schemas.load(name), indent=2))
    except LookupError:
        near = get_close_matches(name, schemas.names(), n=1)
        hint = f"did you mean {near[0]}?" if near else "`guard schema` lists all schemas"
        raise WrongUsage(f"there is no schema {name!r}", hint) from None
