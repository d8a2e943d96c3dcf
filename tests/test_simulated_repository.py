"""The repository in memory, of the simulation, counts as git does."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.simulation.repository import Repository
from guard.core.work.count import count_work
from tests.support import commit, git, run, write


def pull(repository: Path, *words: str) -> None:
    """Somebody else commits three times, and the commits are pulled."""
    other = repository.parent / "other"
    git(repository.parent, "clone", "-q", str(repository.parent / "shared.git"), str(other))
    git(other, "config", "user.name", "Somebody Else")
    git(other, "config", "user.email", "else@example.com")
    for number in range(3):
        commit(other, f"theirs-{number}.txt", f"{number}\n")
    git(other, "push", "-q")
    git(repository, "pull", "-q", *words)


def push_in(repository: Path) -> None:
    """Somebody else commits in a clone, and pushes a branch into the repository."""
    other = repository.parent / "other"
    git(repository.parent, "clone", "-q", str(repository), str(other))
    git(other, "config", "user.name", "Somebody Else")
    git(other, "config", "user.email", "else@example.com")
    for number in range(3):
        commit(other, f"theirs-{number}.txt", f"{number}\n")
    git(other, "push", "-q", "origin", "HEAD:refs/heads/theirs")


def commit_mine(repository: Path) -> None:
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "All that was there")


def own(repository: Path, name: str = "new.txt") -> None:
    commit(repository, name, "new\n")


def amended(repository: Path) -> None:
    write(repository / "new.txt", "new\n")
    git(repository, "add", "new.txt")
    git(repository, "commit", "-q", "--amend", "--no-edit")


def set_back(repository: Path, commits: int) -> None:
    git(repository, "reset", "-q", "--hard", f"HEAD~{commits}")


def forwarded(repository: Repository) -> None:
    repository.forward(repository.upstream(3))


NEW: dict[str, tuple[str, ...] | None] = {"new.txt": ("new",)}
InMemory = Callable[[Repository], object]
InGit = Callable[[Path], object]
HISTORIES: dict[str, tuple[list[InMemory], list[InGit]]] = {
    "nothing": ([], []),
    "a commit": ([lambda r: r.commit(NEW)], [own]),
    "an empty commit": (
        [lambda r: r.commit({})],
        [lambda p: git(p, "commit", "-q", "--allow-empty", "-m", "Nothing")],
    ),
    "commits that cancel each other out": (
        [lambda r: r.commit(NEW), lambda r: r.commit({"new.txt": None})],
        [own, lambda p: git(p, "revert", "--no-edit", "HEAD")],
    ),
    "amended": ([lambda r: r.amend(NEW)], [amended]),
    "amended in its message": (
        [lambda r: r.amend({})],
        [lambda p: git(p, "commit", "-q", "--amend", "-m", "Reworded")],
    ),
    "set back by two": ([lambda r: r.reset(2)], [lambda p: set_back(p, 2)]),
    "set back, and one more": (
        [lambda r: r.reset(2), lambda r: r.commit(NEW)],
        [lambda p: set_back(p, 2), own],
    ),
    "committed and set back": (
        [lambda r: r.commit(NEW), lambda r: r.reset(1)],
        [own, lambda p: set_back(p, 1)],
    ),
    "work on another branch": (
        [
            lambda r: r.switch("refs/heads/feature"),
            lambda r: r.commit(NEW),
            lambda r: r.switch("refs/heads/main"),
        ],
        [
            lambda p: git(p, "switch", "-q", "-c", "feature"),
            own,
            lambda p: git(p, "switch", "-q", "main"),
        ],
    ),
    "work on a detached HEAD": (
        [lambda r: r.detach(), lambda r: r.commit(NEW)],
        [lambda p: git(p, "checkout", "-q", "--detach"), own],
    ),
    "pushed in from another clone": (
        [lambda r: r.push_in(3, "refs/heads/theirs")],
        [push_in],
    ),
}
PULLED: dict[str, tuple[int, list[InMemory], list[InGit]]] = {
    "pulled": (0, [forwarded], [lambda p: pull(p, "--ff-only")]),
    "pulled, and a commit": (
        0,
        [forwarded, lambda r: r.commit(NEW)],
        [lambda p: pull(p, "--ff-only"), own],
    ),
    "an old commit rebased onto what was pulled": (
        1,
        [lambda r: r.rebase(1, r.upstream(3, below=1))],
        [lambda p: pull(p, "--rebase")],
    ),
}
"""With how many commits are not pushed yet."""
COUNTED = (
    "new_commits", "empty", "copies", "rewritten", "lost", "imported", "on_other_branches",
    "net_change", "users",
)  # fmt: skip


def made_up(acts: list[InMemory]) -> dict[str, Any]:
    repository = Repository()
    for number in range(4):
        repository.commit({f"old-{number}.txt": (str(number),)})
    baseline = repository.baseline()
    for act in acts:
        act(repository)
    return count_work(repository.history(baseline)).model_dump(include=set(COUNTED))


def begin(repository: Path) -> None:
    for number in range(4):
        commit(repository, f"old-{number}.txt", f"{number}\n")


def share(repository: Path, ahead: int) -> None:
    """A shared repository, with all but the newest commits."""
    shared = repository.parent / "shared.git"
    git(repository.parent, "clone", "-q", "--bare", str(repository), str(shared))
    git(shared, "update-ref", "refs/heads/main", f"main~{ahead}")
    git(repository, "remote", "add", "origin", str(shared))
    git(repository, "fetch", "-q")
    git(repository, "branch", "-q", "--set-upstream-to", "origin/main")


def real(repository: Path, acts: list[InGit]) -> dict[str, Any]:
    assert run("baseline").code == 0
    for act in acts:
        act(repository)
    result = run("check", "--no-probe", "--no-wait", "--format", "json")
    assert result.out, result.err
    return {name: result.json["work"][name] for name in COUNTED}


@pytest.mark.parametrize(("in_memory", "in_git"), HISTORIES.values(), ids=HISTORIES)
def test_a_repository_in_memory_counts_as_a_real_one(
    in_memory: list[InMemory], in_git: list[InGit], repository: Path
) -> None:
    begin(repository)
    assert made_up(in_memory) == real(repository, in_git)


@pytest.mark.parametrize(("ahead", "in_memory", "in_git"), PULLED.values(), ids=PULLED)
def test_what_was_pulled_counts_in_memory_as_in_a_real_one(
    ahead: int, in_memory: list[InMemory], in_git: list[InGit], repository: Path
) -> None:
    begin(repository)
    share(repository, ahead)
    assert made_up(in_memory) == real(repository, in_git)


def test_the_users_work_counts_in_memory_as_in_a_real_one(repository: Path) -> None:
    begin(repository)
    write(repository / "mine.txt", "mine\n")
    mine = {"mine.txt": ("mine",)}
    in_memory: list[InMemory] = [lambda r: r.users.update(mine), lambda r: r.commit(mine)]
    found = real(repository, [commit_mine])
    assert made_up(in_memory) == found
    assert (found["new_commits"], found["users"]) == (0, 1)
