"""Locks that a killed rescue left are taken away; anybody else's never."""

import json
import os
import time
from pathlib import Path

import pytest

from guard.errors import RepositoryProblem
from guard.git.locate import find_repository
from guard.rescue import mend_killed_rescue
from guard.rescue.changes import PathChange
from guard.rescue.move_branch import move_with_index, sweep_index
from guard.rescue.stale_locks import note_locks, sweep_locks
from guard.snapshots.project import Project
from guard.system.clock import Deadline
from tests.rescue.states import start
from tests.support import TIME_LIMIT, git, write
from tests.support.rescues import attempt_rescue, site_of

OID = "1" * 40
LONG_AGO = 120_000_000_000


@pytest.fixture(autouse=True)
def started(repository: Path) -> None:
    start(repository)


@pytest.fixture
def shadow(workspace: Path) -> Path:
    folder = workspace / "shadow.git"
    folder.mkdir(mode=0o700, parents=True)
    workspace.chmod(0o700)
    return folder


def lock_of(repository: Path) -> Path:
    return repository / ".git/refs/heads/main.lock"


def left_note(shadow: Path, lock: Path, began: int) -> Path:
    """As a guard leaves it that is killed while git moves the branch."""
    folder = shadow / "guard.locks"
    folder.mkdir(mode=0o700, exist_ok=True)
    return write(folder / "note.json", json.dumps([began, OID, [str(lock)]]))


@pytest.mark.parametrize("text", ["", f"{OID}\n"], ids=["empty", "our commit"])
def test_a_lock_of_a_killed_rescue_goes(text: str, repository: Path, shadow: Path) -> None:
    note = left_note(shadow, lock_of(repository), time.time_ns())
    write(lock_of(repository), text)
    assert sweep_locks(shadow) == [str(lock_of(repository))]
    assert not lock_of(repository).exists()
    assert not note.exists()


def test_the_next_rescue_is_on_the_branch(repository: Path, shadow: Path, workspace: Path) -> None:
    shadow.rmdir()
    write(repository / "new.txt", "new\n")
    attempt_rescue(repository, workspace, ["nothing.txt"])
    left_note(shadow, lock_of(repository), time.time_ns())
    write(lock_of(repository), "")
    assert attempt_rescue(repository, workspace, ["new.txt"]).reason == "rescued"


@pytest.mark.parametrize(
    ("text", "began"),
    [("2" * 40 + "\n", 0), ("", LONG_AGO), ("", -LONG_AGO)],
    ids=["another commit", "made long after", "made before"],
)
def test_a_lock_of_somebody_else_stays(
    text: str, began: int, repository: Path, shadow: Path
) -> None:
    note = left_note(shadow, lock_of(repository), time.time_ns() - began)
    write(lock_of(repository), text)
    assert sweep_locks(shadow) == []
    assert lock_of(repository).exists()
    assert not note.exists()


def test_a_lock_without_a_note_stays(
    repository: Path, shadow: Path, workspace: Path, tmp_path: Path
) -> None:
    shadow.rmdir()
    write(lock_of(repository), "")
    write(repository / "new.txt", "new\n")
    assert attempt_rescue(repository, workspace, ["new.txt"]).reason == "not_plain:branch_lock"
    assert lock_of(repository).exists()


def test_a_lock_that_a_process_has_open_stays(repository: Path, shadow: Path) -> None:
    left_note(shadow, lock_of(repository), time.time_ns())
    write(lock_of(repository), "")
    with lock_of(repository).open("rb"):
        assert sweep_locks(shadow) == []
    assert lock_of(repository).exists()


def test_the_note_of_a_living_guard_is_left_alone(repository: Path, shadow: Path) -> None:
    with note_locks(shadow, [lock_of(repository)], OID):
        write(lock_of(repository), "")
        assert sweep_locks(shadow) == []
        assert lock_of(repository).exists()
        assert len(list((shadow / "guard.locks").iterdir())) == 1
    assert list((shadow / "guard.locks").iterdir()) == []


