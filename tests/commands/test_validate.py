"""`guard validate`: what is valid, what is not, where and why, and files that were made to do harm."""

import json
import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from guard.agents import registry
from guard.core.log.reports import Finding
from guard.schemas.validate import check, validator
from guard.store.file_store import FileStore
from tests.support import ROOT, run, write
from tests.support.cost import cpu_limit
from tests.support.events import (
    MOMENT,
    iteration_ended,
    iteration_started,
    run_started,
)

EXAMPLES = ROOT / "tests" / "examples"
VIEWS = ("agent-registry", "checkpoint", "global-registry", "run")


def examples(sort: str) -> list[Path]:
    """All but single events, which are judged as lines of a log."""
    return sorted(path for path in EXAMPLES.glob(f"*/{sort}/*") if path.parts[-3] != "event")


def example(kind: str) -> Any:
    return json.loads(sorted((EXAMPLES / kind / "valid").iterdir())[-1].read_bytes())


def found(path: Path) -> Finding:
    """The only finding in a file."""
    (finding,) = check(path)
    return finding


def with_history(workspace: Path) -> FileStore:
    """A workspace with every kind of state file, and a log of two segments."""
    store = FileStore(workspace, segment_max_bytes=4096)
    with store.change() as change:
        change.append(run_started(), iteration_started(), iteration_ended())
    for agent in ("a1", "a2"):
        registry.spawn(store, MOMENT, task_id="T1", agent_id=agent, message="x" * 5000)
    return store


def test_every_valid_example_is_valid() -> None:
    files = examples("valid")
    result = run("validate", *files)
    assert (result.code, result.out) == (0, f"{len(files)} files valid\n")


def test_every_invalid_example_has_a_finding_and_a_hint() -> None:
    files = examples("invalid")
    result = run("validate", "--format", "json", *files)
    assert result.code == 1
    assert list(validator("validate").iter_errors(result.json)) == []
    assert {finding["file"] for finding in result.json["findings"]} == set(map(str, files))
    assert not result.json["ok"]


def test_the_state_files_of_a_workspace_are_valid(repository: Path, home: Path) -> None:
    with_history(home / "other")
    assert run("agent", "spawn", "--task", "T1", "--agent", "a1").code == 0
    assert run("agent", "finding", "--task", "T1", "--agent", "a1", "odd").code == 0
    files = [*home.rglob("*.json"), *home.rglob("*.jsonl")]
    kinds = {json.loads(path.read_bytes())["schema"].split("/")[1] for path in home.rglob("*.json")}
    assert kinds == {*VIEWS, "agent-baseline", "findings", "known-log", "worktree"}
    assert (
        sorted(path.name for path in home.rglob("*.jsonl"))
        == ["events.000001.jsonl"] + ["events.jsonl"] * 2
    )
    assert run("validate", *files).code == 0


PLACES: list[tuple[str, dict[str, Any], str, str]] = [
    ("agent-registry", {"agents": [{"status": "sleeping"}]}, "$.agents[0].status", "not one of"),
    ("agent-registry", {"agents": [{}, {"updates": -1}]}, "$.agents[1].updates", "minimum of 0"),
    ("run", {"last_iteration": {"number": 0}}, "$.last_iteration.number", "minimum of 1"),
    ("worktree", {"inode": "7"}, "$.inode", "is not of type 'integer'"),
    ("global-registry", {"colour": 1}, "$", "'colour' was unexpected"),
    ("checkpoint", {"log": {"hash": "AB"}}, "$.log.hash", "does not match '^[0-9a-f]{64}$'"),
]


def merged(document: Any, changes: Any) -> Any:
    if isinstance(changes, dict):
        return {**document, **{k: merged(document.get(k), v) for k, v in changes.items()}}
    if isinstance(changes, list):
        return [merged(old, new) for old, new in zip(document, changes, strict=False)]
    return changes


