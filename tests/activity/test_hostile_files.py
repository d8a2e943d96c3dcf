"""Hostile files where agents leave theirs: a look ends soon, warns once, and assesses the rest."""

import os
import socket
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from guard.activity.collect import CollectedSigns, collect
from guard.activity.collect_messages import last_status_time
from guard.core.activity.assess import ActivityTerms, assess
from tests.activity.conftest import Look
from tests.support import git, write

SOON = 180.0
"""Far more than any look may take, on a machine that has much else to do; a look that waits would take for ever."""
PLACES = {
    "status": "agent_workspaces/a1/status.json",
    "workspace": "agent_workspaces/a1/notes.txt",
    "devlog": "devlogs/a1-today.md",
    "inbox": "agent_workspaces/a1/inbox/processed/m1.md",
    "queue": "message_queue/queue.json",
    "events": "runtime/activity/today.jsonl",
    "contract": "contracts/c1.json",
    "tests": ".coverage",
    "transcript": "home/.claude/projects/x/0a1b2c3d-session.jsonl",
}


def fifo(path: Path) -> None:
    os.mkfifo(path)


def unix_socket(path: Path) -> None:
    """Bound from its own folder: names of sockets are short."""
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(path.parent)
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path.name)
    finally:
        os.fchdir(here)
        os.close(here)


def link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def link_to_a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def link_to_nothing(path: Path) -> None:
    path.symlink_to("/proc/nowhere/at/all")


def folder_that_links_to_itself(path: Path) -> None:
    path.mkdir()
    (path / "again").symlink_to(path)


