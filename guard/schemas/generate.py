"""Generate JSON Schemas (Draft 2020-12) from the models, one per state file and output document."""

import dataclasses
import json
from functools import reduce
from importlib import import_module
from operator import or_
from pathlib import Path
from pkgutil import walk_packages
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Discriminator, Field, TypeAdapter, create_model
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import DictSchema

from guard import core
from guard.context.known_log import KnownLog
from guard.context.project_trust import TrustRecord
from guard.context.workspace import WorktreeEntry
from guard.core.base.docstrings import describe_all, subclasses
from guard.core.base.fields import Count, Digest, Frozen, Report, Section, Seq
from guard.core.check.evidence import Evidence
from guard.core.config.settings import TABLES, TOP, Settings, load_table
from guard.core.log.record import RECORD_VERSION
from guard.core.log.replay import Checkpoint
from guard.core.log.table import event_types, view_kinds
from guard.core.rollback.journal import RollbackJournal
from guard.core.snapshots.snapshot import Manifest
from guard.schemas import SUFFIX

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_WRITTEN_BY_PEOPLE = frozenset({"evidence", "settings"})
"""People may leave out fields with a default in these documents; guard writes every field."""


def record_adapter() -> TypeAdapter[Any]:
    """Return the type of a whole line of the log."""
    version = Annotated[int, Field(ge=RECORD_VERSION, le=RECORD_VERSION)]
    models: list[Any] = [
        create_model(
            f"{cls.__name__}Record",
            __base__=cls,
            __doc__=cls.__doc__,
            v=(version, ...),
            seq=(Seq, ...),
            more=(Count, ...),
            prev=(Digest, ...),
            hash=(Digest, ...),
        )
        for cls in event_types().values()
    ]
    union: Any = Annotated[reduce(or_, models), Discriminator("type")]
    return TypeAdapter(union)


def worktree_model() -> type[BaseModel]:
    """Return the model of an entry of the index of work trees."""
    schema: Any = (Literal["guard/worktree/1"], Field("guard/worktree/1", alias="schema"))
    kinds: dict[Any, Any] = {str: str, int: Count}
    found: dict[str, Any] = {
        field.name: (kinds[field.type], ...) for field in dataclasses.fields(WorktreeEntry)
    }
    return create_model(
        "WorktreeEntry", __base__=Frozen, __doc__=WorktreeEntry.__doc__, schema_=schema, **found
    )


def settings_model() -> type[Section]:
    """Return the type of a configuration file: every table, and the keys outside all tables."""
    tables: dict[str, Any] = {
        name: (load_table(name), load_table(name).model_construct())
        for name in TABLES
        if name != TOP
    }
    return create_model("Settings", __base__=load_table(TOP), __doc__=Settings.__doc__, **tables)


def outputs() -> list[type[Report]]:
    """Return every document that a command prints; this loads all of the core."""
    for module in walk_packages(core.__path__, "guard.core."):
        import_module(module.name)
    reports = [report for report in subclasses(Report) if report.__module__.startswith("guard.")]
    # A report without a default schema is only the base of others.
    return [report for report in reports if not report.model_fields["schema_"].is_required()]


def adapters() -> dict[str, TypeAdapter[Any]]:
    """Return the type of every published document, by its kind."""
    documents: list[type[BaseModel]] = [kind.document for kind in view_kinds()]
    documents += [
        Checkpoint,
        Evidence,
        Manifest,
        RollbackJournal,
        worktree_model(),
        KnownLog,
        TrustRecord,
    ]
    documents += outputs()
    named = {_kind(document): TypeAdapter(document) for document in documents}
    return {"event": record_adapter(), "settings": TypeAdapter(settings_model()), **named}


def _kind(document: type[BaseModel]) -> str:
    return str(document.model_fields["schema_"].default).split("/")[1]


# `python -m guard.schemas` writes the schemas; `python -m guard.schemas --check` tells whether they are current.
def generate() -> dict[str, str]:
    # Only loaded models get descriptions.
    outputs()
    describe_all()
    return {f"{kind}{SUFFIX}": _text(kind, adapter) for kind, adapter in adapters().items()}


class _Closed(GenerateJsonSchema):
    """Refuses keys that do not match the pattern of a mapping's keys, as the models do."""

    def dict_schema(self, schema: DictSchema) -> JsonSchemaValue:
        made = super().dict_schema(schema)
        return {**made, "additionalProperties": False} if "patternProperties" in made else made


def _text(kind: str, adapter: TypeAdapter[Any]) -> str:
    mode: Literal["validation", "serialization"] = (
        "validation" if kind in _WRITTEN_BY_PEOPLE else "serialization"
    )
    schema = {
        "$schema": DIALECT,
        "$id": f"urn:completion-guard:{kind}:1",
        "$comment": "Generated from the models by `python -m guard.schemas`; do not edit.",
        **adapter.json_schema(mode=mode, by_alias=True, schema_generator=_Closed),
    }
    return json.dumps(schema, indent=2, sort_keys=True) + "\n"


def stale_names(target: Path) -> list[str]:
    """Return the names of schema files that differ from the models."""
    wanted = generate()
    present = {path.name for path in target.glob(f"*{SUFFIX}")}
    differing = {
        name
        for name, text in wanted.items()
        if name not in present or (target / name).read_text(encoding="utf-8") != text
    }
    return sorted(differing | (present - set(wanted)))
