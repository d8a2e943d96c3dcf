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
from tests.streams import init, jsonl, result
from tests.support import commit, run, write
from tests.support.sessions import started, until


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


def test_a_run_that_goes_on_is_shown(repository: Path, tmp_path: Path) -> None:
    write(repository / "tasks.md", "- [ ] one\n- [x] two\n- [ ] three\n")
    go = tmp_path / "go"
    agent = f"touch {tmp_path}/up; until [ -e {go} ]; do sleep 0.1; done"
    with started("run", "--no-probe", "--", "timeout", "300", "sh", "-c", agent):
        until(lambda: (tmp_path / "up").exists())
        (line,) = run("status", "--format", "json").json["runs"]
        text = run("status").out
        write(go, "")
    assert (line["iteration"], line["breaker"], line["streak"]) == (1, "closed", 0)
    assert (line["open_tasks"], line["waits_for"], line["cost_usd"]) == (2, None, None)
    assert line["since"] <= line["last_seen"]
    assert text.startswith(f"run {line['run']}: iteration 1 since ")
    assert "in 0 tasks" not in text
    assert run("status", "--format", "json").json["runs"] == []


def test_a_loop_that_waits_for_a_limit_says_until_when(repository: Path) -> None:
    event = {"type": "result", "subtype": "success", "is_error": True, "session_id": "s-1"}
    limit = json.dumps(
        {**event, "api_error": "usage_limit_reached", "result": "limit", "retry_after": 3000}
    )
    agent = ("--agent", "claude", "--no-probe", "--", "sh", "-c", f"echo '{limit}'; exit 1")
    with started("loop", *agent) as process:
        until(
            lambda: (
                bool(run("status", "--format", "json").json["runs"])
                and "waits for" in run("status").out
            )
        )
        (line,) = run("status", "--format", "json").json["runs"]
        process.terminate()
    assert line["waits_for"] == "the end of a limit"
    assert line["until"] > line["since"]


def test_a_small_cost_of_a_run_is_shown_as_it_is(repository: Path, tmp_path: Path) -> None:
    used = {"claude-opus": {"inputTokens": 10, "costUSD": 0.00042}}
    write(tmp_path / "stream", jsonl(init(), result(model_usage_since_last_result=used)))
    work = "date +%N > work; git add work; git commit -q -m work"
    second = f"touch {tmp_path}/up; until [ -e {tmp_path}/go ]; do sleep 0.1; done"
    agent = f"cat {tmp_path}/stream; {work}; if [ -e {tmp_path}/again ]; then {second}; fi; touch {tmp_path}/again"
    words = (
        "loop",
        "--max-iterations",
        "2",
        "--no-probe",
        "--",
        "timeout",
        "300",
        "sh",
        "-c",
        agent,
    )
    with started(*words):
        until((tmp_path / "up").exists)
        assert "; 0.00042 USD so far" in run("status").out
        write(tmp_path / "go", "")
