"""Cuts at every byte, flips of every bit, and every other damage: the right prefix, or found out; and a way to go on."""

import os
import shutil
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from guard.core.agents.registry import AGENT_REGISTRY, GLOBAL_REGISTRY
from guard.core.log.events import BaseEvent, LogSalvaged, SegmentOpened
from guard.core.log.record import START, BadRecord, LogEntry, Position, decode, migrate_record
from guard.core.log.replay import Replay
from guard.core.log.view import ViewDocument, ViewKind
from guard.errors import StateProblem
from guard.store.file_store import FileStore
from guard.store.lock import read_mark
from guard.store.log import Log
from guard.store.segments import BrokenLog
from guard.store.views import ViewFiles
from guard.system.private_files import Folder
from tests.support import run
from tests.support.events import MOMENT, iteration_started, run_started, spawned, updated

EVENTS = 50
SMALL_SEGMENTS = 8192
LIVE, T1, T2 = "events.jsonl", "T1/AGENT_REGISTRY.json", "T2/AGENT_REGISTRY.json"
GLOBAL = "registry/GLOBAL_REGISTRY.json"


def _story() -> Iterator[tuple[BaseEvent, ...]]:
    """Fifty events in changes of one or two; the last ones leave the views of T2 and the run behind."""
    yield (spawned("a1"),)
    yield spawned("a2"), spawned("b1", "T2")
    yield (run_started(),)
    for number in range(10):
        yield updated(agent="a2", message=f"{number}"), updated(agent="b1", task="T2")
        yield (iteration_started(number + 1),)
    for number in range(EVENTS - 34):
        yield (updated(agent="a1", message="text " * (number % 3)),)


def _write_story(path: Path, segment_max_bytes: int = 1 << 24) -> None:
    store = FileStore(path, segment_max_bytes=segment_max_bytes)
    for events in _story():
        with store.change() as change:
            change.append(*events)


@pytest.fixture
def written(workspace: Path) -> Path:
    """A workspace with the story in one segment."""
    _write_story(workspace)
    return workspace


@pytest.fixture
def rotated(workspace: Path) -> Path:
    """A workspace with the story in three segments."""
    _write_story(workspace, SMALL_SEGMENTS)
    assert sorted(file.name for file in workspace.glob("events.*")) == [
        "events.000001.jsonl",
        "events.000002.jsonl",
        LIVE,
    ]
    return workspace


def _entries(path: Path) -> list[LogEntry]:
    return list(FileStore(path).entries())


def _without_views(path: Path) -> None:
    for entry in path.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
    (path / "workspace.lock").unlink()
    (path / "checkpoint.json").unlink(missing_ok=True)


class Change(NamedTuple):
    """Where a change begins, and the number of entries before it and after it."""

    begin: Position
    end: Position
    before: int
    after: int


def _changes(entries: list[LogEntry]) -> list[Change]:
    found, begin, before = [], START, 0
    for number, entry in enumerate(entries, start=1):
        if entry.more == 0:
            found.append(Change(begin, entry.position, before, number))
            begin, before = entry.position, number
    return found


@pytest.mark.parametrize("part", range(4))
def test_a_log_cut_at_any_byte_is_read_up_to_the_last_whole_change(
    written: Path, part: int
) -> None:
    entries = _entries(written)
    changes = _changes(entries)
    assert len(entries) == EVENTS + 1
    _without_views(written)
    size = (written / LIVE).stat().st_size
    folder = Folder.open(written)
    assert folder
    with folder:
        for cut in range(size - part, -1, -4):
            os.truncate(written / LIVE, cut)
            whole = max((c.after for c in changes if c.end.offset <= cut), default=0)
            assert list(Log(folder).entries()) == entries[:whole], cut


