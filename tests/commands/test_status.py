"""`guard status`: many agents, each with how stale it is and whether it is at work."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from guard import spawn_agent, update_agent_progress
from guard.activity.survey import survey
from guard.context.invocation import Invocation
from tests.support import commit, run, write


@pytest.fixture(autouse=True)
def chosen(repository: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUARD_WORKSPACE", str(workspace))
    commit(repository, "first.txt")


def hours_ago(hours: float) -> str:
    return (datetime.now(UTC) - timedelta(hours=hours)).isoformat()


def agents(*words: str) -> dict[str, Any]:
    result = run("status", "--format", "json", *words)
    assert result.code == 0, result.err
    return {one["agent_id"]: one for one in result.json["agents"]}


@pytest.fixture
def stale(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three agents that last said something 1, 7 and 13 hours ago, and one that has ended."""
    for name, hours in (("a1", 1), ("a7", 7), ("a13", 13)):
        assert (
            run(
                "agent",
                "spawn",
                "--task",
                "T1",
                "--agent",
                name,
                env={"GUARD_NOW": hours_ago(hours)},
            ).code
            == 0
        )
    spawn_agent("T1", "done")
    update_agent_progress("T1", "done", "completed", "Done.")


@pytest.mark.usefixtures("stale")
def test_each_agent_has_a_category(repository: Path) -> None:
    found = agents()
    assert {name: one["category"] for name, one in found.items()} == {
        "a1": "fresh",
        "a7": "critical",
        "a13": "auto_resume",
        "done": "ended",
    }
    assert found["a7"]["age_minutes"] == pytest.approx(420, abs=5)
    assert (found["a7"]["is_active"], found["done"]["is_active"]) == (False, None)


@pytest.mark.usefixtures("stale")
def test_activity_stops_the_escalation_unless_nobody_looks(repository: Path) -> None:
    write(repository / "agent_workspaces/a13/parser.py", "code")
    found = agents()["a13"]
    assert (found["category"], found["is_active"], found["confidence"]) == ("warning", True, 0.5)
    assert found["sources"][0] == "FILE_MODIFICATION"
    text = run("status").out
    assert "active 0.5 (FILE_MODIFICATION" in text
    assert "auto_resume" not in text
    found = agents("--no-activity-check")["a13"]
    assert (found["category"], found["is_active"]) == ("auto_resume", None)


@pytest.mark.usefixtures("stale")
def test_a_status_file_tells_its_age(repository: Path) -> None:
    status = {"status": "ACTIVE", "last_updated": hours_ago(3)}
    write(repository / "agent_workspaces/a13/status.json", json.dumps(status))
    assert agents("--no-activity-check")["a13"]["category"] == "warning"
    broken = write(repository / "agent_workspaces/a13/status.json", "{")
    os.utime(broken, (0, 0))
    assert agents("--no-activity-check")["a13"]["category"] == "auto_resume"


def test_agents_of_one_work_tree_are_told_apart_and_looked_at_together(repository: Path) -> None:
    for number in range(50):
        spawn_agent("T1", f"a{number}")
    commit(repository, "login.txt")
    write(repository / "agent_workspaces/a7/parser.py", "code")
    report = survey(Invocation())
    active = [one.agent_id for one in report.agents if one.is_active]
    assert active == ["a7"]


def test_no_file_of_one_agent_keeps_the_others_from_being_shown(repository: Path) -> None:
    for name in ("a1", "a2", "a3"):
        spawn_agent("T1", name)
    huge = '{"last_updated": 1' + "0" * 400 + ', "status": "working on it"}'
    write(repository / "agent_workspaces/a1/status.json", huge)
    (repository / ".agents/a2").mkdir(parents=True)
    write(repository / ".agents/a2/status.json", "[" * 100_000)
    report = survey(Invocation())
    assert [one.category for one in report.agents] == ["fresh"] * 3
