"""Agents side by side, each in a work tree of its own: none completes another's iteration."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support import commit, git, run
from tests.support.sessions import killed, started, until

WORK = "date +%s%N > work.txt; git add work.txt; git commit -q -m 'feat: work'"
STALL = "echo up > ../up; while [ ! -e ../go ]; do sleep 0.1; done"


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
    stalls = started("run", "--no-probe", "--format", "json", "--", "sh", "-c", STALL, listen=True)
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


BESIDE = {
    "commits, and leaves a tag and a branch": f"{WORK}; git tag kept; git branch backup",
    "goes on on another branch": f"{WORK}; git checkout -q -b next; {WORK}",
    "throws a commit of before away": "git reset -q --hard HEAD~1",
    "throws a commit of before away, and goes on on another branch": (
        "git reset -q --hard HEAD~1; git checkout -q -b next"
    ),
}


@pytest.mark.parametrize("work", BESIDE.values(), ids=BESIDE)
def test_nothing_came_and_nothing_was_lost_here_when_the_agent_beside_it(
    work: str, repository: Path, linked: Path
) -> None:
    commit(linked, "second.txt")
    os.chdir(repository)
    stalls = started("run", "--no-probe", "--format", "json", "--", "sh", "-c", STALL, listen=True)
    until((repository.parent / "up").exists)
    status_of("--", "sh", "-c", work, cwd=linked)
    (repository.parent / "go").touch()
    out, err = stalls.communicate(timeout=120)
    found: dict[str, Any] = json.loads(out)
    counts = [found["work"][name] for name in ("new_commits", "rewritten", "lost")]
    assert (stalls.returncode, found["reason"], counts) == (10, "no_commits", [0, 0, 0]), err
    assert "lost" not in err


def test_an_iteration_whose_guard_was_killed_is_nobodys_neighbour(
    repository: Path, linked: Path
) -> None:
    os.chdir(linked)
    guard = started("run", "--no-probe", "--", "sh", "-c", STALL)
    until((repository.parent / "up").exists)
    killed(guard)
    (repository.parent / "go").touch()
    agent = f"cd {linked}; {WORK}"
    assert status_of("--", "sh", "-c", agent, cwd=repository) == ("complete", "commits")


@pytest.mark.parametrize(
    ("ago", "found"),
    [
        (timedelta(hours=13), ("complete", "commits")),
        (timedelta(hours=11), ("timeout", "no_commits")),
    ],
    ids=["yesterday is nobody's neighbour", "some hours ago may be under way"],
)
def test_an_iteration_that_was_begun_by_hand(
    ago: timedelta, found: tuple[str, str], repository: Path, linked: Path
) -> None:
    begun = (datetime.now(UTC) - ago).isoformat()
    assert run("baseline", cwd=linked, env={"GUARD_NOW": begun}).code == 0
    agent = f"cd {linked}; {WORK}"
    assert status_of("--", "sh", "-c", agent, cwd=repository) == found
