"""`guard check`: the scenarios of the completion check, end to end on real repositories."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from guard.check.check import _PAUSE_SECONDS
from guard.git.dirty import MOST_LISTED
from guard.system.process_identity import is_alive
from guard.system.process_table import list_processes
from tests.support import TIME_LIMIT, commit, git, run, write
from tests.support.sessions import (
    QUICK,
    answering,
    asked,
    ending,
    hear,
    script,
    started,
    until,
)


@pytest.fixture
def begun(repository: Path) -> Path:
    """A repository with one commit and a baseline."""
    commit(repository, "first.txt")
    assert run("baseline").code == 0
    return repository


def check(*words: str | Path) -> tuple[int, dict[str, Any]]:
    result = run("check", "--format", "json", *words)
    assert result.out, result.err
    return result.code, result.json


def test_without_a_baseline_it_is_an_error_with_a_hint(repository: Path) -> None:
    commit(repository)
    result = run("check")
    assert (result.code, result.out) == (4, "")
    assert "no baseline" in result.err
    assert "hint: run `guard baseline`" in result.err


def test_commits_complete_at_once_without_a_probe(begun: Path, tmp_path: Path) -> None:
    commit(begun, "a.txt")
    commit(begun, "b.txt")
    code, found = check("--probe-command", answering(tmp_path, "working"))
    assert (code, found["status"], found["reason"], found["complete"]) == (
        0,
        "complete",
        "commits",
        True,
    )
    assert (found["new_commits"], found["probes"], asked(tmp_path)) == (2, 0, 0)
    assert found["schema"] == "guard/check/1"
    assert found["head"] == git(begun, "rev-parse", "HEAD").strip()
    assert found["baseline"] == git(begun, "rev-parse", "HEAD~2").strip()


def test_forgotten_work_is_rescued_when_the_session_says_it_is_done(
    begun: Path, tmp_path: Path
) -> None:
    write(begun / "new.py", "print(1)\n")
    write(begun / "first.txt", "changed\n")
    code, found = check("--probe-command", answering(tmp_path, "complete"))
    assert (code, found["reason"], found["rescued"]) == (0, "rescued", True)
    assert (found["new_commits"], found["probes"]) == (0, 1)
    assert found["rescued_commits"] >= 1
    assert git(begun, "status", "--porcelain") == ""
    assert "Guard-Rescue: " in git(begun, "log", "-1", "--format=%B")


def test_the_users_own_work_is_not_rescued(repository: Path, tmp_path: Path) -> None:
    commit(repository, "first.txt")
    write(repository / "mine.txt", "the user's\n")
    assert run("baseline").code == 0
    write(repository / "agents.txt", "the agent's\n")
    code, found = check("--probe-command", answering(tmp_path, "complete"))
    assert (code, found["reason"]) == (0, "rescued")
    assert git(repository, "status", "--porcelain") == "?? mine.txt\n"


@pytest.mark.parametrize("folder", [".", "src"])
def test_very_many_forgotten_files_are_all_rescued_and_the_users_is_not(
    folder: str, repository: Path, tmp_path: Path
) -> None:
    commit(repository, "src/first.txt")
    write(repository / folder / "mine.txt", "the user's\n")
    assert run("baseline").code == 0
    for number in range(MOST_LISTED + 100):
        write(repository / folder / f"{number}.txt", f"{number}\n")
    code, found = check("--probe-command", answering(tmp_path, "complete"))
    assert (code, found["reason"]) == (0, "rescued")
    left = Path(folder, "mine.txt")
    assert git(repository, "status", "--porcelain") == f"?? {left}\n"


def test_what_was_left_stays_the_agents_in_the_next_iteration_however_much_it_is(
    begun: Path, tmp_path: Path
) -> None:
    for number in range(MOST_LISTED + 100):
        write(begun / f"{number}.txt", f"{number}\n")
    assert check("--no-probe", "--no-rescue", "--probe-interval", "0")[0] == 10
    assert run("baseline").code == 0
    code, found = check("--probe-command", answering(tmp_path, "complete"))
    assert (code, found["reason"]) == (0, "rescued")
    assert git(begun, "status", "--porcelain") == ""


def test_a_file_of_the_users_that_the_agent_changed_further_is_held_back(
    repository: Path, tmp_path: Path
) -> None:
    commit(repository, "first.txt")
    write(repository / "first.txt", "the user's\n")
    assert run("baseline").code == 0
    write(repository / "first.txt", "the user's\nand the agent's\n")
    write(repository / "agents.txt", "the agent's\n")
    code, found = check("--probe-command", answering(tmp_path, "complete"))
    assert (code, found["reason"]) == (0, "rescued")
    assert found["rescue"]["held_back"][0]["path"] == "first.txt"
    assert git(repository, "status", "--porcelain") == " M first.txt\n"


def test_nothing_left_and_nothing_pending_is_nothing_to_do(begun: Path, tmp_path: Path) -> None:
    code, found = check("--probe-command", answering(tmp_path, "complete"))
    assert (code, found["reason"], found["complete"]) == (0, "nothing_to_do", True)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"tasks_pending": ["1.2"]}, "pending tasks"),
        ({"tasks_pending": ["1.2"], "should_continue": True}, "it wants to continue"),
        ({"agents_active": True}, "its agents are active"),
    ],
    ids=["pending tasks", "wants to continue", "agents active"],
)
def test_a_claim_of_completion_that_contradicts_itself_does_not_count(
    fields: dict[str, Any], why: str, begun: Path, tmp_path: Path
) -> None:
    code, found = check(*QUICK, "--probe-command", answering(tmp_path, "complete", **fields))
    assert (code, found["status"], found["complete"]) == (10, "timeout", False), why


def test_an_open_box_in_the_specs_task_file_speaks_against_nothing_to_do(
    begun: Path, tmp_path: Path
) -> None:
    commit(begun, "specs/login/tasks.md", "- [x] one\n- [ ] two\n")
    assert run("baseline").code == 0
    command = answering(tmp_path, "complete")
    assert check(*QUICK, "--spec", "login", "--probe-command", command)[0] == 10
    git(begun, "rm", "-q", "--cached", "specs/login/tasks.md")
    git(begun, "commit", "-q", "-m", "untrack")
    write(begun / "specs" / "login" / "tasks.md", "- [x] one\n- [x] two\n")
    assert run("baseline").code == 0
    assert check(*QUICK, "--spec", "login", "--probe-command", command)[0] == 0


OFTEN = ("--max-probes", "4", "--probe-interval", "0.1")


@pytest.mark.parametrize("status", ["working", "waiting"])
def test_a_session_that_has_ended_is_asked_once(status: str, begun: Path, tmp_path: Path) -> None:
    code, found = check(*OFTEN, "--probe-command", answering(tmp_path, status))
    assert (code, found["status"], found["reason"]) == (10, "timeout", "no_commits")
    assert (found["probes"], asked(tmp_path)) == (1, 1)


def test_a_claim_of_commits_that_git_does_not_have_is_in_the_verdict(
    begun: Path, tmp_path: Path
) -> None:
    odd = {"commits_made": 7, "confidence": 0.9, "next_action": None}
    code, found = check(*OFTEN, "--probe-command", answering(tmp_path, "Complete", **odd))
    assert (code, found["reason"]) == (0, "nothing_to_do")
    assert "it claims 7 commits, and git has 0" in found["detail"]
    assert {"source": "probe", "fact": "claims 7 commits; git has 0"} in found["evidence"]


def test_a_session_that_needs_a_person_says_what_for(begun: Path, tmp_path: Path) -> None:
    write(begun / "half.py", "half done\n")
    asks = {"needs_person": True, "question": "Which database?"}
    code, found = check(*OFTEN, "--probe-command", answering(tmp_path, "working", **asks))
    assert (code, found["status"], found["reason"]) == (14, "blocked", "question")
    assert (found["detail"], asked(tmp_path)) == ("Which database?", 1)
    assert found["snapshot"] is not None


def test_an_unreadable_answer_earns_one_more_probe(begun: Path, tmp_path: Path) -> None:
    probe = script(tmp_path / "probe", f"echo asked >> {tmp_path}/asked; echo I am done.")
    code, found = check(*OFTEN, "--probe-command", probe)
    assert (code, found["reason"], asked(tmp_path)) == (10, "no_answer", 2)


def test_without_a_rescue_no_probe_is_spent_on_one(begun: Path, tmp_path: Path) -> None:
    write(begun / "half.py", "half done\n")
    words = (*OFTEN, "--no-rescue", "--probe-command", answering(tmp_path, "complete"))
    code, found = check(*words)
    assert (code, found["reason"], asked(tmp_path)) == (10, "uncommitted", 1)


@pytest.mark.parametrize("start", ["setsid", "nohup"])
def test_what_a_probe_leaves_is_ended_and_is_no_helper(
    start: str, begun: Path, tmp_path: Path
) -> None:
    leaves = f"{start} sleep 600 > /dev/null 2>&1 < /dev/null & echo $! > {tmp_path}/pid"
    text = f"""cat > /dev/null; {leaves}; echo '{{"status": "waiting", "agents_active": true}}'"""
    code, found = check(*OFTEN, "--probe-command", script(tmp_path / "probe", text))
    assert (code, found["status"], found["probes"]) == (10, "timeout", 1)
    pid = int((tmp_path / "pid").read_text())
    until(lambda: all(stat.pid != pid for stat in list_processes()))


def test_what_a_probe_leaves_without_its_environment_is_no_helper(
    begun: Path, tmp_path: Path
) -> None:
    leaves = f"env -i setsid sleep 600 > /dev/null 2>&1 < /dev/null & echo $! > {tmp_path}/pid"
    text = f"""cat > /dev/null; {leaves}; echo '{{"status": "working"}}'"""
    try:
        code, found = check(*OFTEN, "--probe-command", script(tmp_path / "probe", text))
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert (code, found["status"], found["probes"]) == (10, "timeout", 1)
    assert "sleep" not in str(found["evidence"])


def test_a_ref_that_moved_since_is_a_reason_to_ask_again(begun: Path, tmp_path: Path) -> None:
    moves = f"git -C {begun} tag t$(wc -l < {tmp_path}/asked)"
    text = f"""echo asked >> {tmp_path}/asked; {moves}; echo '{{"status": "working"}}'"""
    code, found = check(*OFTEN, "--probe-command", script(tmp_path / "probe", text))
    assert (code, found["reason"], asked(tmp_path)) == (10, "no_commits", 4)


def test_while_nothing_changes_an_answer_stands(
    begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_COMPLETION_CHECK__PROGRESS_WINDOW_SECONDS", "0")
    words = (*OFTEN, "--probe-command", answering(tmp_path, "working"))
    with ending(subprocess.Popen(["sleep", "600"], cwd=begun)):
        code, found = check(*words)
    assert (code, found["reason"], asked(tmp_path)) == (10, "no_commits", 1)


def test_the_final_rescue_keeps_the_status_and_commits_the_work(
    begun: Path, tmp_path: Path
) -> None:
    write(begun / "half.py", "half done\n")
    code, found = check(*QUICK, "--probe-command", answering(tmp_path, "working"))
    assert (code, found["status"], found["rescued"]) == (10, "timeout", True)
    assert git(begun, "status", "--porcelain") == ""


@pytest.mark.parametrize("switch", ["--no-rescue", "final_rescue_attempt"])
def test_the_final_rescue_can_be_switched_off_and_a_snapshot_is_taken_all_the_same(
    switch: str, begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(begun / "half.py", "half done\n")
    words: tuple[str, ...] = (switch,)
    if not switch.startswith("--"):
        words = ()
        monkeypatch.setenv("GUARD_COMPLETION_CHECK__FINAL_RESCUE_ATTEMPT", "false")
    code, found = check(*QUICK, *words, "--probe-command", answering(tmp_path, "working"))
    assert (code, found["rescued"]) == (10, False)
    assert git(begun, "status", "--porcelain") == "?? half.py\n"
    recover = found["snapshot"]["recover"].replace("DIR", str(tmp_path / "back"))
    (tmp_path / "back").mkdir()
    subprocess.run(["bash", "-c", recover], check=True)
    assert [path.read_text() for path in (tmp_path / "back").rglob("half.py")] == ["half done\n"]


def test_no_probe_and_no_wait_is_one_look(begun: Path, tmp_path: Path) -> None:
    once = ("--no-probe", "--no-wait", "--probe-interval", "3600")
    code, found = check(*once, "--probe-command", answering(tmp_path, "complete"))
    assert (code, found["status"], asked(tmp_path)) == (10, "timeout", 0)


def test_under_no_wait_nothing_is_committed(begun: Path, tmp_path: Path) -> None:
    write(begun / "new.py", "print(1)\n")
    code, found = check("--no-wait", "--probe-command", answering(tmp_path, "complete"))
    assert (code, found["rescued"]) == (10, False)
    assert found["snapshot"]["files"] == 2
    assert git(begun, "status", "--porcelain") == "?? new.py\n"


def test_a_wait_ends_within_a_second_of_the_commit(begun: Path) -> None:
    """It looks more often than once in a second; the round itself would last an hour."""
    assert _PAUSE_SECONDS < 1
    assert run("baseline").code == 0
    with _started("check", "--no-probe", "--probe-interval", "3600") as waiting:
        hear(waiting, "round 1")
        commit(begun, "late.txt")
        assert waiting.wait(TIME_LIMIT) == 0


def test_a_wait_ends_within_a_second_of_a_helpers_end(begun: Path) -> None:
    assert _PAUSE_SECONDS < 1
    words = ("--no-probe", "--max-probes", "1", "--probe-interval", "3600")
    with _busy(begun) as helper, _started("check", *words) as waiting:
        hear(waiting, "at work")
        helper.kill()
        assert waiting.wait(TIME_LIMIT) == 10


def test_a_helper_at_work_is_waiting_under_no_wait(begun: Path) -> None:
    with _busy(begun) as helper:
        write(begun / "half.py", "half\n")
        code, found = check("--no-probe", "--no-wait")
        helper.kill()
    assert (code, found["status"], found["rescued"]) == (11, "waiting", False)


def test_an_idle_leftover_process_holds_nothing(
    begun: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_COMPLETION_CHECK__PROGRESS_WINDOW_SECONDS", "1")
    server = subprocess.Popen(["sleep", "600"], cwd=begun)
    try:
        code, found = check("--no-probe", "--max-probes", "1", "--probe-interval", "0.1")
    finally:
        server.kill()
        server.wait()
    assert (code, found["status"]) == (10, "timeout")
    assert any("sleep" in fact["fact"] for fact in found["evidence"])


def test_waiting_has_a_limit(begun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUARD_COMPLETION_CHECK__MAX_WAIT_SECONDS", "1")
    with _busy(begun) as helper:
        code, found = check("--no-probe", "--max-probes", "1", "--probe-interval", "0.1")
        helper.kill()
    assert (code, found["status"], found["reason"]) == (11, "waiting", "alive")


@pytest.mark.parametrize(
    "text",
    [
        "echo I think I am done.",
        "sleep 600",
        "yes x | head -c 1000000000",
        'printf \'{"status":"complete"}\\n{"status":"working"}\\n\'',
        "printf '%0100000d' 0 | tr 0 '['",
        "exit 3",
    ],
    ids=["prose", "never ends", "1 GB", "two contradicting objects", "nested deep", "crashes"],
)
def test_a_probe_that_cannot_be_read_uses_up_a_round_in_bounded_time(
    text: str, begun: Path, tmp_path: Path
) -> None:
    code, found = check(
        *QUICK, "--probe-timeout", "1", "--probe-command", script(tmp_path / "probe", text)
    )
    assert (code, found["status"], found["reason"]) == (10, "timeout", "no_answer")
    assert found["probes"] == 2


def test_a_probe_command_that_does_not_exist_is_an_error_at_once(begun: Path) -> None:
    code, found = check("--probe-command", "/nowhere/agent")
    assert (code, found["status"], found["reason"], found["probes"]) == (15, "error", "no_cli", 1)


def test_a_rescue_command_that_is_absent_is_a_warning_and_our_own_rescue(
    begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_RESCUE__COMMAND", "commit-rescue.py --fast")
    write(begun / "new.py", "print(1)\n")
    result = run("check", "--probe-command", answering(tmp_path, "complete"))
    assert result.code == 0
    assert "no rescue command 'commit-rescue.py'" in result.err
    assert git(begun, "status", "--porcelain") == ""


def test_a_rescue_command_is_given_the_spec_and_judged_by_its_commits(
    begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f'echo "$1" > {tmp_path}/spec\ngit add -A\ngit commit -q -m "feat: by the command"'
    monkeypatch.setenv("GUARD_RESCUE__COMMAND", script(tmp_path / "rescue", text))
    write(begun / "new.py", "print(1)\n")
    code, found = check("--spec", "login", "--probe-command", answering(tmp_path, "complete"))
    assert (code, found["reason"], found["rescued_commits"]) == (0, "rescued", 1)
    assert (tmp_path / "spec").read_text() == "login\n"
    assert git(begun, "log", "-1", "--format=%s") == "feat: by the command\n"


def test_a_rescue_command_that_commits_elsewhere_does_not_complete(
    begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "git checkout -q -b other; git add -A; git commit -q -m r; git checkout -q main"
    monkeypatch.setenv("GUARD_RESCUE__COMMAND", script(tmp_path / "rescue", text))
    write(begun / "new.py", "print(1)\n")
    code, found = check(*QUICK, "--probe-command", answering(tmp_path, "complete"))
    assert (code, found["status"]) == (10, "timeout")
    assert found["rescue"]["branch"] == "refs/heads/other"


def test_a_check_that_is_terminated_ends_its_probe(begun: Path, tmp_path: Path) -> None:
    command = script(tmp_path / "slow", f"echo $$ > {tmp_path}/pid; exec sleep 300")
    guard = started("check", "--probe-command", command, "--probe-timeout", "600")
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "")
    guard.terminate()
    assert guard.wait(timeout=120) == 130
    pid = int((tmp_path / "pid").read_text())
    until(lambda: not is_alive(pid, None))


def test_a_rescue_onto_a_branch_of_its_own_is_made_once(begun: Path, tmp_path: Path) -> None:
    git(begun, "checkout", "-q", "--detach")
    write(begun / "new.py", "print(1)\n")
    words = ("--max-probes", "3", "--probe-interval", "0.1")
    code, found = check(*words, "--probe-command", answering(tmp_path, "complete"))
    assert (code, found["status"], found["reason"]) == (10, "timeout", "rescued")
    assert len(git(begun, "branch", "--list", "guard/rescue/*").splitlines()) == 1


@pytest.mark.parametrize(
    "words",
    [("--max-probes", "0"), ("--probe-interval", "nan"), ("--probe-timeout", "-1")],
    ids=" ".join,
)
def test_a_value_that_cannot_be_meant_is_wrong_usage(words: tuple[str, str], begun: Path) -> None:
    result = run("check", *words)
    assert (result.code, result.out) == (2, "")


def test_one_look_does_not_end_the_iteration(begun: Path) -> None:
    assert check("--no-probe", "--no-wait")[0] == 10
    assert run("log", "--type", "iteration_ended", "--format", "json").json["events"] == []
    commit(begun, "late.txt")
    assert check("--no-probe", "--no-wait")[0] == 0
    [ended] = run("log", "--type", "iteration_ended", "--format", "json").json["events"]
    assert ended["status"] == "complete"


def test_a_rescue_past_a_locked_index_is_not_complete(begun: Path, tmp_path: Path) -> None:
    write(begun / ".git" / "index.lock", "")
    write(begun / "new.py", "print(1)\n")
    code, found = check(*QUICK, "--probe-command", answering(tmp_path, "complete"))
    assert (code, found["status"], found["reason"]) == (10, "timeout", "rescued")
    assert found["snapshot"] is not None


def test_git_that_fails_is_an_error_with_its_own_words_and_the_work_is_safe(begun: Path) -> None:
    write(begun / "new.py", "print(1)\n")
    write(begun / ".git" / "config", "[core\n")
    result = run("check", "--no-probe", "--no-wait")
    assert (result.code, result.out) == (4, "")
    assert "bad config" in result.err
    assert "the work tree is safe" in result.err


def test_a_vanished_git_directory_is_an_error_and_the_work_is_safe(begun: Path) -> None:
    write(begun / "new.py", "print(1)\n")
    (begun / ".git").rename(begun.parent / "gone")
    result = run("check", "--no-probe", "--no-wait")
    assert (result.code, result.out) == (4, "")
    assert "the work tree is safe" in result.err


def test_with_a_revision_alone_everything_dirty_is_the_iterations(
    repository: Path, tmp_path: Path
) -> None:
    first = commit(repository, "first.txt")
    write(repository / "new.py", "print(1)\n")
    code, found = check("--baseline", first, "--probe-command", answering(tmp_path, "complete"))
    assert (code, found["reason"]) == (0, "rescued")
    assert any("before" in fact["fact"] for fact in found["evidence"] if fact["source"] == "git")


def test_an_unknown_revision_is_exit_4(repository: Path) -> None:
    commit(repository, "first.txt")
    result = run("check", "--baseline", "no-such-rev")
    assert (result.code, result.out) == (4, "")


def test_the_settings_of_the_project_are_those_of_the_baseline(
    repository: Path, tmp_path: Path
) -> None:
    commit(repository, "guard.toml", "[completion_check]\nmax_probes = 1\n")
    assert run("baseline").code == 0
    write(repository / "guard.toml", "[completion_check]\nmax_probes = 4\n")
    _, found = check(
        "--probe-interval", "0.1", "--no-rescue", "--probe-command", answering(tmp_path, "working")
    )
    assert found["probes"] == 1
    write(repository / "guard.toml", "broken [")
    assert check("--no-probe", "--no-wait", "--no-rescue")[0] == 10


def test_every_check_is_in_the_log_with_its_evidence(begun: Path, tmp_path: Path) -> None:
    check("--max-probes", "2", "--probe-interval", "0.1",
          "--probe-command", script(tmp_path / "probe", "true"))  # fmt: skip
    events = run("log", "--format", "json", "--type", "check_made").json["events"]
    assert len(events) == 1
    assert events[0]["status"] == "timeout"
    assert [len(look["probes"]) for look in events[0]["looks"]][-1] == 2
    replayed = run("judge", "--replay", "1", "--set", "max_probes=1", "--format", "json").json
    assert (replayed["status"], replayed["recorded_status"]) == ("timeout", "timeout")
    assert replayed["look"] < replayed["looks"]
    assert run("verify").code == 0


def test_progress_lines_go_to_stderr_and_json_alone_to_stdout(begun: Path, tmp_path: Path) -> None:
    result = run(
        "check", *QUICK, "--format", "json", "--probe-command", script(tmp_path / "probe", "true")
    )
    json.loads(result.out)
    assert "round 1 of 2" in result.err
    assert "\x1b" not in result.err


@contextmanager
def _busy(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A helper that computes until it is killed, at the latest at the end of the block."""
    code = "while True: sum(range(50000))"
    with ending(subprocess.Popen([sys.executable, "-c", code], cwd=folder)) as helper:
        yield helper


@contextmanager
def _started(*words: str) -> Iterator[subprocess.Popen[str]]:
    guard = subprocess.Popen(
        [sys.executable, "-m", "guard", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with ending(guard):
        yield guard
