"""Work beside an iteration in another work tree: what is done there is neither done nor lost here."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from guard.core.base.paths import spell
from guard.git.gitdir_files import other_work_trees
from tests.support import commit, git, write
from tests.support.baselines import COUNTS, located, taken, work_since

Act = Callable[[Path, Path], Any]


def there(*acts: tuple[str, ...]) -> Act:
    """Commands of git in the other work tree; `add NAME` commits a file."""
    return lambda _here, beside: _do(beside, acts)


def here(*acts: tuple[str, ...]) -> Act:
    return lambda project, _beside: _do(project, acts)


def _do(folder: Path, acts: tuple[tuple[str, ...], ...]) -> None:
    for words in acts:
        if words[0] == "add":
            commit(folder, words[1])
        else:
            git(folder, *words)


def in_sequence(*acts: Act) -> Act:
    def act(project: Path, beside: Path) -> None:
        for one in acts:
            one(project, beside)

    return act


def nothing(_here: Path, _beside: Path) -> None:
    return


def in_a_third_work_tree(project: Path, _beside: Path) -> None:
    """As an agent's helper does: it commits, and its work tree is removed."""
    git(project, "worktree", "add", "-q", "../third", "-b", "helper")
    commit(project.parent / "third", "helped.txt")
    git(project, "worktree", "remove", "../third")


def pulled_from_there(project: Path, beside: Path) -> None:
    shared = project.parent / "shared"
    git(project, "init", "-q", "--bare", str(shared))
    git(beside, "reset", "-q", "--hard", "main")
    commit(beside, "theirs.txt")
    git(beside, "push", "-q", str(shared), "HEAD:main")
    git(project, "pull", "-q", "--ff-only", str(shared), "main")


def rescued_there(_here: Path, beside: Path) -> None:
    """As guard does it on a branch of its own: HEAD does not move."""
    message = ("-m", "Rescue", "-m", "Guard-Rescue: r2/1")
    rescued = git(beside, "commit-tree", *message, "-p", "HEAD", "HEAD~1^{tree}").strip()
    git(beside, "branch", "rescue", rescued)


def amended_there(_here: Path, beside: Path) -> None:
    write(beside / "second.txt", "better\n")
    git(beside, "commit", "-q", "-a", "--amend", "--no-edit")
    git(beside, "checkout", "-q", "-b", "next")


ADD = ("add", "theirs.txt")
OWN = ("add", "own.txt")
NEXT = ("checkout", "-q", "-b", "next")
BACK = ("reset", "-q", "--hard", "HEAD~1")


@dataclass(frozen=True)
class Story:
    """What is done, and what is found here: counts that are not named are 0."""

    act: Act
    found: dict[str, Any] = field(default_factory=dict)
    before: Act = nothing