def device(path: Path) -> None:
    """A real device where that is allowed, else what looks most like one."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))
    except PermissionError:
        link_to_a_device(path)


def deep_folders(path: Path) -> None:
    """Deeper than the longest path that the system takes."""
    path.mkdir()
    folder = os.open(path, os.O_RDONLY)
    for _ in range(500):
        os.mkdir("d" * 200, dir_fd=folder)
        inner = os.open("d" * 200, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)


STRANGE: list[Callable[[Path], None]] = [
    fifo,
    unix_socket,
    link_to_itself,
    link_to_a_device,
    link_to_nothing,
    folder_that_links_to_itself,
    device,
    deep_folders,
]


@pytest.fixture(autouse=True)
def work_tree(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")


def look(subject: Look, tmp_path: Path, *, alone: bool = False) -> CollectedSigns:
    """All sources asked; beside what is strange there is a sign that counts."""
    write(tmp_path / ".agents/a1/plan.md", "Write the form.")
    home = {**os.environ, "HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path)}
    looked = subject(session=("claude", "0a1b2c3d-session"), environ=home, is_alone=alone)
    begun = time.monotonic()
    seen = collect(looked, ActivityTerms(), all_sources=True)
    last_status_time(looked)
    assert time.monotonic() - begun < SOON
    assert "FILE_MODIFICATION" in {one.source for one in seen.signals}
    assert assess(seen.signals, looked.now, ActivityTerms()).is_active
    return seen


@pytest.mark.parametrize("strange", STRANGE, ids=lambda one: one.__name__)
@pytest.mark.parametrize("place", PLACES)
def test_nothing_strange_is_opened_or_waited_for(
    tmp_path: Path, subject: Look, place: str, strange: Callable[[Path], None]
) -> None:
    path = tmp_path / PLACES[place]
    path.parent.mkdir(parents=True, exist_ok=True)
    strange(path)
    seen = look(subject, tmp_path, alone=place == "tests")
    assert all(one.startswith(("FILE_MODIFICATION", "WORKSPACE_ACCESS")) for one in seen.warnings)
    assert len(seen.warnings) <= (2 if strange is deep_folders else 0)
    assert {one.source for one in seen.signals} <= {"FILE_MODIFICATION", "WORKSPACE_ACCESS"}


@pytest.mark.parametrize("place", PLACES)
def test_a_file_of_two_gigabytes_is_not_read(tmp_path: Path, subject: Look, place: str) -> None:
    os.truncate(write(tmp_path / PLACES[place], "x"), 2 * 1024**3)
    seen = look(subject, tmp_path, alone=place == "tests")
    expected = {"status": "STATUS_UPDATE", "contract": "CONTRACT_CLAIMED"}.get(place)
    assert [one.partition(":")[0] for one in seen.warnings] == [expected] * bool(expected)


@pytest.mark.parametrize("data", [b"{", b"\xff\xfe\x00", b"[" * 200_000, b"", b'{"a":' * 5000])
def test_broken_json_is_one_warning_for_each_place(
    tmp_path: Path, subject: Look, data: bytes
) -> None:
    for place in ("status", "queue", "events", "contract"):
        write(tmp_path / PLACES[place], data)
    warnings = look(subject, tmp_path).warnings
    assert sorted(one.partition(":")[0] for one in warnings) == [
        "CONTRACT_CLAIMED",
        "STATUS_UPDATE",
    ]


def test_times_in_the_future_prove_nothing(tmp_path: Path, subject: Look) -> None:
    later = time.time() + 86400
    event = f'{{"agent": "a1", "claimed_by": "a1", "sender": "a1", "type": "work", "at": {later}}}'
    for place in PLACES:
        path = write(tmp_path / PLACES[place], event)
        os.utime(path, (later, later))
    looked = subject(
        session=("claude", "0a1b2c3d-session"), environ={"HOME": str(tmp_path / "home")}
    )
    seen = collect(looked, ActivityTerms(), all_sources=True)
    found = assess(seen.signals, looked.now, ActivityTerms())
    # The ctime shows that a message was moved, and no program can set it.
    assert {one.source for one in found.signals} <= {"INBOX_PROCESSING"}
    assert any("in the future" in one for one in found.passed_over)


def test_names_that_are_no_text(tmp_path: Path, subject: Look) -> None:
    for place in PLACES.values():
        folder = os.fsencode((tmp_path / place).parent)
        os.makedirs(folder, exist_ok=True)
        for name in (b"a1-\xff\xfe.md", b"a1-\x1b[2J\n.json", b"\xc3.jsonl"):
            os.close(os.open(folder + b"/" + name, os.O_CREAT | os.O_WRONLY))
    seen = look(subject, tmp_path)
    assert seen.signals[0].model_dump_json()
    assert "\ud800" not in str(seen.warnings)


def test_a_folder_that_must_not_be_read(tmp_path: Path, subject: Look) -> None:
    """Root may read it all the same, and then it is empty."""
    folders = [(tmp_path / place).parent for place in PLACES.values() if "/" in place]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    for folder in reversed(folders):
        folder.chmod(0)
    try:
        look(subject, tmp_path)
    finally:
        for folder in folders:
            folder.chmod(0o700)


def test_files_that_are_replaced_while_they_are_read(tmp_path: Path, subject: Look) -> None:
    paths = [tmp_path / place for place in PLACES.values()]
    for path in paths:
        write(path, '{"agent": "a1"}')
    stop = threading.Event()

    def replace() -> None:
        turn = 0
        while not stop.is_set():
            turn += 1
            for path in paths:
                other = path.with_name(f".{path.name}.new")
                if turn % 4 == 0:
                    path.unlink(missing_ok=True)
                elif turn % 4 == 1:
                    path.unlink(missing_ok=True)
                    os.mkfifo(path)
                else:
                    other.write_text("{" if turn % 2 else '{"agent": "a1"}')
                    other.replace(path)

    thread = threading.Thread(target=replace)
    thread.start()
    try:
        for _ in range(20):
            look(subject, tmp_path)
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("place", ["status", "workspace", "devlog", "inbox", "queue"])
def test_a_folder_of_more_files_than_are_looked_at_is_one_warning(
    tmp_path: Path, subject: Look, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    for module in ("file_patterns", "collect_work"):
        monkeypatch.setattr(f"guard.activity.{module}._MOST_ENTRIES", 200)
    folder = (tmp_path / PLACES[place]).parent
    folder.mkdir(parents=True)
    old = time.time() - 86400
    for number in range(300):
        os.utime(write(folder / f"a1-{number}{Path(PLACES[place]).suffix}", "x"), (old, old))
    write(tmp_path / "contracts/c1.json", f'{{"claimed_by": "a1", "at": {time.time()}}}')
    seen = collect(subject(), ActivityTerms(), all_sources=True)
    assert "CONTRACT_CLAIMED" in {one.source for one in seen.signals}
    sources = [one.partition(":")[0] for one in seen.warnings]
    assert len(sources) == len(set(sources))
    assert sources or place == "status"
