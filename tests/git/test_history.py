"""New work on real repositories: every way in which history can be rewritten, moved, or brought in from elsewhere."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support import commit, git, new_repository, write
from tests.support.baselines import COUNTS, taken, work_since

Act = Callable[[Path], Any]


def amend(repository: Path, *words: str) -> None:
    git(repository, "commit", "-q", "--amend", *words)


def change(repository: Path, name: str, text: str) -> None:
    write(repository / name, text)
    git(repository, "add", "--", name)


def two(repository: Path) -> None:
    commit(repository, "new1.txt")
    commit(repository, "new2.txt")


def three_empty(repository: Path) -> None:
    for number in range(3):
        git(repository, "commit", "-q", "--allow-empty", "-m", f"Empty {number}")


def amend_content(repository: Path) -> None:
    change(repository, "three.txt", "other\n")
    amend(repository, "--no-edit")


def with_picture(repository: Path) -> None:
    write(repository / "picture", b"\0before")
    git(repository, "add", "picture")
    git(repository, "commit", "-q", "-m", "Draw")


def amend_picture(repository: Path) -> None:
    write(repository / "picture", b"\0after")
    git(repository, "add", "picture")
    amend(repository, "--no-edit")


def squash(repository: Path) -> None:
    git(repository, "reset", "-q", "--soft", "HEAD~2")
    change(repository, "two.txt", "squashed\n")
    git(repository, "commit", "-q", "-m", "Squash")


def squash_as_it_is(repository: Path) -> None:
    git(repository, "reset", "-q", "--soft", "HEAD~2")
    git(repository, "commit", "-q", "-m", "Squash")


def reset_and_commit(repository: Path) -> None:
    git(repository, "reset", "-q", "--hard", "HEAD~2")
    commit(repository, "new.txt")


def new_branch_and_back(repository: Path) -> None:
    git(repository, "checkout", "-q", "-b", "work")
    two(repository)
    git(repository, "checkout", "-q", "main")


def commit_and_reset(repository: Path) -> None:
    commit(repository, "new.txt")
    git(repository, "reset", "-q", "--hard", "HEAD~1")


def orphan(repository: Path) -> None:
    git(repository, "checkout", "-q", "--orphan", "other")
    git(repository, "commit", "-q", "-m", "A beginning of its own")


def forged_dates(repository: Path) -> None:
    change(repository, "old.txt", "old\n")
    date = "2001-01-01T00:00:00Z"
    git(repository, "-c", f"user.name={date}", "commit", "-q", "-m", "Old", "--date", date)
    raw = git(repository, "cat-file", "commit", "HEAD")
    lines = [
        f"{line.rpartition('> ')[0]}> 978307200 +0000" if line.startswith("committer") else line
        for line in raw.split("\n")
    ]
    write(repository.parent / "raw", "\n".join(lines))
    oid = git(
        repository, "hash-object", "-w", "-t", "commit", str(repository.parent / "raw")
    ).strip()
    git(repository, "reset", "-q", "--soft", oid)


def replaced(repository: Path) -> None:
    """One commit, and a replacement that gives it a second one as parent."""
    new = commit(repository, "new.txt")
    tree = git(repository, "rev-parse", "HEAD^{tree}").strip()
    middle = git(repository, "commit-tree", "-m", "forged", "-p", "HEAD~1", tree).strip()
    other = git(repository, "commit-tree", "-m", "forged", "-p", middle, tree).strip()
    git(repository, "replace", new, other)


def grafted(repository: Path) -> None:
    new = commit(repository, "new.txt")
    old = git(repository, "rev-parse", "HEAD~3").strip()
    write(repository / ".git" / "info" / "grafts", f"{new} {old}\n")


def revert(repository: Path) -> None:
    commit(repository, "new.txt")
    git(repository, "revert", "--no-edit", "HEAD")


def detached_work(repository: Path) -> None:
    git(repository, "checkout", "-q", "--detach")
    commit(repository, "new.txt")


def tag_only(repository: Path) -> None:
    detached_work(repository)
    git(repository, "tag", "kept")
    git(repository, "checkout", "-q", "main")


def dropped_before(repository: Path) -> None:
    commit(repository, "dropped.txt")
    git(repository, "reset", "-q", "--hard", "HEAD~1")


def rename_branch(repository: Path) -> None:
    commit(repository, "new.txt")
    git(repository, "branch", "-m", "main", "trunk")


def merge_own(repository: Path) -> None:
    new_branch_and_back(repository)
    git(repository, "merge", "-q", "--no-ff", "--no-edit", "work")


def merge_with_conflict(repository: Path) -> None:
    git(repository, "checkout", "-q", "-b", "work", "HEAD~1")
    commit(repository, "three.txt", "theirs\n")
    git(repository, "checkout", "-q", "main")
    git(repository, "merge", "-q", "-s", "ours", "--no-commit", "work")
    change(repository, "three.txt", "both\n")
    git(repository, "commit", "-q", "-m", "Merge")


def cherry_pick_old(repository: Path) -> None:
    git(repository, "cherry-pick", "old")


def rescued(repository: Path) -> None:
    change(repository, "new.txt", "x\n")
    git(repository, "commit", "-q", "-m", "Rescue", "-m", "Guard-Rescue: r1/1")


def commit_and_amend(repository: Path) -> None:
    commit(repository, "new.txt")
    change(repository, "new.txt", "better\n")
    amend(repository, "--no-edit")


def rebase_dropping_one(repository: Path) -> None:
    git(repository, "-c", "sequence.editor=sed -i 1d", "rebase", "-q", "-i", "HEAD~2")


def submodule_only(repository: Path) -> None:
    inner = repository / "sub"
    commit(inner, "more.txt")
    git(repository, "add", "sub")
    git(repository, "commit", "-q", "-m", "Move the submodule")


def with_submodule(repository: Path) -> None:
    new_repository(repository / "sub", "inner.txt")
    git(repository, "add", "sub")
    git(repository, "commit", "-q", "-m", "Add a submodule")


def old_branch(repository: Path) -> None:
    git(repository, "checkout", "-q", "-b", "old", "HEAD~2")
    for number in range(7):
        commit(repository, f"old{number}.txt")
    git(repository, "checkout", "-q", "main")


def in_other_work_tree(repository: Path) -> None:
    git(repository, "worktree", "add", "-q", "../linked", "-b", "helper")
    commit(repository.parent / "linked", "helped.txt")


def detached_in_other_work_tree(repository: Path) -> None:
    git(repository, "worktree", "add", "-q", "--detach", "../linked")
    commit(repository.parent / "linked", "helped.txt")


def nothing(_repository: Path) -> None:
    return


def in_sequence(*acts: Act) -> Act:
    def act(repository: Path) -> None:
        for one in acts:
            one(repository)

    return act


def git_does(*words: str) -> Act:
    return lambda repository: git(repository, *words)


@dataclass(frozen=True)
class Story:
    """What the agent does, and what is found: counts that are not named are 0."""

    act: Act
    found: dict[str, Any] = field(default_factory=dict)
    before: Act = nothing


STORIES: dict[str, Story] = {
    "nothing": Story(nothing, {"net_change": False}),
    "two commits": Story(two, {"new_commits": 2, "net_change": True}),
    "an amended commit with other content": Story(
        amend_content, {"new_commits": 1, "rewritten": 1, "net_change": True}
    ),
    "an amended message": Story(
        lambda r: amend(r, "-m", "Said better"), {"copies": 1, "rewritten": 1, "net_change": False}
    ),
    "an amended picture": Story(
        amend_picture, {"new_commits": 1, "rewritten": 1, "net_change": True}, with_picture
    ),
    "a hard reset": Story(
        git_does("reset", "-q", "--hard", "HEAD~2"), {"lost": 2, "net_change": False}
    ),
    "a hard reset and one commit": Story(
        reset_and_commit, {"new_commits": 1, "lost": 2, "net_change": True}
    ),
    "a squash with a change": Story(squash, {"new_commits": 1, "rewritten": 2, "net_change": True}),
    "a squash of what was there": Story(
        squash_as_it_is, {"new_commits": 1, "rewritten": 2, "net_change": False}
    ),
    "three empty commits": Story(three_empty, {"empty": 3, "net_change": False}),
    "an old branch checked out": Story(
        git_does("checkout", "-q", "old"), {"net_change": False, "branch_changed": True}, old_branch
    ),
    "work on a new branch, HEAD back on main": Story(
        new_branch_and_back,
        {
            "new_commits": 2,
            "on_other_branches": 2,
            "other_branches": ("refs/heads/work",),
            "net_change": True,
            "branch_changed": False,
        },
    ),
    "a commit, then a reset": Story(commit_and_reset, {"lost": 1, "net_change": False}),
    "an orphan branch": Story(
        orphan,
        {"new_commits": 1, "on_other_branches": 1, "unrelated": True, "branch_changed": True},
    ),
    "a commit from 2001": Story(
        forged_dates,
        {
            "new_commits": 1,
            "net_change": True,
            "warnings": ("nothing tells where 1 new commit came from: counted as the agent's",),
        },
    ),
    "a replaced commit": Story(replaced, {"new_commits": 1}),
    "a grafted commit": Story(grafted, {"new_commits": 1}),
    "a commit and its revert": Story(revert, {"new_commits": 2, "net_change": False}),
    "work on a detached HEAD": Story(
        detached_work,
        {"new_commits": 1, "on_other_branches": 1, "other_branches": ("HEAD",), "branch": None},
    ),
    "a commit that only a tag leads to": Story(
        tag_only, {"new_commits": 1, "on_other_branches": 1, "other_branches": ("refs/tags/kept",)}
    ),
    "a renamed branch": Story(
        rename_branch, {"new_commits": 1, "branch": "refs/heads/trunk", "branch_changed": True}
    ),
    "a renamed branch that was amended before": Story(
        rename_branch,
        {"new_commits": 1, "branch": "refs/heads/trunk"},
        in_sequence(dropped_before, amend_content),
    ),
    "an own branch merged": Story(merge_own, {"new_commits": 2, "merges": 1, "net_change": True}),
    "a merge with a conflict that was resolved": Story(
        merge_with_conflict, {"new_commits": 2, "net_change": True}
    ),
    "a commit picked from an old branch": Story(cherry_pick_old, {"copies": 1}, old_branch),
    "a rescue": Story(rescued, {"rescued": 1, "net_change": False}),
    "a commit that was amended at once": Story(
        commit_and_amend, {"new_commits": 1, "net_change": True}
    ),
    "a rebase that drops a commit": Story(
        rebase_dropping_one, {"copies": 1, "rewritten": 1, "lost": 1}
    ),
    "a submodule moved": Story(
        submodule_only, {"new_commits": 1, "net_change": True}, with_submodule
    ),
    "work in another work tree": Story(
        in_other_work_tree,
        {"new_commits": 1, "on_other_branches": 1, "other_branches": ("refs/heads/helper",)},
    ),
    "work on a detached HEAD in another work tree": Story(
        detached_in_other_work_tree,
        {"new_commits": 1, "on_other_branches": 1, "other_branches": ("worktrees/linked/HEAD",)},
    ),
    "another work tree that was there before": Story(nothing, {}, detached_in_other_work_tree),
    "a branch deleted that was merged": Story(
        in_sequence(merge_own, git_does("branch", "-q", "-d", "work")),
        {"new_commits": 2, "merges": 1},
    ),
    "a branch deleted that was not": Story(
        git_does("branch", "-q", "-D", "old"), {"lost": 7}, old_branch
    ),
}


@pytest.fixture
def project(repository: Path) -> Path:
    """Three commits on main."""
    for name in ("one.txt", "two.txt", "three.txt"):
        commit(repository, name)
    return repository


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_after(story: Story, project: Path) -> None:
    story.before(project)
    baseline = taken(project)
    story.act(project)
    work = work_since(baseline, project)
    expected = dict.fromkeys(COUNTS, 0) | {"warnings": ()} | story.found
    assert {name: getattr(work, name) for name in expected} == expected