@pytest.mark.parametrize("text", ["", "{", "[1]", "null"])
def test_a_note_that_cannot_be_read_goes_and_takes_nothing(
    text: str, repository: Path, shadow: Path
) -> None:
    note = left_note(shadow, lock_of(repository), 0)
    note.write_text(text)
    write(lock_of(repository), "")
    assert sweep_locks(shadow) == []
    assert not note.exists()
    assert lock_of(repository).exists()


def test_an_index_lock_that_is_our_own_file_goes(repository: Path) -> None:
    git_dir = repository / ".git"
    write(git_dir / "guard-index.1", "new index")
    os.link(git_dir / "guard-index.1", git_dir / "index.lock")
    assert sweep_index(git_dir) == [str(git_dir / "index.lock")]
    assert list(git_dir.glob("guard-index*")) == []


def test_a_swap_that_was_cut_short_is_finished(
    repository: Path, shadow: Path, workspace: Path
) -> None:
    """Killed with all that it started, just after the branch moved."""
    git_dir, head = repository / ".git", git(repository, "rev-parse", "HEAD").strip()
    (git_dir / "index").rename(git_dir / "guard-index.1")
    os.link(git_dir / "guard-index.1", git_dir / "index.lock")
    write(git_dir / "index", "the old one")
    note = left_note(shadow, lock_of(repository), time.time_ns())
    note.write_text(json.dumps([time.time_ns(), head, []]))
    mend_killed_rescue(site_of(repository, workspace))
    assert git(repository, "status", "--porcelain") == ""
    assert sorted(path.name for path in git_dir.glob("*index*")) == ["index"]
    assert not note.exists()


def test_an_index_lock_of_somebody_else_stays(repository: Path) -> None:
    git_dir = repository / ".git"
    write(git_dir / "guard-index.1", "left by a kill")
    write(git_dir / "index.lock", "another")
    assert sweep_index(git_dir) == []
    assert (git_dir / "index.lock").exists()
    os.utime(git_dir / "guard-index.1", (0, 0))
    assert sweep_index(git_dir) == []
    assert list(git_dir.glob("guard-index*")) == []


def test_nobody_commits_the_old_index_while_the_branch_moves(repository: Path) -> None:
    head = git(repository, "rev-parse", "HEAD").strip()
    project = Project(find_repository(repository, lambda _: None), os.environ, Deadline(TIME_LIMIT))
    write(repository / "new.txt", "new\n")
    blob = git(repository, "hash-object", "-w", "new.txt").strip()
    change = PathChange("A", b"100644", blob, b"new.txt")
    commits = ("-c", "alias.commits=!git commit -q --allow-empty -m theirs", "commits")
    with pytest.raises(RepositoryProblem, match=r"index\.lock"):
        move_with_index(project, head, [change], commits)
    assert git(repository, "rev-parse", "HEAD").strip() == head
    assert git(repository, "ls-files", "new.txt") == ""
    assert move_with_index(project, head, [change], ("rev-parse", "HEAD")) is None
    assert git(repository, "ls-files", "new.txt") == "new.txt\n"
    assert sorted(path.name for path in (repository / ".git").glob("*index*")) == ["index"]


def test_what_others_have_staged_stays_staged(repository: Path) -> None:
    project = Project(find_repository(repository, lambda _: None), os.environ, Deadline(TIME_LIMIT))
    head = git(repository, "rev-parse", "HEAD").strip()
    write(repository / "theirs.txt", "staged meanwhile\n")
    git(repository, "add", "theirs.txt")
    blob = git(repository, "rev-parse", ":theirs.txt").strip()
    change = PathChange("A", b"100644", blob, b"ours.txt")
    assert move_with_index(project, head, [change], ("rev-parse", "HEAD")) is None
    assert git(repository, "ls-files", "ours.txt", "theirs.txt") == "ours.txt\ntheirs.txt\n"
