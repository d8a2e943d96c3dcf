"""Field types and base models of events, state files and outputs."""

from datetime import UTC, datetime
from typing import Annotated, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetPydanticSchema,
    StringConstraints,
    ValidationError,
)
from pydantic_core import core_schema

from guard.core.base.text import ID_PATTERN

_INSTANT_PATTERN = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?Z$"
_AWARE = core_schema.datetime_schema(tz_constraint="aware")


def _in_utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)


def _instant() -> GetPydanticSchema:
    # Pydantic checks this in Rust, because a replay does it a million times.
    on_disk = core_schema.chain_schema(
        [core_schema.str_schema(pattern=_INSTANT_PATTERN), {**_AWARE, "strict": False}]
    )
    return GetPydanticSchema(
        get_pydantic_core_schema=lambda _source, _handler: core_schema.json_or_python_schema(
            json_schema=on_disk,
            python_schema=core_schema.no_info_after_validator_function(_in_utc, _AWARE),
        ),
        get_pydantic_json_schema=lambda _schema, _handler: {
            "type": "string",
            "format": "date-time",
            "pattern": _INSTANT_PATTERN,
        },
    )


Instant = Annotated[datetime, _instant()]
BootSeconds = Annotated[float, Field(ge=-1e12, le=1e12, allow_inf_nan=False)]
"""A reading of the boot clock; may be negative if `GUARD_NOW` replaces the clock."""
Id = Annotated[str, StringConstraints(pattern=ID_PATTERN)]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Oid = Annotated[str, StringConstraints(pattern=r"^(?:[0-9a-f]{40}|[0-9a-f]{64})$")]
"""The id of a git object: SHA-1, or SHA-256 in repositories of that format."""
Seq = Annotated[int, Field(ge=1, le=2**53)]
Count = Annotated[int, Field(ge=0, le=2**53)]
Incarnation = Annotated[int, Field(ge=1, le=2**31)]
"""Which agent of this name it is: an id may be used again."""
Percent = Annotated[int, Field(ge=0, le=100)]
Line = Annotated[str, StringConstraints(max_length=512)]
Text = Annotated[str, StringConstraints(max_length=65536)]


class Frozen(BaseModel):
    """The base of every model: immutable, strict, and closed to unknown keys.

    Its validator is built when it is first used, because most commands use few of the models that they load.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        serialize_by_alias=True,
        json_schema_serialization_defaults_required=True,
        defer_build=True,
    )


M = TypeVar("M", bound=Frozen)


def is_whole(document: BaseModel) -> bool:
    """Tell whether every field was given: defaults are for making a document, not for reading one."""
    return len(document.__pydantic_fields_set__) == len(type(document).__pydantic_fields__)


def parse_document(model: type[M], data: bytes) -> M:
    """Parse and check a document; raise ValueError, with the place, if it is wrong."""
    try:
        document = model.model_validate_json(data)
    except ValidationError as error:
        raise ValueError(first_problem(error)) from None
    if not is_whole(document):
        missing = sorted(set(model.model_fields) - document.model_fields_set)
        raise ValueError(f"{missing[0].rstrip('_')}: Field required")
    return document


def first_problem(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg']}" if place else str(first["msg"])


class Report(Frozen):
    """One document on stdout."""

    schema_: str = Field(alias="schema")


USERS = {"user_only": True}
"""Marks a setting that the project's file cannot set, because the agent can edit that file."""

RAISED = {"only_raised": True}
"""Marks a limit that the project's file cannot lower: an agent could leave guard no time to save its work."""


class Section(Frozen):
    """A table of the configuration."""