STORIES: dict[str, Story] = {
    "a commit there": Story(there(ADD), {"imported": 1}),
    "a commit there with a tag": Story(there(ADD, ("tag", "kept")), {"imported": 1}),
    "a commit there with a tag and a second branch": Story(
        there(ADD, ("tag", "kept"), ("branch", "backup")), {"imported": 1}
    ),
    "a commit there that its work tree has left": Story(
        there(ADD, NEXT, ("add", "more.txt")), {"imported": 2}
    ),
    "a commit there on a detached HEAD, with a tag, that was left": Story(
        there(("checkout", "-q", "--detach"), ADD, ("tag", "kept"), ("checkout", "-q", "other")),
        {"imported": 1},
    ),
    "a commit there that was reset": Story(there(ADD, BACK)),
    "a reset there": Story(there(BACK)),
    "a reset there, and its branch left": Story(there(BACK, NEXT)),
    "a reset there on a detached HEAD": Story(
        there(BACK), before=there(("checkout", "-q", "--detach"), ("add", "detached.txt"))
    ),
    "an amended commit there, and its branch left": Story(amended_there, {"imported": 1}),
    "a rebase there, and its branch left": Story(
        there(("rebase", "-q", "--onto", "HEAD~2", "HEAD~1"), NEXT), {"imported": 1}
    ),
    "a branch deleted there after it was reset": Story(
        there(BACK, NEXT, ("branch", "-q", "-D", "other"))
    ),
    "a rescue there on a branch of its own": Story(rescued_there, {"imported": 1}),
    "a commit there and one here": Story(
        in_sequence(there(ADD), here(OWN)), {"new_commits": 1, "imported": 1}
    ),
    "a commit there, merged here": Story(
        in_sequence(there(ADD), here(OWN, ("merge", "-q", "--no-edit", "other"))),
        {"new_commits": 2, "merges": 1},
    ),
    "a commit there, pulled here by way of another repository": Story(
        pulled_from_there, {"imported": 1}
    ),
    "a commit here, merged there": Story(
        in_sequence(here(OWN), there(("merge", "-q", "--no-edit", "main"))),
        {"new_commits": 1, "imported": 1},
    ),
    "a commit here on a branch that was left, merged there": Story(
        in_sequence(
            here(NEXT, OWN, ("checkout", "-q", "main")),
            there(("merge", "-q", "--no-edit", "next")),
        ),
        {"new_commits": 1, "imported": 1, "on_other_branches": 1},
    ),
    "a helper's commit, merged there": Story(
        in_sequence(in_a_third_work_tree, there(("merge", "-q", "--no-edit", "helper"))),
        {"new_commits": 1, "imported": 1, "on_other_branches": 1},
    ),
    "a reset here": Story(here(BACK), {"lost": 1}),
    "a reset here of a branch that was left, to where the other stood": Story(
        in_sequence(
            there(("reset", "-q", "--hard", "HEAD~1"), ADD),
            here(("checkout", "-q", "old"), ("reset", "-q", "--hard", "other~1")),
        ),
        {"lost": 1, "imported": 1},
        before=here(("checkout", "-q", "-b", "old"), OWN, ("checkout", "-q", "main")),
    ),
    "a branch deleted here": Story(
        here(("branch", "-q", "-D", "old")),
        {"lost": 1},
        before=here(("checkout", "-q", "-b", "old"), OWN, ("checkout", "-q", "main")),
    ),
}


@pytest.fixture
def beside(repository: Path) -> Path:
    """Another work tree, one commit ahead on a branch of its own; and two commits on main."""
    commit(repository, "one.txt")
    git(repository, "worktree", "add", "-q", "../beside", "-b", "other")
    commit(repository.parent / "beside", "first.txt")
    commit(repository.parent / "beside", "second.txt")
    commit(repository, "two.txt")
    return repository.parent / "beside"


def names(folder: Path) -> set[str]:
    """The refs of all other work trees."""
    trees = list(other_work_trees(located(folder)))
    return {tree.head for tree in trees} | {spell(tree.branch) for tree in trees if tree.branch}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_beside(story: Story, repository: Path, beside: Path) -> None:
    story.before(repository, beside)
    baseline = taken(repository)
    story.act(repository, beside)
    work = work_since(baseline, repository, names(repository))
    expected = dict.fromkeys(COUNTS, 0) | story.found
    assert {name: getattr(work, name) for name in expected} == expected
    assert work.warnings == ()


def test_what_is_done_in_the_main_work_tree_is_not_done_in_a_linked_one(
    repository: Path, beside: Path
) -> None:
    baseline = taken(beside)
    _do(repository, (ADD, ("tag", "kept"), NEXT, BACK, BACK))
    work = work_since(baseline, beside, names(beside))
    assert (work.new_commits, work.imported, work.lost) == (0, 1, 0)


def test_a_commit_that_both_made_in_the_same_second_is_made_here(
    repository: Path, beside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(beside, "reset", "-q", "--hard", "main")
    baseline = taken(repository)
    for name in ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"):
        monkeypatch.setenv(name, "2026-01-31T12:00:00Z")
    assert commit(beside, "own.txt") == commit(repository, "own.txt")
    work = work_since(baseline, repository, names(repository))
    assert (work.new_commits, work.imported) == (1, 0)
