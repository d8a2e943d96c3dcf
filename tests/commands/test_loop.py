"""`guard loop`: iterations until the work is done, a limit is reached, or a person is needed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.streams import init, jsonl, result, uses
from tests.support import commit, git, run, write
from tests.support.sessions import QUICK, answering, ending, started, until

WORK = "date +%s%N >> work.txt; git add work.txt; git commit -q -m 'feat: work'"


@pytest.fixture
def begun(repository: Path) -> Path:
    """A repository with one commit."""
    commit(repository, "first.txt")
    return repository


def loop(*words: str | Path) -> tuple[int, dict[str, Any]]:
    result = run("loop", "--format", "json", *QUICK, *words)
    assert result.out, result.err
    return result.code, result.json


def test_it_ends_at_its_number_of_iterations(begun: Path) -> None:
    code, found = loop("--max-iterations", "3", "--", "sh", "-c", WORK)
    assert (code, found["reason"], len(found["iterations"])) == (0, "max_iterations", 3)
    assert [one["iteration"] for one in found["iterations"]] == [1, 2, 3]
    assert len({one["run"] for one in found["iterations"]}) == 1
    [ended] = run("log", "--type", "run_ended", "--format", "json").json["events"]
    assert ended["reason"] == "max_iterations"


def test_it_ends_when_the_task_file_has_no_open_box(begun: Path, tmp_path: Path) -> None:
    tasks = write(
        begun / "tasks.md",
        "- [ ] one\n- [ ] two\n\n```\n- [ ] not a task\n```\n\n## Optional\n- [ ] later\n",
    )
    step = "sed -i '0,/\\[ \\]/s//[x]/' tasks.md; git add tasks.md; git commit -q -m 'feat: step'"
    code, found = loop("--until-tasks-done", tasks, "--max-iterations", "9", "--", "sh", "-c", step)
    assert (code, found["reason"], len(found["iterations"])) == (0, "tasks_done", 2)


def test_without_a_task_file_it_ends_at_nothing_to_do(begun: Path, tmp_path: Path) -> None:
    code, found = loop("--probe-command", answering(tmp_path, "complete"), "--", "true")
    assert (code, found["reason"], len(found["iterations"])) == (0, "nothing_to_do", 1)


def test_it_ends_with_20_when_the_breaker_opens(begun: Path, tmp_path: Path) -> None:
    code, found = loop("--probe-command", answering(tmp_path, "working"), "--", "true")
    assert (code, found["reason"]) == (20, "breaker_open")
    assert [one["status"] for one in found["iterations"]] == ["timeout"] * 3


def test_it_ends_when_a_person_is_needed(begun: Path) -> None:
    line = json.dumps(
        {"type": "result", "subtype": "success", "is_error": True, "api_error_status": 401,
         "result": "Invalid API key", "session_id": "s"}
    )  # fmt: skip
    code, found = loop("--agent", "claude", "--", "sh", "-c", f"echo '{line}'; exit 1")
    assert (code, found["reason"], len(found["iterations"])) == (14, "blocked", 1)


def test_the_words_of_a_question_tool_are_in_the_verdict_and_in_the_text(
    begun: Path, tmp_path: Path
) -> None:
    which = "Which database should I use?"
    asks = uses("AskUserQuestion", arguments={"questions": [{"question": which}]})
    printed = write(tmp_path / "printed", jsonl(init(), asks, result("I wait for the answer.")))
    agent = ("--agent", "claude", "--", "cat", printed)
    code, found = loop(*agent)
    [verdict] = found["iterations"]
    assert (code, verdict["status"], verdict["reason"]) == (14, "blocked", "question")
    assert verdict["detail"] == which
    assert f"output: question: {which}" in str([*map(_line, verdict["evidence"])])
    text = run("loop", *QUICK, *agent)
    assert f"iteration 1  blocked: question ({which})" in text.out


def _line(fact: dict[str, str]) -> str:
    return f"{fact['source']}: {fact['fact']}"


def test_its_time_ends_the_agent_and_then_the_loop(begun: Path) -> None:
    for limit in ("3", "20", "90"):  # On a busy machine the commit may take longer than the first.
        code, found = loop("--max-time", limit, "--", "sh", "-c", f"{WORK}; sleep 300")
        if code == 0:
            break
    assert (code, found["reason"], len(found["iterations"])) == (0, "max_time", 1)
    assert found["iterations"][0]["reason"] == "commits"


def test_a_limit_uses_up_no_iteration_and_is_waited_out_within_the_loops_time(begun: Path) -> None:
    line = json.dumps(
        {"type": "result", "subtype": "success", "is_error": True, "api_error_status": 529,
         "result": "overloaded", "session_id": "s"}
    )  # fmt: skip
    agent = ("sh", "-c", f"echo '{line}'; exit 1")
    for limit in (
        3,
        10,
        20,
    ):  # On a busy machine the agent may not have spoken by the first of these.
        begun_at = time.monotonic()
        limits = ("--max-iterations", "1", "--max-time", str(limit))
        code, found = loop("--agent", "claude", *limits, "--", *agent)
        took = time.monotonic() - begun_at
        # Beyond its own time the loop would wait for a whole minute.
        if code == 13 and took < limit + 35:
            break
    assert (code, found["reason"], len(found["iterations"])) == (13, "max_time", 1)
    assert limit - 0.5 < took < limit + 35


def test_the_prompt_is_read_again_each_time(begun: Path, tmp_path: Path) -> None:
    prompt = write(tmp_path / "prompt.md", "first")
    agent = f"cat >> seen.txt; echo >> seen.txt; git add seen.txt; git commit -q -m x; printf second > {prompt}"
    loop("--prompt-file", prompt, "--max-iterations", "2", "--", "sh", "-c", agent)
    assert (begun / "seen.txt").read_text() == "first\nsecond\n"


def test_the_prompt_may_be_a_word_of_the_command(begun: Path, tmp_path: Path) -> None:
    prompt = write(tmp_path / "prompt.md", "a 'quoted' prompt")
    agent = 'printf %s "$1" > seen.txt; git add seen.txt; git commit -q -m x'
    loop(
        "--prompt-file", prompt, "--max-iterations", "1", "--", "sh", "-c", agent, "sh", "{prompt}"
    )
    assert (begun / "seen.txt").read_text() == "a 'quoted' prompt"


def test_a_prompt_file_that_is_not_there_is_wrong_usage(begun: Path, tmp_path: Path) -> None:
    result = run("loop", "--prompt-file", tmp_path / "none.md", "--", "true")
    assert (result.code, result.out) == (2, "")
    assert "none.md" in result.err


def test_one_line_for_each_iteration_and_a_summary(begun: Path) -> None:
    result = run("loop", *QUICK, "--max-iterations", "2", "--", "sh", "-c", WORK)
    assert result.code == 0
    lines = result.out.splitlines()
    assert lines[0].startswith("iteration 1  complete: commits")
    assert lines[1].startswith("iteration 2  complete: commits")
    assert lines[2].startswith("2 iterations, 2 new commits, 0 rescued")


def test_what_an_iteration_left_is_still_the_agents_in_the_next(
    begun: Path, tmp_path: Path
) -> None:
    line = json.dumps(
        {"type": "result", "subtype": "error_max_turns", "is_error": True, "session_id": "s"}
    )
    agent = ("sh", "-c", f"test -f half.txt && exit; echo half > half.txt; echo '{line}'; exit 1")
    first = run("run", "--agent", "claude", "--", *agent)
    assert first.code == 12, first.out
    result = run("run", *QUICK, "--probe-command", answering(tmp_path, "complete"), "--", *agent)
    assert result.code == 0, result.out
    assert git(begun, "status", "--porcelain") == ""


def test_a_loop_goes_on_with_an_iteration_that_is_still_waited_for(
    begun: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_COMPLETION_CHECK__MAX_WAIT_SECONDS", "1")
    helper = f"(timeout 600 sh -c 'while [ ! -e go ]; do :; done'; {WORK}) > /dev/null 2>&1 &"
    words = ("--no-probe", "--max-iterations", "1", "--", "sh", "-c", helper)
    with ending(started("loop", *QUICK, *words, listen=True)) as guard:
        assert guard.stdout is not None
        assert "waiting" in guard.stdout.readline()
        write(begun / "go", "")
        out, err = guard.communicate(timeout=120)
    assert (guard.returncode, "iteration 1  complete: commits" in out) == (0, True), err


def test_a_prompt_that_changes_is_the_same_run(begun: Path, tmp_path: Path) -> None:
    prompt = write(tmp_path / "prompt.md", "first")
    agent = f"printf second > {prompt}; {WORK}"
    _, found = loop(
        "--prompt-file", prompt, "--max-iterations", "2", "--", "sh", "-c", agent, "sh", "{prompt}"
    )
    assert [one["iteration"] for one in found["iterations"]] == [1, 2]


def test_a_task_file_that_is_not_there_is_wrong_usage(begun: Path) -> None:
    result = run("loop", "--until-tasks-done", "none.md", "--", "true")
    assert (result.code, result.out) == (2, "")
    assert "none.md has no boxes that guard can read" in result.err


def test_a_task_file_that_the_agent_deletes_ends_nothing_and_is_missed_aloud(
    begun: Path, tmp_path: Path
) -> None:
    tasks = write(tmp_path / "tasks.md", "- [ ] one\n")
    result = run(
        "loop", *QUICK, "--until-tasks-done", tasks, "--probe-command",
        answering(tmp_path, "complete"), "--", "rm", "-f", tasks,
    )  # fmt: skip
    assert (result.code, "no boxes that guard can read any more" in result.err) == (20, True)


def test_ctrl_c_ends_the_loop(begun: Path) -> None:
    guard = subprocess.Popen(
        [sys.executable, "-m", "guard", "loop", "--", "sh", "-c", "echo up > up; sleep 300"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    until((begun / "up").exists)
    guard.send_signal(signal.SIGINT)
    out, err = guard.communicate(timeout=120)
    assert guard.returncode == 130, err
    assert "ended: stopped" in out


def test_what_polls_for_ever_holds_a_loop_no_longer_than_may_be(
    begun: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUARD_COMPLETION_CHECK__MAX_WAIT_SECONDS", "2")
    polls = "(setsid timeout 600 sh -c 'while :; do :; done' > /dev/null 2>&1 & echo $! > pid)"
    agent = f"[ -e pid ] && {{ {WORK}; }} || {polls}"
    _, found = loop("--no-probe", "--max-iterations", "2", "--", "sh", "-c", agent)
    os.killpg(int((begun / "pid").read_text()), signal.SIGKILL)
    assert [(one["iteration"], one["status"]) for one in found["iterations"]] == [
        (1, "waiting"),
        (1, "waiting"),
        (2, "complete"),
    ]


def test_a_fault_in_the_middle_leaves_the_report_of_what_was_done(
    begun: Path, tmp_path: Path
) -> None:
    prompt, report = write(tmp_path / "prompt.md", "go\n"), tmp_path / "report.json"
    agent = f"rm {prompt}; {WORK}"
    result = run(
        "loop", *QUICK, "--prompt-file", prompt, "--report", report, "--", "sh", "-c", agent
    )
    assert (result.code, "check --prompt-file" in result.err) == (2, True)
    assert "1 iteration, 1 new commit" in result.out
    found = json.loads(report.read_text())
    assert (found["reason"], found["exit_code"], len(found["iterations"])) == ("fault", 2, 1)


NOT_TOLD = {
    "empty": b"",
    "without boxes": b"# Tasks\n\nNone yet.\n",
    "in an encoding that nobody names": "- [ ] one\n".encode("utf-16-le"),
    "too large": b"- [x] done\n" * 2_000_000 + b"- [ ] last\n",
}


@pytest.mark.parametrize("data", NOT_TOLD.values(), ids=NOT_TOLD)
def test_a_task_file_whose_boxes_cannot_be_told_is_not_done(
    data: bytes, begun: Path, tmp_path: Path
) -> None:
    (tmp_path / "tasks.md").write_bytes(data)
    result = run("loop", "--until-tasks-done", tmp_path / "tasks.md", "--", "true")
    assert (result.code, "no boxes that guard can read" in result.err) == (2, True)


def test_a_task_file_that_is_no_file_is_not_waited_for(begun: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "tasks.md")
    assert run("loop", "--until-tasks-done", tmp_path / "tasks.md", "--", "true").code == 2


def test_a_task_file_in_utf_16_is_read(begun: Path, tmp_path: Path) -> None:
    (tmp_path / "tasks.md").write_bytes("- [ ] one\n".encode("utf-16"))
    code, found = loop(
        "--until-tasks-done", tmp_path / "tasks.md", "--max-iterations", "1",
        "--", "sh", "-c", WORK,
    )  # fmt: skip
    assert (code, found["reason"]) == (0, "max_iterations")


@pytest.mark.parametrize("time", ["nan", "inf", "-1", "0", "soon"])
def test_a_time_that_is_none_is_wrong_usage(time: str, begun: Path) -> None:
    assert run("loop", "--max-time", time, "--", "true").code == 2


def test_a_loop_that_is_terminated_while_it_waits_says_what_was_done(begun: Path) -> None:
    line = json.dumps({"type": "result", "subtype": "success", "is_error": True,
                       "api_error_status": 529, "result": "overloaded", "session_id": "s-1"})  # fmt: skip
    agent = f"echo '{line}'; exit 1"
    with ending(
        started("loop", "--agent", "claude", "--", "sh", "-c", agent, listen=True)
    ) as guard:
        assert guard.stdout is not None
        assert "overloaded" in guard.stdout.readline()
        assert "iteration 1" in guard.stdout.readline()
        guard.terminate()
        out, err = guard.communicate(timeout=120)
    assert (guard.returncode, "1 iteration, 0 new commits" in out) == (130, True), err


def test_a_loop_that_looks_once_goes_on_beside_what_is_still_at_work(begun: Path) -> None:
    busy = "(setsid timeout 600 sh -c 'while :; do :; done' > /dev/null 2>&1 & echo $! > pid)"
    agent = f"[ -e pid ] && {{ {WORK}; }} || {busy}"
    code, found = loop("--no-probe", "--no-wait", "--max-iterations", "2", "--", "sh", "-c", agent)
    os.killpg(int((begun / "pid").read_text()), signal.SIGKILL)
    assert (code, found["reason"]) == (0, "max_iterations")
    assert [one["iteration"] for one in found["iterations"]] == [1, 1, 2]


def test_boxes_that_were_ticked_and_not_committed_do_not_complete(
    begun: Path, tmp_path: Path
) -> None:
    commit(begun, "tasks.md", "- [ ] one\n")
    line = json.dumps({"type": "result", "subtype": "error_max_turns", "session_id": "s"})
    agent = f"echo '- [x] one' > tasks.md; echo '{line}'; exit 1"
    words = ("--agent", "claude", "--until-tasks-done", "tasks.md")
    code, found = loop(*words, "--", "sh", "-c", agent)
    assert (code, found["reason"]) == (12, "tasks_done")


def test_a_folder_that_the_agent_deletes_ends_the_loop_with_its_report(
    begun: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (begun / "sub").mkdir()
    monkeypatch.chdir(begun / "sub")
    agent = f"cd ..; rm -rf sub; {WORK}"
    result = run("--repo", begun, "loop", "--max-iterations", "2", "--", "sh", "-c", agent)
    assert (result.code, "1 iteration, 1 new commit" in result.out) == (2, True), result.err
    assert "does not exist any more" in result.err
