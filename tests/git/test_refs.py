"""The stamp by which a wait sees that a ref has moved."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guard.git.reader import RepositoryReader
from guard.git.refs import head_and_refs_stamp, read_refs
from tests.support import commit, git, run, write
from tests.support.baselines import left_since, located, taken, work_since

Act = Callable[[Path], Any]


@pytest.fixture
def project(repository: Path) -> Path:
    """Two commits, a tag, and a linked work tree beside it."""
    commit(repository, "one.txt")
    commit(repository, "two.txt")
    git(repository, "worktree", "add", "-q", "../linked", "-b", "helper")
    git(repository, "worktree", "add", "-q", "../detached", "--detach")
    return repository


def packed(act: Act) -> Act:
    def after_packing(project: Path) -> None:
        git(project, "pack-refs", "--all")
        stamp = head_and_refs_stamp(located(project))
        act(project)
        assert head_and_refs_stamp(located(project)) != stamp

    return after_packing


MOVES: dict[str, Act] = {
    "a commit": lambda p: commit(p, "new.txt"),
    "an amended commit": lambda p: git(p, "commit", "-q", "--amend", "-m", "x"),
    "a commit that is undone at once": lambda p: (
        commit(p, "new.txt"),
        git(p, "reset", "-q", "--hard", "HEAD~1"),
    ),
    "a commit in another work tree": lambda p: commit(p.parent / "linked", "new.txt"),
    "a commit on a detached HEAD in another work tree": lambda p: commit(
        p.parent / "detached", "new.txt"
    ),
    "a new branch": lambda p: git(p, "branch", "new"),
    "a new branch in folders": lambda p: git(p, "branch", "guard/deep/er"),
    "a branch forced elsewhere": lambda p: git(p, "branch", "-f", "helper2", "HEAD~1"),
    "a deleted branch": lambda p: (git(p, "branch", "new"), git(p, "branch", "-D", "new")),
    "a tag": lambda p: git(p, "tag", "v1"),
    "another branch checked out": lambda p: git(p, "checkout", "-q", "-b", "new"),
    "a stash": lambda p: (write(p / "one.txt", "x"), git(p, "stash")),
    "a commit on packed refs": packed(lambda p: commit(p, "new.txt")),
    "a packed branch that is deleted": packed(
        lambda p: git(p, "update-ref", "-d", "refs/heads/main")
    ),
    "a ref moved without a reflog": lambda p: git(
        p, "-c", "core.logAllRefUpdates=false", "update-ref", "refs/heads/main", "HEAD~1"
    ),
    "a work tree that is new": lambda p: git(p, "worktree", "add", "-q", "../third", "--detach"),
}


@pytest.mark.parametrize("act", MOVES.values(), ids=MOVES)
def test_the_stamp_changes_with(act: Act, project: Path) -> None:
    git(project, "branch", "helper2")
    for subject in (project, project.parent / "linked"):
        assert head_and_refs_stamp(located(subject)) == head_and_refs_stamp(located(subject))
    before = [head_and_refs_stamp(located(one)) for one in (project, project.parent / "linked")]
    act(project)
    after = [head_and_refs_stamp(located(one)) for one in (project, project.parent / "linked")]
    assert all(one != other for one, other in zip(before, after, strict=True))


QUIET: dict[str, Act] = {
    "an edit": lambda p: write(p / "one.txt", "edited\n"),
    "git status": lambda p: git(p, "status"),
    "a staged file": lambda p: (write(p / "new.txt", "x"), git(p, "add", "new.txt")),
}


@pytest.mark.parametrize("act", QUIET.values(), ids=QUIET)
def test_the_stamp_stays_with(act: Act, project: Path) -> None:
    stamp = head_and_refs_stamp(located(project))
    act(project)
    assert head_and_refs_stamp(located(project)) == stamp


def test_guards_own_looks_do_not_change_it(project: Path) -> None:
    taken(project)
    stamp = head_and_refs_stamp(located(project))
    baseline = taken(project)
    work_since(baseline, project)
    left_since(baseline, project)
    git(project, "update-ref", "refs/guard/lost/x", "HEAD~1")
    assert head_and_refs_stamp(located(project)) == stamp


def test_a_repository_that_is_gone_has_a_stamp(project: Path) -> None:
    repository = located(project)
    stamp = head_and_refs_stamp(repository)
    os.rename(project / ".git", project / "was.git")
    assert head_and_refs_stamp(repository) != stamp


@pytest.mark.parametrize("content", ["0" * 40 + "\n", "", None], ids=["no commit", "empty", "gone"])
def test_a_work_tree_that_git_is_just_making_is_passed_over(
    content: str | None, project: Path
) -> None:
    # `git worktree add` writes its HEAD without a commit first.
    head = project / ".git" / "worktrees" / "detached" / "HEAD"
    head.unlink()
    if content is not None:
        head.write_text(content)
    refs = read_refs(RepositoryReader(located(project), os.environ))
    assert "worktrees/detached/HEAD" not in refs.names
    assert refs.head == git(project, "rev-parse", "HEAD").strip()
    done = run("run", "--", "sh", "-c", "echo x > x.txt; git add -A; git commit -qm 'feat: x'")
    assert done.code == 0, done.err
