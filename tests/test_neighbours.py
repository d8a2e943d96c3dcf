"""Agents side by side, each in a work tree of its own: none completes another's iteration."""

import os
from pathlib import Path

import pytest

from tests.support import commit, git, run
from tests.support.sessions import started, until

WORK = "date +%s%N > work.txt; git add work.txt; git commit -q -m 'feat: work'"


@pytest.fixture
def linked(repository: Path) -> Path:
    """A second work tree of the same repository."""
    commit(repository, "first.txt")
    git(repository, "worktree", "add", "-q", "../linked", "-b", "other")
    return repository.parent / "linked"


def status_of(*words: str | Path, cwd: Path) -> tuple[str, str]:
    found = run("run", "--no-probe", "--format", "json", *words, cwd=cwd).json
    return found["status"], found["reason"]


@pytest.mark.parametrize("stalls_in", ["the main work tree", "the linked one"])
def test_a_commit_beside_it_does_not_complete_an_agent_that_stalls(
    stalls_in: str, repository: Path, linked: Path
) -> None:
    here, there = (repository, linked) if "main" in stalls_in else (linked, repository)
    os.chdir(here)
    agent = "echo up > ../up; while [ ! -e ../go ]; do sleep 0.1; done"
    stalls = started("run", "--no-probe", "--format", "json", "--", "sh", "-c", agent, listen=True)
    until((repository.parent / "up").exists)
    assert status_of("--", "sh", "-c", WORK, cwd=there) == ("complete", "commits")
    (repository.parent / "go").touch()
    out, err = stalls.communicate(timeout=120)
    assert (stalls.returncode, '"new_commits": 0' in out) == (10, True), out + err


def test_work_in_a_work_tree_without_an_iteration_of_its_own_counts(
    repository: Path, linked: Path
) -> None:
    agent = f"cd {linked}; {WORK}"
    assert status_of("--", "sh", "-c", agent, cwd=repository) == ("complete", "commits")


def test_an_iteration_that_ended_before_is_nobodys_neighbour(
    repository: Path, linked: Path
) -> None:
    assert status_of("--", "true", cwd=linked) == ("timeout", "no_commits")
    agent = f"cd {linked}; {WORK}"
    assert status_of("--", "sh", "-c", agent, cwd=repository) == ("complete", "commits")
