"""A log that is gone is not taken for a new one, as long as anything on the machine remembers it."""

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from guard.context.invocation import Invocation
from guard.errors import StateProblem
from guard.iteration.begin import begin
from guard.store.log import LogGone
from tests.support import commit, git, new_repository, run, write
from tests.support.events import spawned


@pytest.fixture
def project(repository: Path) -> Path:
    """A repository whose log has a baseline and an open breaker."""
    commit(repository, "first.txt")
    begin(Invocation())
    assert run("breaker", "trip", "--reason", "tired").code == 0
    return repository


@pytest.fixture
def place(project: Path) -> Path:
    return Invocation().workspace.path


def delete_log(place: Path) -> None:
    (place / "events.jsonl").unlink()


def delete_log_and_lock(place: Path) -> None:
    delete_log(place)
    (place / "workspace.lock").unlink()


def delete_all_but_snapshots(place: Path) -> None:
    for entry in place.iterdir():
        if entry.name != "shadow.git":
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def empty_log(place: Path) -> None:
    delete_all_but_snapshots(place)
    write(place / "events.jsonl", b"")
    (place / "events.jsonl").chmod(0o600)


def move_away(place: Path) -> None:
    place.rename(place.with_name("elsewhere"))


def put_empty_folder(place: Path) -> None:
    move_away(place)
    place.mkdir(mode=0o700)


def put_foreign_folder(place: Path) -> None:
    put_empty_folder(place)
    write(place / "notes.txt", "mine")


LOSSES = {
    "log deleted": delete_log,
    "log and lock deleted": delete_log_and_lock,
    "all but the snapshots deleted": delete_all_but_snapshots,
    "log emptied": empty_log,
    "workspace deleted": shutil.rmtree,
    "workspace moved": move_away,
    "workspace replaced by an empty folder": put_empty_folder,
    "workspace replaced by a foreign folder": put_foreign_folder,
}
COMMANDS = (
    ("baseline",),
    ("check", "--no-probe", "--no-wait"),
    ("run", "--", "touch", "../started"),
    ("loop", "--max-iterations", "1", "--", "touch", "../started"),
    ("breaker", "allow"),
    ("breaker", "record", "--status", "complete"),
    ("breaker", "show"),
    ("team", "show"),
    ("agent", "spawn", "--task", "T1", "--agent", "a1", "--type", "claude"),
    ("agent", "list"),
    ("plan", "show"),
    ("status",),
    ("log",),
    ("metrics",),
    ("verify",),
    ("rebuild",),
    ("rebuild", "--salvage"),
)


@pytest.mark.parametrize("lose", LOSSES.values(), ids=LOSSES)
def test_every_command_that_needs_the_log_says_that_it_is_gone(
    lose: Callable[[Path], None], project: Path, place: Path
) -> None:
    lose(place)
    before = sorted(place.rglob("*")) if place.exists() else None
    for words in COMMANDS if lose in (delete_log_and_lock, move_away) else COMMANDS[::4]:
        result = run(*words)
        assert result.code == 5, (words, result)
        assert "init --fresh" in result.err + result.out, (words, result)
        assert "sound" not in result.out.split(), words
    assert not (project.parent / "started").exists()
    if before is None:
        assert not place.exists(), "a workspace that comes back must find its place free"


@pytest.mark.parametrize("lose", LOSSES.values(), ids=LOSSES)
def test_a_person_begins_anew_and_the_new_log_says_so(
    lose: Callable[[Path], None], project: Path, place: Path
) -> None:
    known = sum(1 for _ in Invocation().store.entries())
    lose(place)
    assert run("init", "--fresh").code == 0
    (first, *_) = run("log", "--type", "log_restarted", "--format", "json").json["events"]
    assert 0 < first["known_records"] <= known
    assert first["known_head"]
    assert "is gone" in first["why"]
    assert run("verify").code == 0, run("verify")
    assert run("breaker", "show", "--format", "json").json["state"] == "closed"
    assert run("baseline").code == 0
    if lose is put_foreign_folder:
        assert (
            place.with_name(f"{place.name}.damaged-1").joinpath("notes.txt").read_text() == "mine"
        )
    delete_log_and_lock(place)
    assert run("breaker", "show").code == 5, "the new log is remembered like the old one"


