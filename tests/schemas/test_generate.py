"""Schemas and models: both judge every example alike, and every mutant of one."""

import json
import tomllib
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, TypeAdapter

from guard import schemas as published
from guard.context.resources import folder
from guard.core.base.fields import is_whole
from guard.core.base.json_text import loads
from guard.core.log.table import event_types, view_kinds
from guard.core.probe.answer import Answer
from guard.schemas import generate as schemas
from guard.schemas.validate import validator
from tests.support import ROOT

EXAMPLES = ROOT / "tests" / "examples"
STATE_KINDS = (
    "agent-baseline",
    "agent-registry",
    "baseline",
    "breaker",
    "checkpoint",
    "coordinator",
    "event",
    "evidence",
    "findings",
    "global-registry",
    "machine-clocks",
    "manifest",
    "rollback-journal",
    "run",
    "settings",
    "team",
    "watched-agent",
    "worktree",
    "known-log",
    "trust-record",
)
KINDS = published.names()
ALL = sorted(path for path in EXAMPLES.glob("*/*/*") if path.parent.name in ("valid", "invalid"))


@cache
def adapters() -> dict[str, TypeAdapter[Any]]:
    return schemas.adapters()


def read(path: Path) -> Any:
    return tomllib.loads(path.read_text()) if path.suffix == ".toml" else loads(path.read_bytes())


@cache
def valid_examples(kind: str) -> list[Any]:
    return [read(path) for path in sorted((EXAMPLES / kind / "valid").iterdir())]


def schema_accepts(kind: str, document: Any) -> bool:
    return bool(validator(kind).is_valid(document))


def model_accepts(kind: str, document: Any) -> bool:
    try:
        if kind == "settings":
            adapters()[kind].validate_python(document)
            return True
        found = adapters()[kind].validate_json(json.dumps(document))
    except ValueError:
        return False
    return kind == "evidence" or all(is_whole(model) for model in models_in(found))


def models_in(value: Any) -> Iterator[BaseModel]:
    """The document and every model inside it, except an agent's answer, which may leave things out."""
    parts: Any = list(value.values()) if isinstance(value, dict) else value
    if isinstance(value, BaseModel) and not isinstance(value, Answer):
        yield value
        parts = [getattr(value, name) for name in type(value).model_fields]
    for part in parts if isinstance(parts, list | tuple) else ():
        yield from models_in(part)


@pytest.mark.parametrize("path", ALL, ids=lambda path: "-".join(path.relative_to(EXAMPLES).parts))
def test_schema_and_model_say_what_the_folder_says(path: Path) -> None:
    kind, verdict = path.parts[-3], path.parent.name == "valid"
    document = read(path)
    assert (schema_accepts(kind, document), model_accepts(kind, document)) == (verdict, verdict)


def test_every_kind_has_examples_of_both_sorts() -> None:
    few = {}
    for kind in KINDS:
        wanted = (2, 4) if kind in STATE_KINDS else (1, 2)
        counts = [len(list((EXAMPLES / kind / sort).glob("*"))) for sort in ("valid", "invalid")]
        if counts[0] < wanted[0] or counts[1] < wanted[1]:
            few[kind] = counts
    assert not few
    assert {path.parts[-3] for path in ALL} == set(KINDS)


def test_every_event_type_has_a_valid_example() -> None:
    assert {document["type"] for document in valid_examples("event")} == set(event_types())


def test_the_schemas_are_current() -> None:
    assert schemas.stale_names(folder("schemas")) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [("run.schema.json", "{}"), ("old.schema.json", "{}"), ("event.schema.json", None)],
    ids=["changed by hand", "of a kind that is gone", "missing"],
)
def test_a_schema_that_is_not_current_is_named(name: str, text: str | None, tmp_path: Path) -> None:
    for file, wanted in schemas.generate().items():
        (tmp_path / file).write_text(wanted)
    (tmp_path / name).unlink(missing_ok=True)
    if text is not None:
        (tmp_path / name).write_text(text)
    assert schemas.stale_names(tmp_path) == [name]


