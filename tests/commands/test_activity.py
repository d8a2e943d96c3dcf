"""`guard activity`."""

import json
import shlex
import sys
import time
from pathlib import Path

import pytest

from tests.support import commit, git, run, write


def _until_the_next_second() -> None:
    begun = int(time.time())
    while int(time.time()) == begun:
        time.sleep(0.02)


def test_an_agent_that_commits_is_active_and_one_that_is_silent_is_not(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(repository, "first.txt")
    own = tmp_path / "own"
    git(repository, "worktree", "add", "-q", str(own))
    monkeypatch.chdir(own)
    assert run("agent", "spawn", "--task", "T1", "--agent", "a1").code == 0
    silent = run("activity", "a1", "--format", "json", "--lookback", "0.01")
    assert silent.code == 0, silent.err
    assert (silent.json["is_active"], silent.json["confidence"]) == (False, 0)
    _until_the_next_second()  # git keeps whole seconds: the commit shall be after the spawn in them too
    commit(own, "login.txt")
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


def test_what_a_person_does_in_the_main_work_tree_is_no_sign_of_an_agent(repository: Path) -> None:
    commit(repository, "first.txt")
    assert run("agent", "spawn", "--task", "T1", "--agent", "a1").code == 0
    _until_the_next_second()
    commit(repository, "login.txt")
    write(repository / "notes.txt", "mine\n")
    write(repository / ".pytest_cache/v/cache/lastfailed", "{}")
    found = run("activity", "a1", "--all-sources", "--format", "json").json
    assert (found["is_active"], found["confidence"], found["signals"]) == (False, 0, [])
    assert (found["level"], found["validation_passed"]) == ("NONE", False)


def test_a_task_that_a_person_gives_out_is_no_sign_of_the_agent(repository: Path) -> None:
    commit(repository, "first.txt")
    write(repository / "plan.md", "- [ ] P1: Read the plan\n")
    assert run("plan", "load", "plan.md").code == 0
    assert run("plan", "dispatch", "P1", "--agent", "a1").code == 0
    assert run("activity", "a1", "--format", "json").json["is_active"] is False


def test_the_windows_of_the_tiers_and_the_threshold_are_settings(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_NOW", "2026-01-31T12:00:00Z")
    commit(repository, "first.txt")
    words = ("--task", "T1", "--agent", "a1")
    assert run("agent", "spawn", *words).code == 0
    said = ("--status", "working", "--message", "The login form has its fields.")
    assert run("agent", "update", *words, *said).code == 0
    monkeypatch.setenv("GUARD_NOW", "2026-01-31T12:10:00Z")
    asked = ("activity", "a1", "--format", "json")
    assert run(*asked).json["is_active"] is True
    for name, value in (("TIER1_WINDOW_SECONDS", "300"), ("MIN_CONFIDENCE_THRESHOLD", "0.8")):
        env = {f"GUARD_ACTIVITY__{name}": value}
        assert run(*asked, env=env).json["is_active"] is False, name


def test_only_so_many_events_of_the_log_count(repository: Path) -> None:
    commit(repository, "first.txt")
    words = ("--task", "T1", "--agent", "a1")
    assert run("agent", "spawn", *words).code == 0
    for number in range(4):
        said = ("--status", "working", "--message", f"Field {number} is there.")
        assert run("agent", "update", *words, *said).code == 0
    env = {"GUARD_ACTIVITY__MOST_EVENTS": "3"}
    signals = run("activity", "a1", "--format", "json", env=env).json["signals"]
    assert [one["source"] for one in signals] == ["TELEMETRY_EVENT"] * 3


def test_each_sign_and_each_decision_is_told_with_more_words(repository: Path) -> None:
    commit(repository, "first.txt")
    words = ("--task", "T1", "--agent", "a1")
    assert run("agent", "spawn", *words).code == 0
    said = ("--status", "working", "--message", "The login form has its fields.")
    assert run("agent", "update", *words, *said).code == 0
    assert run("activity", "a1").err == ""
    told = run("-v", "activity", "a1").err
    assert "a1: looked back 60 min: the settings" in told
    assert "a1: TELEMETRY_EVENT at " in told
    told = run("-v", "resume", "a1", "--no-activity-check").err
    assert "a1: its activity was not looked at" in told
    assert "a1: 0 of 2 prompts were sent in this silence" in told


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
    assert "is not a path below the work tree" in refused.err


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


def test_reports_are_taken_one_by_one(repository: Path) -> None:
    """An acknowledgement is noise; the progress after it, a finding, and what came before it are not."""
    commit(repository, "first.txt")
    for name in ("a1", "a2", "a3"):
        assert run("agent", "spawn", "--task", "T1", "--agent", name).code == 0
    ids = ("--task", "T1", "--agent")
    update = ("agent", "update", "--task", "T1", "--status", "working", "--agent")
    assert run(*update, "a1", "--message", "OK, resuming now").code == 0
    assert run(*update, "a1", "--progress", "60").code == 0
    assert run("agent", "finding", *ids, "a2", "the token is never refreshed").code == 0
    assert run(*update, "a3", "--message", "The form has its fields.").code == 0
    assert run(*update, "a3", "--message", "ACK").code == 0
    for name in ("a1", "a2", "a3"):
        found = run("activity", name, "--format", "json").json
        assert found["is_active"] is True, found


def test_an_agent_that_has_ended_is_not_active(repository: Path) -> None:
    commit(repository, "first.txt")
    assert run("agent", "spawn", "--task", "T1", "--agent", "a1").code == 0
    words = ("agent", "update", "--task", "T1", "--agent", "a1", "--status", "completed")
    assert run(*words, "--message", "Done, with a test.").code == 0
    found = run("activity", "a1", "--format", "json").json
    assert (found["is_active"], found["reasons"]) == (False, ["it has ended: completed"])


def test_the_transcript_of_a_session_under_guard_run_is_a_sign(
    repository: Path, home: Path
) -> None:
    commit(repository, "first.txt")
    session = "0b66888f-6ea6-497a-bbf7-1148f76ef540"
    transcript = write(home / f".claude/projects/p/{session}.jsonl", "{}")
    line = json.dumps({"type": "system", "subtype": "init", "session_id": session})
    asks = f"{sys.executable} -m guard activity ag --all-sources --format json > seen.json"
    grows = f"until touch {transcript}; {asks} && grep -q TRANSCRIPT seen.json; do :; done"
    script = f"echo {shlex.quote(line)}; {grows}"
    words = ("run", "--task", "T1", "--agent-id", "ag", "--agent", "claude", "--no-probe")
    run(*words, "--", "sh", "-c", script)
    found = json.loads((repository / "seen.json").read_bytes())
    assert "TRANSCRIPT_GROWTH" in {one["source"] for one in found["signals"]}