def test_a_workspace_that_comes_back_is_as_it_was(project: Path, place: Path) -> None:
    move_away(place)
    assert run("check", "--no-probe", "--no-wait").code == 5
    place.with_name("elsewhere").rename(place)
    assert run("verify").code == 0
    assert run("breaker", "show", "--format", "json").json["state"] == "open"


def test_fresh_leaves_a_log_alone_that_is_there(project: Path, place: Path) -> None:
    data = (place / "events.jsonl").read_bytes()
    result = run("init", "--fresh")
    assert (result.code, (place / "events.jsonl").read_bytes()) == (1, data)
    write(place / "events.jsonl", data.replace(b"baseline", b"baselyne"))
    (place / "events.jsonl").chmod(0o600)
    assert run("init", "--fresh").code == 5, "damage in the middle is for a salvage"


def test_fresh_with_no_log_lost_begins_nothing(repository: Path) -> None:
    result = run("init", "--fresh", "--format", "json")
    assert (result.code, result.json["action"]) == (0, "kept")
    assert not Invocation().workspace.path.exists()
    assert run("init", "--fresh", "--user").code == 2


def test_fresh_replaces_what_is_no_log(project: Path, place: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o700)
    move_away(place)
    place.symlink_to(outside)
    assert run("breaker", "show").code == 5
    assert run("init", "--fresh").code == 0
    assert list(outside.iterdir()) == []
    for name in ("events.jsonl", "workspace.lock"):
        (place / name).unlink()
        os.mkfifo(place / name, 0o600)
        assert run("breaker", "show").code == 5
    assert run("init", "--fresh").code == 0
    assert run("verify").code == 0, run("verify")


def test_a_log_that_was_rolled_back_with_its_whole_workspace_is_found(
    project: Path, place: Path, tmp_path: Path
) -> None:
    old = tmp_path / "old"
    shutil.copytree(place, old)
    store = Invocation().writable_store
    with store.change():
        pass
    store.anchor()
    for _ in range(3):
        assert run("breaker", "trip", "--reason", "again").code == 0
    guard = Invocation()
    with guard.writable_store.change():
        pass
    guard.store.anchor()
    shutil.rmtree(place)
    shutil.copytree(old, place)
    assert "cut off" in run("breaker", "reset").err
    assert run("breaker", "reset").code == 5
    assert run("verify").code == 1
    assert run("rebuild").code == 5
    assert run("rebuild", "--salvage").code == 0
    assert run("breaker", "reset").code == 0