@pytest.mark.parametrize(
    ("kind", "changes", "place", "expected"), PLACES, ids=[f"{row[0]} {row[2]}" for row in PLACES]
)
def test_a_finding_names_the_place_and_what_was_expected(
    kind: str, changes: dict[str, Any], place: str, expected: str, tmp_path: Path
) -> None:
    full = json.loads((EXAMPLES / kind / "valid" / CHANGED[kind]).read_bytes())
    finding = found(write(tmp_path / "x.json", json.dumps(merged(full, changes))))
    assert finding.place == place
    assert expected in finding.problem
    assert finding.hint == f"`guard schema {kind}` prints what is expected"


CHANGED = {
    "agent-registry": "one_active_one_completed.json",
    "global-registry": "one_active_one_completed.json",
    "run": "second_iteration_open.json",
    "worktree": "main.json",
    "checkpoint": "two_views.json",
}


def test_text_names_file_place_and_hint(tmp_path: Path) -> None:
    path = write(tmp_path / "x.json", json.dumps({**example("worktree"), "inode": -1}))
    result = run("validate", path)
    assert result.code == 1
    assert result.out.splitlines() == [
        f"{path}: $.inode -1 is less than the minimum of 0",
        "  hint: `guard schema worktree` prints what is expected",
        "1 file checked, 1 finding",
    ]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("run.json", "'schema' is a required property"),
        ("AGENT_REGISTRY.json", "'schema' is a required property"),
        ("other.json", "the document has no `schema` and its file name is none of guard's"),
    ],
)
def test_without_schema_the_file_name_tells_the_kind(
    name: str, problem: str, tmp_path: Path
) -> None:
    kind = "agent-registry" if name == "AGENT_REGISTRY.json" else "run"
    document = example(kind)
    del document["schema"]
    assert found(write(tmp_path / name, json.dumps(document))).problem == problem


def test_the_schema_that_a_document_names_goes_before_its_file_name(tmp_path: Path) -> None:
    assert not list(check(write(tmp_path / "run.json", json.dumps(example("worktree")))))


HOSTILE: dict[str, tuple[str, bytes, str]] = {
    "half a document": ("x.json", b'{"schema": ', "not JSON"),
    "nothing": ("x.json", b"", "not JSON"),
    "a key twice": ("x.json", b'{"schema": 1, "schema": 2}', "'schema' stands twice"),
    "NaN": ("x.json", b'{"seq": NaN}', "NaN is not JSON"),
    "depth 100,000": ("x.json", b"[" * 100_000 + b"]" * 100_000, "nested more than 64 deep"),
    "10 MB of brackets": ("x.json", b"[" * 10_000_000, "nested more than 64 deep"),
    "bytes that are no text": ("x.json", b'{"schema": "\xff"}', "not JSON"),
    "a number of 5,000 digits": ("x.json", b'{"seq": ' + b"9" * 5000 + b"}", "not JSON"),
    "a text instead of a document": ("x.json", b'"guard/run/1"', "has no `schema`"),
    "a schema that is none": ("x.json", b'{"schema": "guard/nope/1"}', "is not a format of guard"),
    "a path as a schema": ("x.json", b'{"schema": "guard/../1"}', "is not a format of guard"),
    "a newer schema": ("x.json", b'{"schema": "guard/run/99"}', "does not know: it knows version "),
    "an older schema": ("x.json", b'{"schema": "guard/agent-baseline/1"}', "it knows version "),
    "half a TOML": ("guard.toml", b"[store", "not TOML"),
    "a deep TOML": ("guard.toml", b"a = " + b"[" * 100_000, "not TOML"),
    "a TOML that is no text": ("guard.toml", b'a = "\xff"', "not TOML"),
    "a guard table that is a number": (
        "pyproject.toml",
        b"[tool]\nguard = 1\n",
        "not of type 'object'",
    ),
    "a damaged line": ("events.jsonl", b'{"v":1}\n', "its hash does not match its bytes"),
}


