"""Iterations whose work lies in a submodule: the rest is rescued, and guard's own limits are no stall of the agent."""

import time
from pathlib import Path
from typing import Any

import pytest

from guard.git.dirty import MOST_LISTED
from tests.rescue.states import start
from tests.rescue.states_places import submodule
from tests.support import git, new_repository, run, write
from tests.support.sessions import QUICK, answering, script, until


@pytest.fixture
def library(repository: Path) -> Path:
    start(repository)
    return submodule(repository)


def iterate(folder: Path, agent: str) -> dict[str, Any]:
    asking = ("--agent", "command", "--probe-command", answering(folder, "complete"))
    play = script(folder / "agent", agent)
    found: dict[str, Any] = run("run", "--format", "json", *asking, *QUICK, "--", play).json
    return found


def breaker() -> tuple[str, int]:
    found = run("breaker", "show", "--format", "json").json
    return found["state"], found["streak"]


@pytest.mark.usefixtures("library")
def test_a_file_in_a_submodule_does_not_stop_the_rescue_of_the_rest(tmp_path: Path) -> None:
    for _ in range(2):
        found = iterate(tmp_path, "echo $$ >> lib/code.c; echo $$ >> work.py")
        assert (found["status"], found["reason"]) == ("complete", "rescued"), found["detail"]
        assert [one["path"] for one in found["rescue"]["held_back"]] == ["lib"]


@pytest.mark.usefixtures("library")
def test_work_in_a_submodule_alone_is_no_stall_and_idleness_is(tmp_path: Path) -> None:
    for work in ("echo $$ >> lib/code.c", "echo $$ > lib/new.c", "git -C lib commit -qam more"):
        found = iterate(tmp_path, work)
        assert (found["status"], found["reason"]) == ("timeout", "rescue_refused")
        assert "git -C lib status" in f"{found['detail']}"
        assert breaker() == ("closed", 0)
    iterate(tmp_path, "true")
    assert breaker() == ("closed", 1)


def test_a_secret_that_the_agent_commits_in_a_repository_inside_is_named(
    library: Path, repository: Path, tmp_path: Path
) -> None:
    deep = new_repository(tmp_path / "deep", "deep.txt")
    git(library, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(deep))
    git(library, "commit", "-q", "-m", "Add deep")
    git(repository, "commit", "-q", "-m", "Update lib", "--", "lib")
    git(library / "deep", "config", "user.name", "A")
    git(library / "deep", "config", "user.email", "a@example.org")
    token = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0iL3oR6"
    add = f"echo \"value = '{token}'\" > a.py; git add .; git commit -qm 'Add a.py'"
    new = "git init -q own; cd own; git config user.name A; git config user.email a@example.org"
    new += "; export GIT_COMMITTER_DATE='2020-01-01T00:00:00Z'"
    bump = "git add lib; git commit -qm 'Update lib'"
    found = iterate(tmp_path, f"(cd lib; {add}); (cd lib/deep; {add}); ({new}; {add}); {bump}")
    assert found["status"] == "complete"
    facts = [one["fact"] for one in found["evidence"]]
    said = [fact.partition(" in commit")[0] for fact in facts if "secret committed" in fact]
    folders = ("lib", "lib/deep", "own")
    assert set(said) == {
        f"warning: secret committed: {one}/a.py (github, line 1)" for one in folders
    }
    assert token not in str(found)
    # Where changes were left inside, only its date tells that a commit was made before, and dates have whole seconds.
    newest = int(git(library / "deep", "log", "-1", "--format=%ct"))
    until(lambda: time.time() >= newest + 1)
    found = iterate(tmp_path, "echo work > work.py; git add work.py; git commit -qm Work")
    assert "secret" not in str(found["evidence"])


def test_the_users_and_the_agents_work_in_one_submodule(library: Path, tmp_path: Path) -> None:
    write(library / "code.c", "the user's\n")
    found = iterate(tmp_path, "echo agent > lib/new.c")
    held = found["rescue"]["held_back"]
    assert [one["path"] for one in held] == ["lib"]
    assert held[0]["why"].startswith("nested_repository: mixed with changes")
    assert breaker() == ("closed", 0)


def test_a_rescue_that_fails_is_no_stall(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(repository)
    monkeypatch.setenv("GUARD_RESCUE__COMMAND", "false")
    for _ in range(2):
        found = iterate(tmp_path, "echo $$ > new.txt")
        assert (found["status"], found["reason"]) == ("timeout", "rescue_refused")
        assert found["rescue"]["reason"] == "refused"
        assert breaker() == ("closed", 0)


def test_only_what_the_snapshot_has_is_called_safe(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(repository)
    monkeypatch.setenv("GUARD_RESCUE__SNAPSHOT_MAX_FILE_BYTES", "1000")
    write(repository / "node_modules/notes.txt", "the user's\n")
    write(repository / "large.bin", bytes(5000))
    found = iterate(tmp_path, "rm -r node_modules large.bin; echo work > work.py")
    facts = [one["fact"] for one in found["evidence"]]
    assert any("from before the iteration is safe: git" in fact for fact in facts)
    named = [fact for fact in facts if "snapshot does not have" in fact]
    assert len(named) == 1
    assert named[0].endswith("1 file of the user's that changed since: large.bin")
    found = run("restore", "latest", "--to", str(tmp_path / "none"), "--format", "json").json
    kept = run("snapshots", "--format", "json").json["snapshots"][0]["id"]
    run("restore", kept, "node_modules/notes.txt", "--to", str(tmp_path / "back"))
    assert (tmp_path / "back/node_modules/notes.txt").read_text() == "the user's\n"
    assert found["files"]


def test_a_folder_is_not_called_safe_if_a_file_in_it_is_not_in_the_snapshot(
    library: Path, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_RESCUE__SNAPSHOT_MAX_FILE_BYTES", "100000")
    write(library / "large.bin", bytes(200_000))
    for number in range(MOST_LISTED + 1):
        write(repository / f"many/{number}", "the user's\n")
    write(repository / "many/large.bin", bytes(200_000))
    found = iterate(tmp_path, "rm -r lib/large.bin many; echo work > work.py")
    facts = [one["fact"] for one in found["evidence"]]
    [said] = [fact for fact in facts if " is safe: git" in fact]
    assert said.startswith("the rest of the user's work")
    [named] = [fact for fact in facts if "snapshot does not have" in fact]
    assert named.endswith("2 files in folders that changed since: lib/large.bin, many/large.bin")


def test_a_baseline_warns_of_what_its_snapshot_does_not_have(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(repository)
    assert run("baseline", "--format", "json").json["warnings"] == []
    monkeypatch.setenv("GUARD_RESCUE__SNAPSHOT_MAX_FILE_BYTES", "1000")
    write(repository / "large.bin", bytes(5000))
    begun = run("baseline", "--format", "json")
    said = "the baseline's snapshot does not have everything: large.bin: larger than 1000 bytes"
    assert begun.json["warnings"] == [said]
    assert said in begun.err


def test_where_nothing_is_in_the_snapshot_nothing_is_called_safe(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(repository)
    monkeypatch.setenv("GUARD_RESCUE__SNAPSHOT_MAX_FILE_BYTES", "1000")
    write(repository / "large.bin", bytes(5000))
    found = iterate(tmp_path, "rm large.bin; git commit -q --allow-empty -m x; echo x > y")
    facts = [one["fact"] for one in found["evidence"]]
    assert not any(" is safe" in fact for fact in facts)
    assert any("snapshot does not have 1 file" in fact for fact in facts)
