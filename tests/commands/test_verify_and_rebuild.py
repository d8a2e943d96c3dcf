"""`guard verify` and `guard rebuild`, as a person meets them."""

import json
from pathlib import Path

import pytest

from guard.schemas.validate import validator
from guard.store.file_store import FileStore
from tests.support import run
from tests.support.events import spawned, updated


@pytest.fixture
def recorded(store: FileStore, workspace: Path) -> Path:
    """A workspace with one agent that has ended."""
    for event in (spawned(), updated("working", message="half way"), updated("completed")):
        with store.change() as change:
            change.append(event)
    return workspace


def test_a_sound_workspace(recorded: Path) -> None:
    result = run("--workspace", recorded, "verify")
    assert (result.code, result.err) == (0, "")
    assert "4 records in 1 segment, 2 views" in result.out
    assert result.out.endswith("sound\n")


def test_the_json_is_valid_and_says_the_same(recorded: Path) -> None:
    report = run("--workspace", recorded, "verify", "--format", "json").json
    validator("verify").validate(report)
    assert report["ok"] is True
    assert report["records"] == 4


def test_an_edited_record_is_named_with_its_place(recorded: Path) -> None:
    log = recorded / "events.jsonl"
    log.write_bytes(log.read_bytes().replace(b"half way", b"all done"))
    result = run("--workspace", recorded, "verify")
    offset = len(b"".join(log.read_bytes().splitlines(keepends=True)[:2]))
    assert result.code == 1
    assert f"events.jsonl (record 3, byte {offset}): its hash does not match" in result.out
    assert "guard rebuild --salvage" in result.out


def test_a_recomputed_record_breaks_the_chain(recorded: Path) -> None:
    """Whoever edits a record and mends its hash has to rewrite all that follow."""
    from hashlib import sha256

    log = recorded / "events.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    edited = lines[2].replace(b"half way", b"all done").rpartition(b',"hash"')[0]
    lines[2] = b'%s,"hash":"%s"}\n' % (edited, sha256(edited).hexdigest().encode())
    log.write_bytes(b"".join(lines))
    result = run("--workspace", recorded, "verify")
    assert result.code == 1
    assert "record 4" in result.out
    assert "does not follow the record before it" in result.out


def test_a_log_that_was_cut_is_noticed_by_what_the_views_remember(recorded: Path) -> None:
    log = recorded / "events.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))
    result = run("--workspace", recorded, "verify")
    assert result.code == 1
    assert "records were cut off" in result.out
    refused = run("--workspace", recorded, "rebuild")
    assert refused.code == 5
    assert "--salvage" in refused.err
    assert run("--workspace", recorded, "agent", "list").code == 5


def test_an_unfinished_record_is_told_and_forgiven(recorded: Path) -> None:
    with (recorded / "events.jsonl").open("ab") as log:
        log.write(b'{"v":1,"seq":5,"more":0,"at"')
    result = run("--workspace", recorded, "verify")
    assert result.code == 0
    assert "28 bytes of an unfinished record" in result.out


def test_rebuild_writes_only_what_differs(recorded: Path) -> None:
    assert "2 views from 4 records, 2 unchanged" in run("--workspace", recorded, "rebuild").out
    (recorded / "T1" / "AGENT_REGISTRY.json").unlink()
    result = run("--workspace", recorded, "rebuild")
    assert result.out == "written T1/AGENT_REGISTRY.json\n2 views from 4 records, 1 unchanged\n"


def test_salvage_keeps_the_records_before_the_damage_and_says_what_it_gave_up(
    recorded: Path,
) -> None:
    log = recorded / "events.jsonl"
    damaged = log.read_bytes().replace(b"half way", b"all done")
    log.write_bytes(damaged)
    result = run("--workspace", recorded, "rebuild", "--salvage", "--format", "json")
    assert result.code == 0
    validator("rebuild").validate(result.json)
    assert result.json["dropped_records"] == 2
    assert (recorded / "events.jsonl.damaged-1").read_bytes() == damaged
    assert run("--workspace", recorded, "verify").code == 0
    events = run("--workspace", recorded, "log", "--format", "json").json["events"]
    assert [event["type"] for event in events] == [
        "segment_opened",
        "agent_spawned",
        "log_salvaged",
    ]
    assert events[-1]["set_aside"][0] == "events.jsonl.damaged-1"
    assert json.loads((recorded / "T1" / "AGENT_REGISTRY.json").read_text())["active_count"] == 1


def test_a_workspace_that_is_not_there(repository: Path) -> None:
    assert run("verify").code == 0
    result = run("rebuild")
    assert result.code == 2
    assert "guard has recorded nothing for this repository yet" in result.err
