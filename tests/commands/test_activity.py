"""`guard activity`."""

import json
from pathlib import Path

from tests.support import commit, run, write


def test_an_agent_that_commits_is_active_and_one_that_is_silent_is_not(repository: Path) -> None:
    commit(repository, "first.txt")
    assert run("agent", "spawn", "--task", "T1", "--agent", "a1").code == 0
    silent = run("activity", "a1", "--format", "json", "--lookback", "0.01")
    assert silent.code == 0, silent.err
    assert (silent.json["is_active"], silent.json["confidence"]) == (False, 0)
    commit(repository, "login.txt")
    words = ("agent", "update", "--task", "T1", "--agent", "a1", "--status", "working")
    assert run(*words, "--message", "The login form has its fields.").code == 0
    active = run("activity", "a1", "--format", "json")
    assert active.json["is_active"] is True
    assert (active.json["level"], active.json["validation_passed"]) == ("VERY_HIGH", True)
    assert {one["source"] for one in active.json["signals"]} == {"TELEMETRY_EVENT", "GIT_COMMIT"}
    text = run("activity", "a1", "--all-sources").out
    assert "a1 of T1 (working): active, last sign 0 min ago" in text
    assert "2 sources of tier 1 (TELEMETRY_EVENT, GIT_COMMIT): 0.9" in text
    assert "FILE_MODIFICATION (0.65)" in text


def test_an_acknowledgement_is_no_activity(repository: Path) -> None:
    commit(repository, "first.txt")
    assert run("agent", "spawn", "--task", "T1", "--agent", "a1").code == 0
    assert run("agent", "spawn", "--task", "T1", "--agent", "a2").code == 0
    words = ("agent", "update", "--task", "T1", "--agent", "a1", "--status", "working")
    assert run(*words, "--message", "ACK, resuming now").code == 0
    found = run("activity", "a1", "--format", "json").json
    assert found["is_active"] is False
    assert found["passed_over"] == ["TELEMETRY_EVENT: reported working: noise"]


def test_settings_decide(repository: Path) -> None:
    commit(repository, "first.txt")
    for name in ("a1", "a2"):
        assert run("agent", "spawn", "--task", "T1", "--agent", name).code == 0
    status = {"current_task": "Write the login form"}
    write(repository / "agent_workspaces/a1/status.json", json.dumps(status))
    assert run("activity", "a1", "--format", "json").json["is_active"] is True
    settings = {
        "GUARD_ACTIVITY__MIN_CONFIDENCE": "0.8",
        "GUARD_ACTIVITY__NOISE_PATTERNS": "LOGIN form",
        "GUARD_ACTIVITY__WORKSPACE_FOLDERS": "none",
    }
    for name, value in settings.items():
        env = {name: value}
        found = run("activity", "a1", "--format", "json", env=env).json
        active = name.endswith("FOLDERS")
        assert found["is_active"] is active, (name, found)
    words = {"GUARD_ACTIVITY__STATUS_FILES": "../{agent}.json"}
    refused = run("activity", "a1", env=words)
    assert refused.code == 4
    assert "is no path below the work tree" in refused.err


def test_which_agent_is_meant(repository: Path) -> None:
    commit(repository, "first.txt")
    unknown = run("activity", "nobody")
    assert (unknown.code, unknown.out) == (1, "")
    assert "there is no agent nobody" in unknown.err
    for task in ("T1", "T2"):
        assert run("agent", "spawn", "--task", task, "--agent", "a1").code == 0
    assert "several tasks have an agent a1: T1, T2" in run("activity", "a1").err
    assert run("activity", "a1", "--task", "T2").code == 0
    assert run("activity", "../a1").code == 2
    assert run("activity", "a1", "--lookback", "nan").code == 2
