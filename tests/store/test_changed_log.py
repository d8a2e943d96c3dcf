"""A record of the log that was changed while a guard watched is found; what other guards record meanwhile is no change."""

import json
import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import pytest

from guard.errors import StateProblem
from guard.store.file_store import FileStore
from tests.support.events import spawned, updated

LIVE = "events.jsonl"
Edit = Callable[[list[bytes]], None]


def record(store: FileStore, count: int = 1) -> None:
    for _ in range(count):
        with store.change() as change:
            change.append(updated(message="at work"))


def open_store(workspace: Path) -> FileStore:
    return FileStore(workspace, segment_max_bytes=4096)


@pytest.fixture
def watcher(workspace: Path) -> FileStore:
    """A store with two sealed segments and some records after them, which remembers what is there."""
    store = open_store(workspace)
    with store.change() as change:
        change.append(spawned())
    while not (workspace / "events.000002.jsonl").exists():
        record(store)
    record(store, 5)
    store.survey()
    return store


def edit(path: Path, change: Edit) -> None:
    """Change the lines of a file, and have it look as if it had not been written to."""
    before = path.stat()
    lines = path.read_bytes().splitlines()
    change(lines)
    with open(path, "r+b") as file:
        file.write(b"".join(line + b"\n" for line in lines))
        file.truncate()
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def change_letter(lines: list[bytes]) -> None:
    lines[2] = lines[2].replace(b"at work", b"at rest")


def change_last(lines: list[bytes]) -> None:
    lines[-1] = lines[-1].replace(b"at work", b"at rest")


def change_and_seal(lines: list[bytes]) -> None:
    lines[2] = seal(lines[2].replace(b"at work", b"on holiday"))


def change_and_seal_all(lines: list[bytes]) -> None:
    change_and_seal(lines)
    for number in range(3, len(lines)):
        before = json.loads(lines[number - 1])["hash"].encode()
        lines[number] = seal(re.sub(rb'"prev":"\w+"', b'"prev":"%s"' % before, lines[number]))


def drop_record(lines: list[bytes]) -> None:
    del lines[2]


def add_record(lines: list[bytes]) -> None:
    lines.append(lines[-1])


def seal(line: bytes) -> bytes:
    sealed = line[: line.rindex(b',"hash"')]
    return b'%s,"hash":"%s"}' % (sealed, sha256(sealed).hexdigest().encode())


@pytest.mark.parametrize("segment", [LIVE, "events.000001.jsonl", "events.000002.jsonl"])
@pytest.mark.parametrize(
    "change",
    [change_letter, change_last, change_and_seal, change_and_seal_all, drop_record, add_record],
)
@pytest.mark.parametrize("meanwhile", ["nothing", "records", "rotations"])
def test_a_changed_record_is_found(
    meanwhile: str, change: Edit, segment: str, watcher: FileStore, workspace: Path
) -> None:
    edit(workspace / segment, change)
    other = open_store(workspace)
    with suppress(StateProblem):  # The other guard may find it as well.
        record(other, {"nothing": 0, "records": 3, "rotations": 40}[meanwhile])
    with pytest.raises(StateProblem, match=r"events\.\S*jsonl: record \d+ at byte \d+: "):
        watcher.refuse_changed_log()
    if segment == LIVE:
        for _ in range(2):
            with pytest.raises(StateProblem):
                record(open_store(workspace))
    assert not open_store(workspace).verify().ok


def test_a_record_that_was_changed_after_it_was_written_meanwhile_is_found(
    watcher: FileStore, workspace: Path
) -> None:
    record(open_store(workspace), 2)
    record(watcher)
    watcher.refuse_changed_log()
    edit(workspace / LIVE, lambda lines: lines.__setitem__(-2, lines[-2].replace(b"work", b"rest")))
    with pytest.raises(StateProblem, match="its hash does not match its bytes"):
        watcher.refuse_changed_log()


def replace_by_copy(path: Path) -> None:
    copy = path.with_name("copy")
    shutil.copyfile(path, copy)
    copy.chmod(0o600)
    copy.rename(path)


@pytest.mark.parametrize("count", [0, 1, 5, 40, 80])
def test_what_others_record_meanwhile_is_no_change(
    count: int, watcher: FileStore, workspace: Path
) -> None:
    other = open_store(workspace)
    record(other, count)
    watcher.refuse_changed_log()
    record(watcher, count)
    record(other)
    watcher.refuse_changed_log()
    watcher.compare_survey()
    record(watcher)
    assert watcher.verify().ok


@pytest.mark.parametrize("change", [Path.touch, replace_by_copy, lambda path: path.chmod(0o400)])
def test_a_segment_with_the_same_bytes_is_no_change(
    change: Callable[[Path], None], watcher: FileStore, workspace: Path
) -> None:
    for number in (1, 2):
        change(workspace / f"events.00000{number}.jsonl")
    watcher.refuse_changed_log()


def test_a_torn_tail_is_no_change(watcher: FileStore, workspace: Path) -> None:
    with open(workspace / LIVE, "ab") as file:
        file.write(b'{"v":1,"seq":')
    watcher.refuse_changed_log()


def test_a_segment_that_was_just_sealed_is_no_change(workspace: Path) -> None:
    store = open_store(workspace)
    with store.change() as change:
        change.append(spawned())
    while not (workspace / "events.000001.jsonl").exists():
        store.survey()
        record(store)
    store.refuse_changed_log()
    store.survey()
    store.refuse_changed_log()


def test_a_store_that_watched_over_nothing_reads_nothing(
    watcher: FileStore, workspace: Path
) -> None:
    edit(workspace / LIVE, change_letter)
    fresh = open_store(workspace)
    fresh.refuse_changed_log()
    record(fresh)
