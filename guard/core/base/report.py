"""What every document that a command prints has."""

from pydantic import Field

from guard.core.base.fields import Frozen


class Report(Frozen):
    """One document on stdout."""

    schema_: str = Field(alias="schema")
