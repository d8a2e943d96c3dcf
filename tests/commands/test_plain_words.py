"""What commands say to people: who failed, how an end was learned, that nobody stalled, and what a bookmark is."""

from datetime import UTC, datetime, timedelta
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
    later = f"{datetime.now(UTC) + timedelta(seconds=90):%Y-%m-%dT%H:%M:%SZ}"
    for now in ({}, {"GUARD_NOW": later}):
        result = run("resume", "a1", env=now)
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


@pytest.mark.parametrize(
    ("agent", "reason"),
    [("echo work > new.txt; exit 7", "rescued"), ("exit 7", "crashed"), ("exit 0", "no_commits")],
    ids=["work that the final rescue saved", "a crash", "nothing at all"],
)
def test_one_word_and_one_reason_for_a_stall_wherever_people_read(agent: str, reason: str) -> None:
    result = run("run", "--no-probe", "--task", "T1", "--agent-id", "a1", "--", "sh", "-c", agent)
    assert (result.code, result.out.splitlines()[0].split(" (")[0]) == (10, f"stalled: {reason}")
    shown = {
        "metrics": run("metrics").out,
        "agent show": run("agent", "show", *IDS, "a1").out,
        "agent list": run("agent", "list").out,
        "status": run("status").out,
        "breaker show": run("breaker", "show").out,
        "judge": run("judge", "--replay", "1").out,
        "resume": run("resume", "a1", "--no-activity-check").out,
    }
    assert not {name: text for name, text in shown.items() if "timeout" in text}
    assert "1 stalled" in shown["metrics"]
    assert f"iteration 1: stalled: {reason}" in shown["agent show"]
    assert f"stalled      {reason}" in shown["breaker show"]
    assert shown["judge"].startswith(f"stalled: {reason} (")
    assert f"the check itself said stalled: {reason}" in shown["judge"]
    assert f"- stalled: {reason}" in shown["resume"]
    again = run("judge", "--replay", "1", "--format", "json").json
    assert (again["status"], again["reason"]) == ("timeout", reason)