def test_every_state_and_output_document_has_a_schema() -> None:
    documents = [*(kind.document for kind in view_kinds()), *schemas.outputs()]
    named = {str(document.model_fields["schema_"].default).split("/")[1] for document in documents}
    assert set(KINDS) == named | set(STATE_KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_is_a_schema(kind: str) -> None:
    schema = published.load(kind)
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == schemas.DIALECT
    assert "do not edit" in schema["$comment"]


def patterns_in(node: Any) -> Iterator[str]:
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    if isinstance(node, dict) and isinstance(node.get("pattern"), str):
        yield node["pattern"]
    for child in children:
        yield from patterns_in(child)


@pytest.mark.parametrize("kind", KINDS)
def test_every_pattern_is_anchored_at_both_ends(kind: str) -> None:
    loose = [p for p in patterns_in(published.load(kind)) if not (p[0] == "^" and p[-1] == "$")]
    assert not loose


def test_a_document_is_read_by_its_published_names_only() -> None:
    for kind in [kind for kind in KINDS if kind not in ("event", "settings")]:
        document = dict(valid_examples(kind)[0])
        document["schema_"] = document.pop("schema")
        assert (kind, schema_accepts(kind, document)) == (kind, False)
        assert (kind, model_accepts(kind, document)) == (kind, False)


@pytest.mark.parametrize("version", [1.0, True, "1", 0, None], ids=repr)
def test_the_version_of_a_record_is_the_number_one(version: Any) -> None:
    document = {**valid_examples("event")[0], "v": version}
    assert not schema_accepts("event", document)
    assert not model_accepts("event", document)


OTHER_VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 0.0, 1.0, 0.5, 100, 101, 1e300),
    *(2**31, 2**31 + 1, 2**53, 2**53 + 1, 2**63, 2**64, 10**40, -(10**40), 999_999, 1_000_000),
    *("", " ", "x", "x\n", "x y", "é", "-x", "x" * 128, "x" * 129, "x" * 512, "é" * 513),
    *(
        "x" * 65536,
        "x" * 65537,
        "0" * 64,
        "0" * 64 + "\n",
        "0" * 63,
        "A" * 64,
        "working",
        "guard/run/3",
    ),
    *(
        "2026-02-28T00:00:00Z",
        "2026-02-31T00:00:00Z",
        "2026-01-31T24:00:00Z",
        "2026-01-31T23:59:60Z",
    ),
    *("0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"),
    *("2026-01-31T12:00:00z", "2026-01-31 12:00:00Z", "2026-01-31T12:00:00+00:00", "2026-01-31"),
    *(
        "2026-01-31T12:00:00.1234567Z",
        "2026-01-31T12:00:00.Z",
        "2026-01-31T12:00:00Z\n",
        "1769860800",
    ),
    *([], [None], ["x"], [[]], {}, {"x": 1}, {"": None}),
]
OTHER_KEYS = ["", "x", "x\n", "run", "progress", "working", "store", "$ref", "Schema"]


def places(node: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the document can be changed: every key and index, nested ones too."""
    pairs = (
        node.items()
        if isinstance(node, dict)
        else enumerate(node)
        if isinstance(node, list)
        else ()
    )
    for key, child in pairs:
        yield (*at, key)
        yield from places(child, (*at, key))


def similar(value: Any) -> list[Any]:
    """What is nearly this value."""
    if isinstance(value, str):
        return [value + "\n", value.upper(), value[:-1], [value]]
    if isinstance(value, bool):
        return [int(value), str(value).lower()]
    if isinstance(value, int | float):
        return [float(value), str(value), -value, value + 2**53, bool(value), 10**30 + int(value)]
    return [[value], {"x": value}]


@st.composite
def mutants(draw: st.DrawFn, kind: str) -> Any:
    document = deepcopy(draw(st.sampled_from(valid_examples(kind))))
    for _ in range(draw(st.integers(1, 3))):
        found = list(places(document))
        if not found:
            return deepcopy(draw(st.sampled_from(OTHER_VALUES)))
        *way, last = draw(st.sampled_from(found))
        node = document
        for key in way:
            node = node[key]
        action = draw(st.sampled_from(["drop", "add", "replace", "nearly"]))
        if action == "drop":
            del node[last]
        elif action == "add" and isinstance(node, dict):
            key = draw(st.sampled_from(OTHER_KEYS))
            node[key] = deepcopy(draw(st.sampled_from(OTHER_VALUES)))
        else:
            choice = similar(node[last]) if action == "nearly" else OTHER_VALUES
            node[last] = deepcopy(draw(st.sampled_from(choice)))
    return document


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=150)
@given(data=st.data())
def test_schema_and_model_agree_on_every_mutant(kind: str, data: st.DataObject) -> None:
    document = data.draw(mutants(kind))
    assert schema_accepts(kind, document) == model_accepts(kind, document)


def test_a_view_whose_document_changes_gets_a_new_number() -> None:
    """What a view's document is, by its number. If this fails: raise the number, then write the new digest down."""
    recorded = json.loads(Path(__file__).with_name("view_formats.json").read_text())
    found = {}
    for kind in view_kinds():
        number = kind.document.model_fields["schema_"].default
        shape = json.dumps(without_texts(published.load(number.split("/")[1])), sort_keys=True)
        found[number] = sha256(shape.encode()).hexdigest()[:16]
    assert found == recorded


def without_texts(schema: Any) -> Any:
    if isinstance(schema, list):
        return [without_texts(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    texts = {"description", "title", "$id", "$comment"}
    return {
        name: without_texts(part)
        for name, part in schema.items()
        if name not in texts or not isinstance(part, str)
    }
