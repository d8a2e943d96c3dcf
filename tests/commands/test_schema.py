"""`guard schema`: the list, one schema, and a name that is misspelt."""

import json

import pytest

from guard import schemas
from guard.schemas.validate import validator
from tests.support import ROOT, run


def test_the_list_has_every_schema_file() -> None:
    result = run("schema", "--format", "json")
    assert result.code == 0
    assert list(validator("schemas").iter_errors(result.json)) == []
    files = {path.name.split(".")[0] for path in (ROOT / "schemas").glob("*.schema.json")}
    assert set(result.json["schemas"]) == files
    assert run("schema").out.split() == schemas.names()


def test_a_schema_is_printed_as_it_is_published() -> None:
    result = run("schema", "agent-registry")
    published = (ROOT / "schemas" / "agent-registry.schema.json").read_text()
    assert (result.code, result.json) == (0, json.loads(published))


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("evnt", "did you mean event?"),
        ("agent-registri", "did you mean agent-registry?"),
        ("../pyproject", "`guard schema` lists all schemas"),
        ("", "`guard schema` lists all schemas"),
    ],
    ids=["a letter is missing", "a letter is wrong", "a path", "nothing"],
)
def test_a_name_that_is_none_gets_a_hint(name: str, hint: str) -> None:
    result = run("schema", name)
    assert (result.code, result.out) == (2, "")
    assert result.err == f"guard: there is no schema {name!r}\nhint: {hint}\n"
