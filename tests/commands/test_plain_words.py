"""What commands say to people: who failed, how an end was learned, that nobody stalled, and what a bookmark is."""

from pathlib import Path

import pytest

from guard.core.activity.status_report import CELLS
from guard.errors import StoreUnavailable
from guard.store.lock import LOCK, hold_lock
from guard.system.private_files import Folder
from tests.support import commit, git, run

IDS = ("--task", "T1", "--agent")


@pytest.fixture(autouse=True)
def project(repository: Path) -> Path:
    commit(repository)
    return repository


def test_failed_agents_are_counted_apart_under_a_header() -> None:
    for name, status in (("good", "completed"), ("bad", "failed"), ("worse", "error")):
        assert run("agent", "spawn", *IDS, name).code == 0
        assert run("agent", "update", *IDS, name, "--status", status, "--message", "so").code == 0
    counts, task, header, *_ = run("status").out.splitlines()
    assert counts == "0 active, 1 completed, 2 failed, 3 spawned in 1 task"
    assert task == "task T1: 0 active, 1 completed, 2 failed, 3 spawned"
    assert tuple(header.split()) == CELLS
    shown = run("status", "--format", "json").json
    assert (shown["completed_agents"], shown["failed_agents"]) == (3, 2)
    assert shown["tasks"][0]["failed_count"] == 2
    counts, header, *rows = run("agent", "list").out.splitlines()
    assert counts == "0 active, 1 completed, 2 failed, 3 spawned"
    assert "confidence  ended by" in header
    (good,) = [row for row in rows if " good " in row]
    begins = header.index("confidence")
    confidence, ended_by = good[begins:].split()[:2]
    assert 0 <= float(confidence) <= 1
    assert ended_by == "self_report"


def test_nobody_stalled_is_said_and_a_new_agent_gets_no_prompt() -> None:
    assert "no agent has stalled" in run("resume", "--all").out
    assert run("agent", "spawn", *IDS, "a1").code == 0
    result = run("resume", "a1")
    assert (result.code, "spawned only" in result.out) == (1, True), result
    assert "no agent has stalled" in run("resume", "--all").out
    assert run("resume", "a1", "--no-activity-check").code == 0


def test_the_bookmark_of_a_baseline_says_what_it_is(project: Path) -> None:
    assert run("baseline").code == 0
    subjects = git(project, "log", "--all", "--format=%s").splitlines()
    ours = [line for line in subjects if line.startswith("guard: bookmark")]
    assert len(ours) == len(subjects) - 1
    assert not [line for line in subjects if line.startswith("Baseline of")]


def test_a_lock_does_not_name_a_dead_holder(tmp_path: Path) -> None:
    with Folder.make(tmp_path / "place") as folder, hold_lock(folder, 1.0):
        with pytest.raises(StoreUnavailable) as waited, hold_lock(folder, 0.0):
            pass
        assert "held by pid" in waited.value.message
        with (tmp_path / "place" / LOCK).open("r+b") as file:
            file.write(b"pid 2147483646 (guard)".ljust(60))
        with pytest.raises(StoreUnavailable) as again, hold_lock(folder, 0.0):
            pass
        assert "2147483646" not in again.value.message
