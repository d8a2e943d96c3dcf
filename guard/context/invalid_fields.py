"""Refuse what a user or an agent gives if it cannot be recorded."""

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import ValidationError

from guard.core.base.fields import first_problem
from guard.errors import WrongUsage


@contextmanager
def refuse_invalid_fields(hint: str) -> Iterator[None]:
    """Raise WrongUsage, with the name of the field, for an event that does not validate."""
    try:
        yield
    except ValidationError as error:
        raise WrongUsage(f"this cannot be recorded: {first_problem(error)}", hint) from None