def test_another_workspace_of_the_same_repository_is_no_loss(project: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    result = run("--workspace", other, "baseline")
    assert (result.code, result.err) == (0, ""), "the refs are those of a log that is known"
    assert run("--workspace", tmp_path / "third", "breaker", "show").code == 0
    shutil.rmtree(other)
    assert run("--workspace", other, "baseline").code == 5
    assert run("baseline").code == 0


def test_a_repository_made_anew_at_the_same_path_is_another_one(
    project: Path, place: Path, tmp_path: Path
) -> None:
    os.chdir(tmp_path)
    shutil.rmtree(project)
    shutil.rmtree(place)
    new_repository(project, "second.txt")
    assert run("baseline", cwd=project).code == 0


def test_a_repository_that_lost_its_git_directory_is_still_the_same(
    project: Path, place: Path
) -> None:
    shutil.rmtree(project / ".git")
    shutil.rmtree(place)
    assert run("breaker", "show").code == 5


def test_refs_alone_are_a_warning(project: Path, place: Path, tmp_path: Path) -> None:
    assert "refs/guard" in git(project, "for-each-ref")
    other_home = {"XDG_STATE_HOME": str(tmp_path / "other-state")}
    result = run("baseline", env=other_home)
    assert result.code == 0
    assert "refs/guard" in result.err
    assert "refs/guard" not in run("baseline", env=other_home).err
    shutil.copytree(project, tmp_path / "copy", symlinks=True)
    result = run("status", cwd=tmp_path / "copy")
    assert result.code == 0
    assert "refs/guard" in result.err


@pytest.mark.parametrize("name", ["state/guard", "state"])
def test_a_state_home_behind_a_link_that_leads_nowhere_is_gone(
    name: str, project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(home))
    shutil.rmtree(home / name)
    (home / name).symlink_to(home / "nowhere")
    for words in (("breaker", "show"), ("baseline",), ("verify",)):
        result = run(*words)
        assert result.code == 5, (words, result)
        assert "sound" not in result.out.split()


def test_a_first_run_warns_of_nothing(repository: Path) -> None:
    commit(repository, "first.txt")
    assert run("snapshot").code == 0
    result = run("baseline")
    assert (result.code, result.err) == (0, "")


@pytest.mark.parametrize("what", ["garbage", "fifo", "folder", "link"])
def test_a_memory_that_cannot_be_read_is_no_proof_of_a_new_repository(
    what: str, project: Path, place: Path, home: Path
) -> None:
    (record,) = (home / "state/guard/logs.d").iterdir()
    record.unlink()
    if what == "garbage":
        write(record, b"{").chmod(0o600)
    elif what == "fifo":
        os.mkfifo(record, 0o600)
    elif what == "folder":
        record.mkdir()
    else:
        record.symlink_to(project / "first.txt")
    assert run("breaker", "show").code == 0, "a log that is there needs no memory"
    shutil.rmtree(place)
    assert run("breaker", "show").code == 5


def test_a_store_remembers_what_it_has_seen(project: Path, place: Path, home: Path) -> None:
    guard = Invocation()
    with guard.writable_store.change():
        pass
    shutil.rmtree(home / "state/guard")
    with pytest.raises(LogGone):
        list(guard.store.entries())
    with pytest.raises(LogGone), guard.store.change():
        pass
    assert not place.exists()
    guard.store.anchor()
    with pytest.raises(StateProblem):
        Invocation().store.recent()


def test_the_agents_own_calls_know_of_the_guard_that_runs_it(project: Path, home: Path) -> None:
    assert run("breaker", "reset").code == 0
    script = (
        f"mv {home}/state/guard {home}/gone; {sys.executable} -m guard baseline; echo code=$?;"
        f" {sys.executable} -m guard init --fresh; echo fresh=$?;"
        f" {sys.executable} -m guard --workspace {home}/other breaker show; echo other=$?"
    )
    result = run("run", "--no-probe", "--no-wait", "--", "sh", "-c", script)
    assert "code=5" in result.out
    assert "fresh=1" in result.out, "a new log is the user's decision"
    assert "other=0" in result.out
    assert result.code == 5
    assert run("breaker", "show").code == 5, "the guard that ran it has remembered the log"


def test_a_live_segment_that_is_gone_is_missed(
    project: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_STORE__SEGMENT_MAX_BYTES", "4096")
    while not (place / "events.000001.jsonl").exists():
        assert run("breaker", "trip", "--reason", "again").code == 0
    assert run("breaker", "reset").code == 0
    begin(Invocation())
    delete_log_and_lock(place)
    shutil.rmtree(place / "worktrees.d")
    for words in (("breaker", "show"), ("baseline",), ("log",), ("rebuild",), ("verify",)):
        result = run(*words)
        assert result.code == 5, (words, result)
    assert run("init", "--fresh").code == 0
    assert run("baseline").code == 0
    assert run("verify").code == 0, run("verify")


def test_a_log_that_was_cut_does_not_close_the_breaker(project: Path, place: Path) -> None:
    log = place / "events.jsonl"
    begun = log.read_bytes().splitlines(keepends=True)[:-1]
    assert json.loads(begun[-1])["more"] == 0, "a whole change"
    log.write_bytes(b"".join(begun))
    (place / "workspace.lock").unlink()
    shutil.rmtree(place / "worktrees.d")
    for words in (("breaker", "show"), ("breaker", "allow"), ("run", "--", "true"), ("log",)):
        result = run(*words)
        assert result.code == 5, (words, result)
        assert "cut off" in result.err, words
    assert run("verify").code == 1
    assert run("rebuild", "--salvage").code == 0
    assert run("breaker", "show").code == 0


def test_a_log_that_grows_is_remembered_anew(project: Path, home: Path) -> None:
    (record,) = (home / "state/guard/logs.d").iterdir()
    before = json.loads(record.read_bytes())["seq"]
    store = Invocation().writable_store
    for number in range(110):
        with store.change() as change:
            change.append(spawned(f"agent-{number}"))
    assert json.loads(record.read_bytes())["seq"] >= before + 100
