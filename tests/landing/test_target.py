"""The target: which branch it is, and what of a person's stands in the way where it is checked out."""

import os
from pathlib import Path

import pytest

from guard.errors import Refused
from tests.support import git, write
from tests.support.landings import LandingPlan
from tests.support.reverts import state


@pytest.fixture
def planned(repository: Path, workspace: Path) -> LandingPlan:
    planned = LandingPlan(repository, workspace, "A", "B")
    write(repository / ".gitignore", "*.log\n")
    write(repository / "same.txt", "begin\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "More")
    return planned


def test_a_checked_out_target_moves_with_its_index_and_files(planned: LandingPlan) -> None:
    planned.passes("A", {"same.txt": "A\n", "new/deep.txt": "new\n"})
    write(planned.root / "base.txt", "a person's edit\n")
    write(planned.root / "mine.txt", "mine\n")
    report = planned.lands(target="main")
    assert (report.landed, report.exit_code) == (1, 0)
    assert (planned.root / "same.txt").read_text() == "A\n"
    assert (planned.root / "new/deep.txt").read_text() == "new\n"
    assert (planned.root / "base.txt").read_text() == "a person's edit\n"
    assert git(planned.root, "status", "--porcelain").splitlines() == [" M base.txt", "?? mine.txt"]


def test_without_its_name_a_checked_out_branch_is_not_landed_on(planned: LandingPlan) -> None:
    planned.passes("A")
    git(planned.root, "checkout", "-q", "guard/plan/plan")
    before = state(planned.root)
    report = planned.lands()
    assert (report.tasks[0].outcome, report.exit_code) == ("not_ready", 14)
    assert "--target" in report.tasks[0].detail
    assert state(planned.root) == before


def edited(root: Path) -> None:
    write(root / "same.txt", "a person's\n")


def staged(root: Path) -> None:
    write(root / "same.txt", "a person's\n")
    git(root, "add", "same.txt")
    write(root / "same.txt", "begin\n")


def deleted(root: Path) -> None:
    (root / "same.txt").unlink()


def untracked(root: Path) -> None:
    write(root / "new.txt", "a person's\n")


def ignored(root: Path) -> None:
    write(root / "out.log", "a person's\n")


def file_for_a_folder(root: Path) -> None:
    write(root / "deep", "a person's\n")


def hidden(root: Path) -> None:
    git(root, "update-index", "--skip-worktree", "same.txt")
    write(root / "same.txt", "a person's\n")


def merging(root: Path) -> None:
    git(root, "branch", "side", "HEAD")
    write(root / "other.txt", "x\n")
    git(root, "add", "other.txt")
    write(root / ".git/MERGE_HEAD", git(root, "rev-parse", "HEAD^"))


IN_THE_WAY = [edited, staged, deleted, untracked, ignored, file_for_a_folder, hidden, merging]


@pytest.mark.parametrize("dirt", IN_THE_WAY, ids=lambda dirt: dirt.__name__)
def test_a_persons_files_in_the_way_stay_byte_for_byte_and_nothing_moves(
    dirt: object, planned: LandingPlan
) -> None:
    tree = planned.tree("A")
    for name in ("same.txt", "new.txt", "deep/file.txt"):
        write(tree / name, "A\n")
    write(tree / "out.log", "A\n")
    git(tree, "add", "-f", "out.log")
    planned.passes("A", {})
    assert callable(dirt)
    dirt(planned.root)
    before = state(planned.root)
    report = planned.lands(target="main")
    assert (report.tasks[0].outcome, report.exit_code) == ("not_ready", 14)
    assert state(planned.root) == before
    assert git(planned.root, "for-each-ref", "refs/guard/landed") == ""
    assert planned.state.landing_in_progress is None
    assert planned.state.completed_tasks == ("A",)


def test_once_the_way_is_free_it_lands(planned: LandingPlan) -> None:
    planned.passes("A", {"same.txt": "A\n"})
    edited(planned.root)
    assert planned.outcomes(target="main") == {"A": "not_ready"}
    git(planned.root, "checkout", "-q", "same.txt")
    assert planned.outcomes(target="main") == {"A": "landed"}
    assert git(planned.root, "status", "--porcelain") == ""


def test_a_target_in_another_work_tree_moves_there(planned: LandingPlan) -> None:
    planned.passes("A")
    other = planned.root.parent / "other"
    git(planned.root, "worktree", "add", "-q", "-b", "release", os.fspath(other))
    before = state(planned.root)
    assert planned.outcomes(target="release") == {"A": "landed"}
    assert (other / "A.txt").read_text() == "A\n"
    assert git(other, "status", "--porcelain") == ""
    assert state(planned.root) == before


@pytest.mark.parametrize("name", ["nowhere", "bad..name", "-x", ""])
def test_a_target_that_is_no_branch_is_refused(name: str, planned: LandingPlan) -> None:
    planned.passes("A")
    with pytest.raises(Refused):
        planned.lands(target=name)


def test_a_target_with_no_common_history_is_a_conflict(planned: LandingPlan) -> None:
    planned.passes("A")
    empty = git(planned.root, "hash-object", "-t", "tree", "/dev/null").strip()
    oid = git(planned.root, "commit-tree", empty, "-m", "Another root").strip()
    git(planned.root, "branch", "island", oid)
    report = planned.lands(target="island")
    assert report.tasks[0].outcome == "conflict"
    assert "shares no history" in report.tasks[0].detail


def test_a_shallow_repository(planned: LandingPlan, tmp_path: Path, workspace: Path) -> None:
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{planned.root}", os.fspath(shallow))
    git(shallow, "config", "user.name", "x")
    git(shallow, "config", "user.email", "x@y")
    other = LandingPlan(shallow, workspace.with_name("other-workspace"), "A")
    other.passes("A")
    assert other.outcomes() == {"A": "landed"}
    git(shallow, "fsck", "--strict")


def test_a_repository_with_sha256(home: Path, tmp_path: Path, workspace: Path) -> None:
    root = tmp_path / "long"
    git(tmp_path, "init", "-q", "-b", "main", "--object-format=sha256", os.fspath(root))
    git(root, "config", "user.name", "x")
    git(root, "config", "user.email", "x@y")
    planned = LandingPlan(root, workspace, "A", "B")
    planned.passes("A", {"CHANGELOG.md": "- A\n"})
    planned.passes("B", {"CHANGELOG.md": "- B\n"})
    assert planned.outcomes() == {"A": "landed", "B": "landed"}
    assert sorted(planned.shown("CHANGELOG.md").split("\n")) == ["", "- A", "- B"]
    git(root, "fsck", "--strict")


def test_a_dry_run_writes_nothing(planned: LandingPlan) -> None:
    planned.passes("A", {"same.txt": "A\n"})
    planned.passes("B", {"same.txt": "B\n"})
    before, objects = state(planned.root), sorted((planned.root / ".git/objects").rglob("*"))
    refs, known = git(planned.root, "for-each-ref"), planned.state
    report = planned.lands(dry=True)
    assert report.tasks[0].outcome == "planned"
    assert (state(planned.root), planned.state) == (before, known)
    assert git(planned.root, "for-each-ref") == refs
    assert sorted((planned.root / ".git/objects").rglob("*")) == objects
