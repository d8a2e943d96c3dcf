"""A full disk, a read-only one, links and strangers in the workspace, and ids that mean harm: a typed refusal, nothing lost."""

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from guard.agents import registry
from guard.store.file_store import FileStore
from tests.support import Result, run, write
from tests.support.events import MOMENT

LIVE, LOCK, VIEW = "events.jsonl", "workspace.lock", "T1/AGENT_REGISTRY.json"
FILES = [LIVE, LOCK, VIEW]
FOLDERS_OF_VIEWS = ["T1", "registry"]
READING = {
    "log": ["log"],
    "verify": ["verify"],
    "list": ["agent", "list"],
    "list of a task": ["agent", "list", "--task", "T1"],
    "list of all": ["agent", "list", "--all"],
    "where": ["where"],
}
UPDATE = ["agent", "update", "--task", "T1", "--agent", "a1", "--status", "working"]
WRITING = {
    "update": UPDATE,
    "spawn": ["agent", "spawn", "--task", "T2", "--agent", "b1"],
    "rebuild": ["rebuild"],
}
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it mounts or changes owners")


@pytest.fixture
def filled(workspace: Path) -> Path:
    """A workspace with one agent, and everything written."""
    _fill(workspace)
    return workspace


def _fill(path: Path) -> None:
    store = FileStore(path)
    registry.spawn(store, MOMENT, task_id="T1", agent_id="a1")
    registry.update(store, MOMENT, registry.AgentUpdate("T1", "a1", "working", message="kept"))
    write(path / "README.md", "")


def _assert_refused(result: Result, code: int) -> None:
    """One line that says what happened, one that says what to do, and nothing else."""
    assert result.code == code, (result.out, result.err)
    assert [line.split(":")[0] for line in result.err.splitlines()] == ["guard", "hint"], result.err
    assert "a bug in guard" not in result.err


