"""The completion check from Python, step by step: its results are plain values, and the page's examples work."""

import json
import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import guard
from guard import (
    check_uncommitted_changes,
    get_new_commits_count,
    probe_session_status,
    run_commit_rescue,
    smart_completion_check,
)
from guard.errors import RepositoryProblem, WrongUsage
from tests.support import ROOT, TIME_LIMIT, commit, git, run, write

PAGE = (ROOT / "docs" / "reference" / "python.md").read_text()
EXAMPLES = [
    text
    for text in re.findall(r"```python\n(.*?)```", PAGE, re.S)
    if not any(name in text for name in ("spawn_agent", "import plan_"))
]
"""Those that need neither a tmux session nor a plan; tests/plan has the functions of plans."""
ANSWER = {
    "status": "complete",
    "message": "all done",
    "agents_active": False,
    "agents_details": "",
    "tasks_completed": ["Task 1.1"],
    "tasks_pending": [],
    "commits_made": 0,
    "should_continue": False,
    "next_action": "nothing",
}


@pytest.fixture
def begun(repository: Path) -> Path:
    """A repository with one commit and a recorded baseline."""
    commit(repository, "first.txt")
    guard.baseline(repo=repository)
    return repository


def plant_probe(folder: Path, output: str) -> dict[str, object]:
    script = f"#!/bin/sh\ncat >/dev/null\ncat <<'END'\n{output}\nEND\n"
    write(folder / "probe", script).chmod(0o755)
    return {"completion_check.probe_command": str(folder / "probe")}


def test_commits_are_counted_from_a_commit_and_from_the_recorded_baseline(begun: Path) -> None:
    start = git(begun, "rev-parse", "HEAD").strip()
    assert get_new_commits_count(begun, start) == get_new_commits_count(str(begun)) == 0
    commit(begun, "second.txt")
    commit(begun, "third.txt")
    assert get_new_commits_count(begun, start) == get_new_commits_count(begun) == 2
    git(begun, "commit", "--allow-empty", "-m", "nothing")
    assert get_new_commits_count(project_path=begun, baseline_commit=start) == 2, "no work in it"


@pytest.mark.parametrize("revision", ["no-such-revision", "0" * 40])
def test_a_baseline_that_is_none_is_an_error_and_not_zero(begun: Path, revision: str) -> None:
    with pytest.raises((RepositoryProblem, WrongUsage)):
        get_new_commits_count(begun, revision)