@pytest.mark.parametrize("marked", [True, False], ids=["with the mark", "without the mark"])
@pytest.mark.parametrize("part", range(4))
def test_views_of_a_log_that_was_cut_are_right_or_refused(
    written: Path, part: int, marked: bool
) -> None:
    entries = _entries(written)
    states = _states(entries)
    changes = _changes(entries)
    if not marked:
        (written / "workspace.lock").unlink()
    kinds: list[tuple[ViewKind[Any, Any], str, str]] = [
        (AGENT_REGISTRY, "T1", T1),
        (AGENT_REGISTRY, "T2", T2),
        (GLOBAL_REGISTRY, "", GLOBAL),
    ]
    size = (written / LIVE).stat().st_size
    refused = 0
    folder = Folder.open(written)
    assert folder
    with folder:
        for cut in range(size - 1 - part, -1, -4):
            os.truncate(written / LIVE, cut)
            whole = max((c.after for c in changes if c.end.offset <= cut), default=0)
            kind, key, path = kinds[cut // 4 % len(kinds)]
            try:
                assert _loaded(folder, kind, key) == states[whole].get(path), cut
            except BrokenLog:
                refused += 1
            if cut % 97 == 0:
                assert FileStore(written).verify().findings, cut
    assert refused > size / 8


def _loaded(folder: Folder, kind: ViewKind[Any, Any], key: str) -> ViewDocument | None:
    """The view as a store reads it, without its patience for a writer who may be half-way."""
    fold = ViewFiles(folder, Log(folder), lambda _notice: None).load(kind, key, read_mark(folder))
    return fold.document() if fold else None


def _states(entries: list[LogEntry]) -> list[dict[str, ViewDocument]]:
    """Every view after each number of entries."""
    replay, states = Replay(), [dict[str, ViewDocument]()]
    for entry in entries:
        replay.feed(entry)
        states.append({path: fold.document() for path, fold in replay.folds.items()})
    return states


@pytest.mark.parametrize("cut", [0, 1, 1000])
def test_nothing_is_appended_to_a_log_that_lost_records(written: Path, cut: int) -> None:
    size = (written / LIVE).stat().st_size
    os.truncate(written / LIVE, size * cut // 1001)
    before = (written / LIVE).read_bytes()
    with pytest.raises(StateProblem), FileStore(written).change() as change:
        change.append(updated())
    assert (written / LIVE).read_bytes() == before


@pytest.mark.parametrize("bit", range(8))
def test_every_flipped_bit_is_found_at_its_record(written: Path, bit: int) -> None:
    entries = _entries(written)
    changes = _changes(entries)
    _without_views(written)
    data = (written / LIVE).read_bytes()
    last_newline = len(data) - 1
    begins = [0, *(entry.position.offset for entry in entries)]
    descriptor = os.open(written / LIVE, os.O_RDWR)
    folder = Folder.open(written)
    assert folder
    flips = 0
    with folder:
        for change in changes:
            for number in range(change.before, change.after):
                for offset in range(begins[number], begins[number + 1]):
                    os.pwrite(descriptor, bytes([data[offset] ^ (1 << bit)]), offset)
                    # What stands before a change is not read again for every bit of it, only for one of eight.
                    after = START if offset % 8 == bit else change.begin
                    seen = entries[: change.before] if after == START else []
                    place = None if offset == last_newline else (number + 1, begins[number])
                    assert _read_until_broken(Log(folder), after, seen) == place, offset
                    os.pwrite(descriptor, data[offset : offset + 1], offset)
                    flips += 1
    os.close(descriptor)
    assert flips == len(data) > 15_000


def _read_until_broken(
    log: Log, after: Position, expected: list[LogEntry]
) -> tuple[int, int] | None:
    """The record and byte at which the log is said to be broken; everything before must be as it was."""
    found = []
    try:
        for entry in log.entries(after):
            found.append(entry)  # noqa: PERF402
    except BrokenLog as error:
        assert found == expected
        return error.seq, error.offset
    assert found == expected
    return None


class Damage(NamedTuple):
    """What was done to a workspace: how many records are sound, and which files must not be lost by a salvage."""

    sound: int
    kept: tuple[str, ...] = ()


def _lines(path: Path, change: Callable[[list[bytes]], list[bytes]], name: str = LIVE) -> None:
    lines = (path / name).read_bytes().splitlines(keepends=True)
    (path / name).write_bytes(b"".join(change(lines)))


def _flip(path: Path, name: str, offset: int | None = None) -> None:
    data = bytearray((path / name).read_bytes())
    data[len(data) // 2 if offset is None else offset] ^= 4
    (path / name).write_bytes(data)


def _flipped_in_the_middle(path: Path) -> Damage:
    _lines(path, lambda lines: [*lines[:40], lines[40].replace(b"T1", b"T3"), *lines[41:]])
    return Damage(40, (LIVE,))


def _flipped_inside_a_change(path: Path) -> Damage:
    """The second of two records: the first has to go with it."""
    assert _entries(path)[2].more == 1
    _lines(path, lambda lines: [*lines[:3], lines[3].replace(b"T2", b"T3"), *lines[4:]])
    return Damage(2, (LIVE,))


def _dropped(path: Path) -> Damage:
    _lines(path, lambda lines: [*lines[:40], *lines[41:]])
    return Damage(40, (LIVE,))


def _swapped(path: Path) -> Damage:
    _lines(path, lambda lines: [*lines[:40], lines[41], lines[40], *lines[42:]])
    return Damage(40, (LIVE,))


def _doubled(path: Path) -> Damage:
    _lines(path, lambda lines: [*lines[:41], lines[40], *lines[41:]])
    return Damage(41, (LIVE,))


def _first_line_gone(path: Path) -> Damage:
    _lines(path, lambda lines: lines[1:])
    return Damage(0, (LIVE, T1, T2, GLOBAL))


def _records_cut_off(path: Path) -> Damage:
    _lines(path, lambda lines: lines[:45])
    return Damage(45, (T1, GLOBAL))


def _sealed_segment_flipped(path: Path) -> Damage:
    data = (path / "events.000002.jsonl").read_bytes()
    first = len((path / "events.000001.jsonl").read_bytes().splitlines())
    middle = data.splitlines(keepends=True)
    assert b'"more":0' in middle[9]
    _lines(
        path, lambda lines: [*lines[:10], b"x" + lines[10][1:], *lines[11:]], "events.000002.jsonl"
    )
    return Damage(first + 10, ("events.000002.jsonl", LIVE))


def _sealed_segment_torn(path: Path) -> Damage:
    sealed = path / "events.000001.jsonl"
    sound = [c.before for c in _changes(_entries(path)) if c.end.segment == 1][-1]
    os.truncate(sealed, sealed.stat().st_size - 1)
    return Damage(sound, ("events.000001.jsonl", "events.000002.jsonl", LIVE))


def _live_segment_deleted(path: Path) -> Damage:
    sound = sum(len(file.read_bytes().splitlines()) for file in path.glob("events.0*"))
    (path / LIVE).unlink()
    return Damage(sound, (T1, GLOBAL))


def _only_segment_deleted(path: Path) -> Damage:
    (path / LIVE).unlink()
    return Damage(0, (T1, T2, GLOBAL))


def _first_sealed_segment_deleted(path: Path) -> Damage:
    (path / "events.000001.jsonl").unlink()
    return Damage(0, ("events.000002.jsonl", LIVE))


def _second_sealed_segment_deleted(path: Path) -> Damage:
    (path / "events.000002.jsonl").unlink()
    sound = len((path / "events.000001.jsonl").read_bytes().splitlines())
    return Damage(sound, (LIVE,))


BROKEN_LOGS: dict[str, tuple[str, Callable[[Path], Damage]]] = {
    "flipped in the middle": ("written", _flipped_in_the_middle),
    "flipped inside a change": ("written", _flipped_inside_a_change),
    "line dropped": ("written", _dropped),
    "lines swapped": ("written", _swapped),
    "line doubled": ("written", _doubled),
    "first line gone": ("written", _first_line_gone),
    "records cut off": ("written", _records_cut_off),
    "only segment deleted": ("written", _only_segment_deleted),
    "sealed segment flipped": ("rotated", _sealed_segment_flipped),
    "sealed segment torn": ("rotated", _sealed_segment_torn),
    "live segment deleted": ("rotated", _live_segment_deleted),
    "first sealed segment deleted": ("rotated", _first_sealed_segment_deleted),
    "second sealed segment deleted": ("rotated", _second_sealed_segment_deleted),
}


@pytest.mark.parametrize("name", BROKEN_LOGS)
def test_a_broken_log_is_found_refused_and_salvaged(
    name: str, request: pytest.FixtureRequest
) -> None:
    fixture, damage = BROKEN_LOGS[name]
    path: Path = request.getfixturevalue(fixture)
    before = _entries(path)
    sound, kept = damage(path)
    contents = {file: (path / file).read_bytes() for file in kept}

    assert FileStore(path).verify().findings
    with pytest.raises(StateProblem):
        FileStore(path).rebuild()
    assert {file: (path / file).read_bytes() for file in kept} == contents

    store = FileStore(path)
    report = store.salvage(MOMENT, "salvage-1")
    _assert_salvaged(store, before[:sound], contents)
    assert report.set_aside


def _assert_salvaged(store: FileStore, prefix: list[LogEntry], kept: dict[str, bytes]) -> None:
    found = store.verify()
    assert found.ok, found.findings
    assert (found.behind, found.torn_bytes) == ((), 0)
    entries = list(store.entries())
    assert entries[: len(prefix)] == prefix
    told, *more = [entry.event for entry in entries if isinstance(entry.event, LogSalvaged)]
    assert not more
    assert told.kept_records == len(prefix)
    assert all(
        isinstance(entry.event, SegmentOpened | LogSalvaged) for entry in entries[len(prefix) :]
    )
    aside = {name: (store.path / name).read_bytes() for name in told.set_aside}
    assert set(kept.values()) <= set(aside.values())
    assert {sha256(aside[n]).hexdigest() for n in aside if "/" not in n} == set(
        told.set_aside_sha256
    )
    with FileStore(store.path).change() as change:
        change.append(spawned("next", "T9"))
    assert FileStore(store.path).verify().ok


def test_a_record_written_anew_with_the_right_hash_breaks_the_chain_after_it(written: Path) -> None:
    def forge(lines: list[bytes]) -> list[bytes]:
        fields = lines[40][: lines[40].rindex(b',"hash"')].replace(b"working", b"blocked")
        return [*lines[:40], _sealed_line(fields), *lines[41:]]

    begin = _entries(written)[40].position.offset
    _lines(written, forge)
    (finding,) = FileStore(written).verify().findings
    assert (finding.file, finding.place) == (LIVE, f"record 42, byte {begin}")
    FileStore(written).salvage(MOMENT, "salvage-1")
    assert FileStore(written).verify().ok


@pytest.mark.parametrize("zeros", [1, 100, 4096])
def test_a_tail_of_zeros_was_never_acknowledged(written: Path, zeros: int) -> None:
    before = _entries(written)
    with (written / LIVE).open("ab") as file:
        file.write(bytes(zeros))
    report = FileStore(written).verify()
    assert (report.ok, report.torn_bytes) == (True, zeros)
    assert _entries(written) == before
    FileStore(written).salvage(MOMENT, "salvage-1")
    with FileStore(written).change() as change:
        change.append(updated(message="next"))
    after = _entries(written)
    assert after[: len(before)] == before
    assert FileStore(written).verify() == FileStore(written).verify().model_copy(
        update={"ok": True, "torn_bytes": 0, "behind": ()}
    )


def _deleted(path: Path) -> tuple[str, ...]:
    for name in (T1, T2, GLOBAL):
        (path / name).unlink()
    return ()


def _older_copies(path: Path) -> tuple[str, ...]:
    older = {name: (path / name).read_bytes() for name in (T1, GLOBAL)}
    with FileStore(path).change() as change:
        change.append(updated(status="completed"))
    for name, data in older.items():
        (path / name).write_bytes(data)
    return ()


def _flipped_views(path: Path) -> tuple[str, ...]:
    _flip(path, T1)
    _flip(path, GLOBAL)
    return T1, GLOBAL


def _forged_view(path: Path) -> tuple[str, ...]:
    """The hash is right, but no fold of the log makes these bytes."""
    (path / T1).write_bytes(_resealed((path / T1).read_bytes(), b'"builder"', b'"breaker"'))
    return ()


DAMAGED_VIEWS = {
    "deleted": _deleted,
    "older copies": _older_copies,
    "flipped bit": _flipped_views,
    "forged": _forged_view,
}


@pytest.mark.parametrize("way", ["rebuild", "salvage"])
@pytest.mark.parametrize("name", DAMAGED_VIEWS)
def test_damaged_views_are_found_and_folded_again(written: Path, name: str, way: str) -> None:
    kept = {file: (written / file).read_bytes() for file in DAMAGED_VIEWS[name](written)}
    before = _entries(written)
    expected = _states(before)[-1]
    assert FileStore(written).verify().findings

    store = FileStore(written)
    if way == "rebuild":
        store.rebuild()
    else:
        store.salvage(MOMENT, "salvage-1")
    report = store.verify()
    assert report.ok, report.findings
    assert report.behind == ()
    assert list(store.entries()) == before
    assert store.view(AGENT_REGISTRY, "T1") == expected[T1]
    assert store.view(GLOBAL_REGISTRY) == expected[GLOBAL]
    for file, data in kept.items():
        assert (written / f"{file}.damaged-1").read_bytes() == data


def test_a_damaged_view_is_told_read_from_the_log_and_kept_aside(written: Path) -> None:
    expected = _states(_entries(written))[-1]
    _flip(written, T1)
    damaged = (written / T1).read_bytes()
    notices: list[str] = []
    store = FileStore(written, notice=notices.append)
    assert store.view(AGENT_REGISTRY, "T1") == expected[T1]
    assert len(notices) == 1
    assert T1 in notices[0]
    assert (written / T1).read_bytes() == damaged
    with store.change() as change:
        change.append(updated(message="next"))
    assert (written / f"{T1}.damaged-1").read_bytes() == damaged
    assert store.verify().ok


def test_every_flipped_bit_of_a_view_is_found(written: Path) -> None:
    expected = _states(_entries(written))[-1][T1]
    view = written / T1
    data = view.read_bytes()
    for offset in range(len(data)):
        flipped = bytearray(data)
        flipped[offset] ^= 1 << offset % 8
        view.write_bytes(flipped)
        notices: list[str] = []
        assert FileStore(written, notice=notices.append).view(AGENT_REGISTRY, "T1") == expected
        assert notices, offset


def _sealed_line(fields: bytes) -> bytes:
    """A record with the right hash, whatever it says."""
    return b'%s,"hash":"%s"}\n' % (fields, sha256(fields).hexdigest().encode())


def _resealed(view: bytes, old: bytes, new: bytes) -> bytes:
    """The view with other bytes in it, and the right hash."""
    body = view[: view.rindex(b',\n  "hash"')].replace(old, new)
    return b'%s,\n  "hash": "%s"\n}\n' % (body, sha256(body).hexdigest().encode())


def _append_record(path: Path, version: int, kind: str) -> None:
    last = _entries(path)[-1].position
    head = f'{{"v":{version},"seq":{last.seq + 1},"more":0,"at":"2026-01-31T12:00:00Z"'
    fields = f'{head},"type":"{kind}","id":"x1","run":null,"iteration":null,"prev":"{last.hash}"'
    with (path / LIVE).open("ab") as file:
        file.write(_sealed_line(fields.encode()))


NEWER_RECORDS = {"version": (2, "retention_set"), "type": (1, "unheard_of")}
COMMANDS = {
    "log": ["log"],
    "list": ["agent", "list"],
    "update": ["agent", "update", "--task", "T1", "--agent", "a1", "--status", "working"],
    "rebuild": ["rebuild"],
    "salvage": ["rebuild", "--salvage"],
}


def _contents(path: Path) -> dict[str, bytes]:
    """Every state file; the lock file holds hints, and its holder's name changes."""
    files = (file for file in path.rglob("*") if file.is_file())
    hints = ("workspace.lock", "README.md")
    return {str(file): file.read_bytes() for file in files if file.name not in hints}


@pytest.mark.parametrize("newer", NEWER_RECORDS)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_record_of_a_newer_guard_is_refused_and_untouched(
    written: Path, newer: str, command: str
) -> None:
    _append_record(written, *NEWER_RECORDS[newer])
    before = _contents(written)
    result = run("--workspace", written, *COMMANDS[command])
    assert result.code == 5
    assert "a newer guard wrote it" in result.err
    assert "hint: upgrade guard" in result.err
    assert _contents(written) == before
    assert run("--workspace", written, "verify").code == 1


@pytest.mark.parametrize("view", [T1, GLOBAL])
@pytest.mark.parametrize("command", ["list", "update", "rebuild", "salvage"])
def test_a_view_of_a_newer_guard_is_refused_and_untouched(
    written: Path, view: str, command: str
) -> None:
    file = written / view
    kind = (
        b'"schema": "guard/agent-registry/' if view == T1 else b'"schema": "guard/global-registry/'
    )
    file.write_bytes(_resealed(file.read_bytes(), kind + b"1", kind + b"2"))
    before, log = file.read_bytes(), (written / LIVE).read_bytes()
    words = COMMANDS[command] + (["--task", "T1"] if command == "list" and view == T1 else [])
    result = run("--workspace", written, *words)
    assert (result.code, "a newer guard wrote it" in result.err) == (5, True), result.err
    assert file.read_bytes() == before
    assert (written / LIVE).read_bytes() == log


def test_a_record_of_an_older_version_is_migrated_step_by_step() -> None:
    steps = {
        1: lambda fields: {"second": fields.pop("first"), **fields},
        2: lambda fields: {**fields, "third": fields["second"] + 1},
    }
    old = {"first": 7}
    assert migrate_record(old, 1, steps, to=3) == {"second": 7, "third": 8}
    assert migrate_record({"second": 7}, 2, steps, to=3) == {"second": 7, "third": 8}
    assert old == {"first": 7}
    with pytest.raises(LookupError):
        migrate_record(old, 0, steps, to=3)


def test_a_record_of_an_unknown_older_version_is_refused(written: Path) -> None:
    _append_record(written, 0, "retention_set")
    last = (written / LIVE).read_bytes().splitlines()[-1]
    with pytest.raises(BadRecord, match="cannot be migrated from version 0"):
        decode(last, EVENTS + 2, _entries_until_broken(written)[-1].position.hash)
    assert FileStore(written).verify().findings


def _entries_until_broken(path: Path) -> list[LogEntry]:
    found = []
    try:
        for entry in FileStore(path).entries():
            found.append(entry)  # noqa: PERF402
    except BrokenLog:
        return found
    raise AssertionError("the log is sound")