@contextmanager
def _mounted(folder: Path, options: str) -> Iterator[Path]:
    """A small file system of its own in this folder."""
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    mount = subprocess.run(words, capture_output=True, text=True, check=False)
    if mount.returncode:
        pytest.skip(f"cannot mount a tmpfs here: {mount.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """A workspace on a file system without a free byte."""
    with _mounted(tmp_path / "small", "size=256k,mode=700") as disk:
        _fill(disk / "workspace")
        with (disk / "ballast").open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(4096))
        assert os.statvfs(disk).f_bfree == 0
        yield disk / "workspace"


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A workspace that can only be read: for root, whom no mode stops, on a file system that was mounted so."""
    if os.geteuid() == 0:
        with _mounted(tmp_path / "disk", "size=256k,mode=700") as disk:
            _fill(disk / "workspace")
            subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
            yield disk / "workspace"
    else:
        path = tmp_path / "workspace"
        _fill(path)
        entries = [path, *path.rglob("*")]
        for entry in entries:
            entry.chmod(0o500 if entry.is_dir() else 0o400)
        yield path
        for entry in entries:
            entry.chmod(0o700)


def _contents(path: Path) -> dict[str, bytes]:
    """Every file but the lock file, which holds hints only."""
    files = (file for file in path.rglob("*") if file.is_file() and file.name != LOCK)
    return {str(file): file.read_bytes() for file in files}


@pytest.mark.parametrize("place", [pytest.param("full", marks=needs_root), "read_only"])
@pytest.mark.parametrize("command", READING)
def test_reading_needs_no_space_and_no_permission(
    place: str, command: str, request: pytest.FixtureRequest
) -> None:
    path: Path = request.getfixturevalue(place)
    result = run("--workspace", path, *READING[command])
    assert (result.code, result.err) == (0, "")
    assert result.out


@needs_root
@pytest.mark.parametrize("command", ["update", "spawn"])
def test_a_full_disk_refuses_a_change_and_loses_nothing(full: Path, command: str) -> None:
    # Up to the end of its last page a file can still grow; a change must be refused at the latest beyond it.
    said = ["--message", "x" * 5000]
    before = run("--workspace", full, "log").out
    contents = _contents(full)
    result = run("--workspace", full, *WRITING[command], *said)
    _assert_refused(result, 6)
    assert "No space left on device" in result.err
    assert _contents(full) == contents
    assert run("--workspace", full, "log").out == before
    assert run("--workspace", full, "verify").code == 0

    (full.parent / "ballast").unlink()
    assert run("--workspace", full, *WRITING[command], *said).code == 0
    assert run("--workspace", full, "verify").code == 0


@needs_root
def test_a_view_that_finds_no_space_never_fails_the_change(full: Path) -> None:
    result = run("--workspace", full, *UPDATE, "--message", "short")
    assert result.code == 0
    assert "guard: warning: guard cannot write " in result.err
    assert "short" in run("--workspace", full, "agent", "list").out
    assert run("--workspace", full, "verify").code == 0


@pytest.mark.parametrize("command", WRITING)
def test_a_read_only_workspace_refuses_a_change(read_only: Path, command: str) -> None:
    contents = _contents(read_only)
    _assert_refused(run("--workspace", read_only, *WRITING[command]), 6)
    assert _contents(read_only) == contents


_LIMITED = """
import resource, signal, sys
from guard.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)),) * 2)
main()
"""


def test_a_file_size_limit_refuses_a_change_and_loses_nothing(filled: Path) -> None:
    before = _contents(filled)
    limit = str((filled / LIVE).stat().st_size + 100)
    done = subprocess.run(
        [sys.executable, "-c", _LIMITED, limit, "--workspace", str(filled), *UPDATE],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    _assert_refused(Result(done.returncode, done.stdout, done.stderr), 6)
    assert {name: data for name, data in _contents(filled).items() if name in before} == before
    assert run("--workspace", filled, *UPDATE).code == 0
    assert run("--workspace", filled, "verify").code == 0


def _link(target: Path, victim: Path) -> None:
    shutil.move(target, victim)
    target.symlink_to(victim)


def _hard_link(target: Path, victim: Path) -> None:
    os.link(target, victim)


def _give_away(target: Path, _victim: Path) -> None:
    os.chown(target, 12345, 12345)


def _open_to_all(target: Path, _victim: Path) -> None:
    target.chmod(target.stat().st_mode | 0o022)


def _become_fifo(target: Path, victim: Path) -> None:
    target.rename(victim)
    os.mkfifo(target, 0o600)


def _become_folder(target: Path, victim: Path) -> None:
    target.rename(victim)
    target.mkdir(mode=0o700)


def _become_file(target: Path, victim: Path) -> None:
    target.rename(victim)
    target.write_bytes(b"not a folder")
    target.chmod(0o600)


def _dangle(target: Path, victim: Path) -> None:
    target.rename(victim)
    target.symlink_to(victim.with_name("nowhere") / "at all")


Trick = Callable[[Path, Path], None]
FILE_TRICKS: dict[str, Trick] = {
    "symlink": _link,
    "hard link": _hard_link,
    "foreign owner": _give_away,
    "world-writable": _open_to_all,
    "fifo": _become_fifo,
    "folder": _become_folder,
}
FOLDER_TRICKS: dict[str, Trick] = {
    "symlink": _link,
    "foreign owner": _give_away,
    "world-writable": _open_to_all,
    "file": _become_file,
}

VIEW_FOLDER_TRICKS: dict[str, Trick] = FOLDER_TRICKS | {
    "dangling link": _dangle,
    "fifo": _become_fifo,
}


def _victim_bytes(victim: Path) -> dict[str, bytes]:
    files = [victim, *victim.rglob("*")] if victim.exists() else []
    return {str(file): file.read_bytes() for file in files if file.is_file()}


def _play(trick: Trick, target: Path, victim: Path, log: Path) -> None:
    """The trick is refused by an update; what is outside and what the log has stay as they were."""
    trick(target, victim)
    outside = _victim_bytes(victim)
    recorded = log.read_bytes() if log.is_file() else None
    workspace = log.parent
    _assert_refused(run("--workspace", workspace, *UPDATE), 5)
    assert _victim_bytes(victim) == outside
    if recorded is not None:
        assert log.read_bytes() == recorded


def _play_named(name: str, tricks: dict[str, Trick], target: Path, log: Path) -> None:
    if name == "foreign owner" and os.geteuid() != 0:
        pytest.skip("needs root: it changes owners")
    _play(tricks[name], target, log.parent.with_name("victim"), log)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("trick", FILE_TRICKS)
def test_a_state_file_that_is_not_plainly_ours_is_refused(
    filled: Path, name: str, trick: str
) -> None:
    _play_named(trick, FILE_TRICKS, filled / name, filled / LIVE)
    reading = READING["list of a task" if name == VIEW else "log"]
    if name != LOCK:
        _assert_refused(run("--workspace", filled, *reading), 5)
    assert run("--workspace", filled, "verify").code in (1, 5)


@pytest.mark.parametrize("trick", FOLDER_TRICKS)
def test_a_workspace_that_is_not_plainly_ours_is_refused(filled: Path, trick: str) -> None:
    _play_named(trick, FOLDER_TRICKS, filled, filled / LIVE)


@pytest.mark.parametrize("name", FOLDERS_OF_VIEWS)
@pytest.mark.parametrize("trick", VIEW_FOLDER_TRICKS)
def test_a_folder_of_views_that_is_not_plainly_ours_stops_no_update(
    filled: Path, name: str, trick: str
) -> None:
    if trick == "foreign owner" and os.geteuid() != 0:
        pytest.skip("needs root: it changes owners")
    victim, place = filled.with_name("victim"), filled / name
    VIEW_FOLDER_TRICKS[trick](place, victim)
    outside, replaced = _victim_bytes(victim), os.lstat(place)
    for status in ("working", "blocked"):
        result = run("--workspace", filled, *UPDATE[:-1], status)
        assert (result.code, result.err.count("guard: warning:")) == (0, 1), result.err
        assert f"{place} " in result.err
        for words in (READING["list"], READING["list of a task"], READING["list of all"]):
            listed = run("--workspace", filled, *words, "--format", "json")
            assert [one["status"] for one in listed.json["agents"]] == [status], listed
    assert run("--workspace", filled, "verify").code in (1, 5)
    assert _victim_bytes(victim) == outside
    assert os.path.samestat(os.lstat(place), replaced), "it is the user's to find out what it is"
    other = {"T1": "registry/GLOBAL_REGISTRY.json", "registry": VIEW}[name]
    (agent,) = json.loads((filled / other).read_text())["agents"]
    assert agent["status"] == "blocked"
    _remove(place)
    assert run("--workspace", filled, *UPDATE).err == ""
    assert json.loads((filled / VIEW).read_text())["agents"][0]["status"] == "working"
    assert run("--workspace", filled, "verify").code == 0


def _remove(place: Path) -> None:
    shutil.rmtree(place) if stat.S_ISDIR(os.lstat(place).st_mode) else place.unlink()


def test_a_new_workspace_is_for_its_owner_alone(workspace: Path) -> None:
    old = os.umask(0)
    try:
        assert run("--workspace", workspace, *WRITING["spawn"]).code == 0
    finally:
        os.umask(old)
    for entry in [workspace, *workspace.rglob("*")]:
        expected = 0o700 if entry.is_dir() else 0o600
        assert stat.S_IMODE(entry.stat().st_mode) == expected, entry


@pytest.mark.parametrize("command", [*READING, *WRITING])
def test_a_workspace_below_a_missing_folder_is_wrong_usage(tmp_path: Path, command: str) -> None:
    words = (READING | WRITING)[command]
    _assert_refused(run("--workspace", tmp_path / "missing/workspace", *words), 2)
    assert not (tmp_path / "missing").exists()


BAD_IDS = {
    "parent": "../x",
    "slash": "a/b",
    "absolute": "/etc/passwd",
    "option": "-rf",
    "empty": "",
    "long": "a" * 10_000,
    "one too long": "a" * 129,
    "newline": "a\nb",
    "trailing newline": "a\n",
    "escape": "a\x1b[31m",
    "reserved": "registry",
    "reserved in capitals": "REGISTRY",
    "dot": "a.b",
    "dots": "..",
    "one dot": ".",
    "space": "a b",
    "NUL in words": "a\\0b",
    "percent NUL": "a%00",
    "arabic digit": "a\u0661",
    "full-width letter": "\uff21",
    "umlaut": "ä",
    "right-to-left": "a\u202eb",
    "undecodable": "a\udcff",
}


@pytest.mark.parametrize("name", BAD_IDS)
def test_an_id_that_could_become_a_path_is_refused(filled: Path, name: str) -> None:
    bad, before = BAD_IDS[name], _contents(filled)
    for words in (
        ["agent", "spawn", "--task", bad, "--agent", "a7"],
        ["agent", "update", "--task", "T1", "--agent", bad, "--status", "working"],
        ["agent", "list", "--task", bad],
    ):
        result = run("--workspace", filled, *words)
        _assert_refused(result, 2)
        assert len(result.err) < 600
        assert result.err.replace("\n", "").isprintable()
    assert _contents(filled) == before


def test_an_id_is_refused_before_a_workspace_is_made(workspace: Path) -> None:
    _assert_refused(
        run("--workspace", workspace, "agent", "spawn", "--task", "../x", "--agent", "a"), 2
    )
    assert not workspace.exists()
