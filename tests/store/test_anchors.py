"""The log against what snapshots remember of it: a history that was rewritten with everything beside it is found out."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from guard.store.file_store import FileStore
from tests.support import commit, run
from tests.support.events import spawned


@pytest.fixture
def place(repository: Path) -> Path:
    """A workspace with some records, before and after a snapshot."""
    commit(repository)
    place = Path(run("where").out.strip())
    assert run("baseline").code == 0
    return place


def findings() -> Any:
    result = run("verify", "--format", "json")
    assert result.code == (0 if result.json["ok"] else 1)
    return [(one["file"], one["place"], one["problem"]) for one in result.json["findings"]]


def rewritten(place: Path, records: int) -> None:
    """Another log, with views and a lock that agree with it."""
    other = place.parent / "other"
    store = FileStore(other)
    for number in range(records):
        with store.change() as change:
            change.append(spawned(agent=f"a{number}"))
    for name in ("events.jsonl", "workspace.lock"):
        shutil.copy2(other / name, place / name)
    for name in ("registry", "T1", "worktrees.d", "checkpoint.json"):
        shutil.rmtree(place / name, ignore_errors=True)
    for name in ("registry", "T1"):
        shutil.copytree(other / name, place / name)


def test_a_sound_log_agrees_with_all_snapshots(place: Path) -> None:
    assert run("snapshot").code == 0
    assert run("baseline").code == 0
    assert findings() == []


def test_a_log_that_was_rewritten_is_found_out(place: Path) -> None:
    assert run("snapshot").code == 0
    rewritten(place, 20)
    [(file, _where, problem)] = findings()
    assert file.startswith("snapshot by-hand-")
    assert problem == "remembers another history"


def test_a_log_that_begins_anew_is_found_out(place: Path) -> None:
    for _ in range(4):
        assert run("baseline").code == 0
    assert run("snapshot").code == 0
    rewritten(place, 1)
    assert "remembers a record that is gone" in {problem for *_, problem in findings()}


def test_what_a_salvage_gave_up_is_no_finding_for_ever(place: Path) -> None:
    assert run("snapshot").code == 0
    log = place / "events.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join((lines[0], b"damaged\n", *lines[2:])))
    assert findings() != []
    assert run("rebuild", "--salvage").code == 0
    assert run("baseline").code == 0
    assert findings() == []


def test_snapshots_that_cannot_be_read_are_said(place: Path) -> None:
    shutil.rmtree(place / "shadow.git")
    (place / "shadow.git").mkdir(mode=0o700)
    result = run("verify")
    assert "cannot compare the log with the snapshots" in result.err