@pytest.mark.parametrize(("name", "data", "problem"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_is_one_finding(
    name: str, data: bytes, problem: str, tmp_path: Path
) -> None:
    with cpu_limit():
        finding = found(write(tmp_path / name, data))
        assert problem in finding.problem
        assert len(finding.problem) < 400


def test_what_is_no_regular_file_is_a_finding_and_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.json")
    with open(tmp_path / "large.json", "wb") as file:
        file.truncate(65 * 1024 * 1024)
    result = run("validate", "fifo.json", "large.json", "--format", "json", cwd=tmp_path)
    problems = [finding["problem"] for finding in result.json["findings"]]
    assert result.code == 1
    assert problems == [
        "cannot be read: it is not a regular file",
        "cannot be read: it has more than 67108864 bytes",
    ]


@pytest.mark.parametrize("name", [".", "missing.json"], ids=["a folder", "a missing file"])
def test_what_cannot_be_meant_is_wrong_usage(name: str, tmp_path: Path) -> None:
    result = run("validate", name, cwd=tmp_path)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("guard: ")


@pytest.mark.parametrize("form", ["text", "json"])
def test_names_and_keys_that_are_no_text_are_spelled_out(form: str, tmp_path: Path) -> None:
    document = {**example("checkpoint"), "views": {"\udc9b": 0}}
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.json")
    write(Path(path), json.dumps(document))
    result = run("validate", "--format", form, path)
    assert (result.code, result.err) == (1, "")
    assert result.out.isascii()


def test_each_line_of_a_log_is_judged_by_itself(workspace: Path) -> None:
    with_history(workspace)
    live = workspace / "events.jsonl"
    lines = live.read_bytes().splitlines(keepends=True)
    live.write_bytes(lines[0] + b"rubbish\n" + lines[1] + b'{"torn')
    finding = found(live)
    assert (finding.place, finding.problem) == ("line 2", "its hash does not match its bytes")


def sealed(record: dict[str, Any]) -> bytes:
    """A line of the log with the right hash, whatever it says."""
    body = json.dumps({**record, "hash": None}, separators=(",", ":")).encode()
    body = body[: -len(b',"hash":null}')]
    return b'%s,"hash":"%s"}\n' % (body, sha256(body).hexdigest().encode())


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"mood": "fine"}, "mood"),
        ({"progress": 101}, "101 is greater than the maximum of 100"),
        ({"status": "asleep"}, "'asleep' is not one of"),
        ({"type": "agent_vanished"}, "agent_vanished"),
    ],
    ids=["an unknown key", "a number too large", "a status that is none", "an unknown type"],
)
def test_a_finding_in_a_record_is_about_its_own_type(
    changes: dict[str, Any], expected: str, tmp_path: Path
) -> None:
    record = json.loads((EXAMPLES / "event" / "valid" / "agent_updated.json").read_bytes())
    assert not list(check(write(tmp_path / "events.jsonl", sealed(record))))
    prev, _ = record.pop("prev"), record.pop("hash")
    finding = found(write(tmp_path / "events.jsonl", sealed({**record, **changes, "prev": prev})))
    assert finding.place.startswith("line 1 $")
    assert expected in finding.problem


TOML: dict[str, tuple[str, str, str | None]] = {
    "guard.toml": ("guard.toml", "[store]\nlock_timeout_seconds = 1\n", None),
    "guard.toml with a wrong key": ("guard.toml", "[store]\nlock = 1\n", "$.store"),
    "pyproject.toml of other tools": ("pyproject.toml", "[tool.ruff]\nline-length = 9\n", None),
    "pyproject.toml whose tool is no table": ("pyproject.toml", "tool = 1\n", None),
    "pyproject.toml with a section": ("pyproject.toml", "[tool.guard.registry]\n", None),
    "pyproject.toml with a wrong value": (
        "pyproject.toml",
        "[tool.guard.registry]\nkeep_finished = -1\n",
        "$.registry.keep_finished",
    ),
}


@pytest.mark.parametrize(("name", "text", "place"), TOML.values(), ids=TOML)
def test_configuration_files(name: str, text: str, place: str | None, tmp_path: Path) -> None:
    findings = list(check(write(tmp_path / name, text)))
    assert [finding.place for finding in findings] == ([place] if place else [])