def test_a_folder_without_a_repository_is_an_error_and_not_clean(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    with pytest.raises(RepositoryProblem):
        check_uncommitted_changes(tmp_path / "plain")


def test_changes_are_told_apart_and_the_users_own_are_left_out(repository: Path) -> None:
    commit(repository, "first.txt")
    assert check_uncommitted_changes(repository)["has_changes"] is False
    write(repository / "mine.txt", "the user's\n")
    assert check_uncommitted_changes(repository)["untracked"] == ["mine.txt"]
    guard.baseline(repo=repository)
    found = check_uncommitted_changes(repository)
    assert (found["has_changes"], found["count"], found["users"]) == (False, 0, 1)
    write(repository / "first.txt", "changed\n")
    git(repository, "add", write(repository / "staged.txt", "new\n").name)
    found = check_uncommitted_changes(str(repository))
    assert (found["has_changes"], found["count"]) == (True, 2)
    assert (found["staged"], found["unstaged"]) == (["staged.txt"], ["first.txt"])
    assert json.loads(json.dumps(found)) == found


def test_a_probe_returns_the_document_of_the_session(begun: Path, tmp_path: Path) -> None:
    settings = plant_probe(tmp_path, json.dumps(ANSWER))
    status = probe_session_status(begun, agent="command", settings=settings)
    assert {key: status[key] for key in ANSWER} == ANSWER
    assert status["failure"] is None


def test_an_answer_is_read_beside_its_other_fields(begun: Path, tmp_path: Path) -> None:
    settings = plant_probe(tmp_path, json.dumps({**ANSWER, "agents_active": True}))
    assert probe_session_status(begun, agent="command", settings=settings)["status"] == "waiting"


def test_a_probe_without_an_answer_is_the_status_error(begun: Path, tmp_path: Path) -> None:
    settings = plant_probe(tmp_path, "I am done, honestly.")
    status = probe_session_status(begun, agent="command", settings=settings)
    assert (status["status"], status["failure"]) == ("error", "unreadable")
    assert status["message"]
    assert set(ANSWER) <= set(status)


def test_a_probe_of_no_known_session_is_the_status_error(begun: Path) -> None:
    status = probe_session_status(begun)
    assert (status["status"], status["failure"]) == ("error", "no_session")
    assert set(ANSWER) <= set(status)


def test_a_rescue_says_whether_nothing_is_left(begun: Path) -> None:
    write(begun / "work.py", "print()\n")
    assert run_commit_rescue(begun, "login") is True
    assert git(begun, "status", "--porcelain") == ""
    assert get_new_commits_count(begun) == 1, "the agent's work, committed by guard"
    write(begun / ".env", "PASSWORD=correct-horse-battery\n")
    assert run_commit_rescue(begun) is False, "a secret is held back"


def test_the_whole_check_is_the_document_of_the_command(begun: Path, tmp_path: Path) -> None:
    write(begun / "work.py", "print()\n")
    result = smart_completion_check(
        project_path=begun,
        spec_name="login",
        max_probes=1,
        probe_interval=0,
        agent="command",
        settings=plant_probe(tmp_path, json.dumps(ANSWER)),
    )
    assert (result["complete"], result["status"], result["reason"]) == (True, "complete", "rescued")
    assert result["rescued"] is True
    printed = run("check", "--no-probe", "--no-wait", "--format", "json").json
    assert set(result) == set(printed)
    assert json.loads(json.dumps(result)) == result


def test_breaker_and_team_are_those_of_the_commands(begun: Path) -> None:
    guard.record_iteration("timeout", "no_commits")
    assert guard.show_breaker().streak == run("breaker", "show", "--format", "json").json["streak"]
    assert guard.trip_breaker("maintenance").state == "open"
    assert guard.allow_iteration().allowed is False
    assert guard.reset_breaker().state == "closed"
    joined = guard.spawn_teammate("m1", team="crew")
    assert (joined.held, joined.incarnation) == (True, 1)
    assert run("team", "show", "--format", "json").json["active_team_name"] == "crew"
    assert guard.leave_team("m1").recorded_as == "left"
    assert guard.leave_team("m1").recorded_as == "late"
    guard.spawn_teammate("m2", team="crew")
    assert guard.clear_team("over").active_teammate_count == 0
    assert guard.show_team().held is False


def test_warnings_and_progress_go_to_the_logger(
    begun: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.INFO, logger="guard")
    write(begun / "work.py", "print()\n")
    settings = {"rescue.command": "no-such-program", "completion_check.max_probes": 1}
    guard.check(probe=False, settings=settings)
    assert sum("no-such-program" in record.message for record in caplog.records) == 1
    assert {record.name for record in caplog.records} == {"guard"}
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("text", EXAMPLES, ids=[text.split("\n")[0][:50] for text in EXAMPLES])
def test_the_examples_of_the_page_work_as_written(begun: Path, tmp_path: Path, text: str) -> None:
    for name in ("codex", "claude"):
        write(tmp_path / "bin" / name, "#!/bin/sh\necho 'no service' >&2\nexit 1\n").chmod(0o755)
    write(begun / "work.txt", "left\n")
    if "assess_agent_activity" in text:
        guard.spawn_agent("login-page", "builder-1", "builder")
    settings = {
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "GUARD_COMPLETION_CHECK__MAX_PROBES": "1",
        "GUARD_COMPLETION_CHECK__PROBE_INTERVAL_SECONDS": "0",
    }
    done = subprocess.run(
        [sys.executable, "-c", text],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
