"""`guard run`: one iteration with a real child process, from its start to the verdict, whatever happens in between."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support import TIME_LIMIT, commit, git, run, write
from tests.support.sessions import (
    QUICK,
    answering,
    ending,
    killed,
    seen_by_guard,
    started,
    until,
)

COMMIT = "echo done > done.txt && git add done.txt && git commit -q -m 'feat: done'"
# With an end of its own, should nobody be left to tell it to go.
BUSY_UNTIL_GO = "timeout 300 sh -c 'while [ ! -e ../go ]; do :; done'"
LIMIT = json.dumps(
    {
        "type": "result",
        "subtype": "success",
        "is_error": True,
        "api_error": "usage_limit_reached",
        "result": "You've hit your 5-hour limit · resets 5am (UTC)",
        "session_id": "s-1",
    }
)


@pytest.fixture
def begun(repository: Path) -> Path:
    """A repository with one commit."""
    commit(repository, "first.txt")
    return repository


def iterate(*words: str | Path, env: dict[str, str] | None = None) -> tuple[int, dict[str, Any]]:
    result = run("run", "--format", "json", *QUICK, *words, env=env)
    assert result.out, result.err
    return result.code, result.json


def test_the_agent_gets_its_prompt_on_stdin_or_as_a_word(repository: Path, tmp_path: Path) -> None:
    commit(repository)
    prompt = write(tmp_path / "prompt.md", "a 'quoted' prompt")
    seen = "git add seen.txt; git commit -q -m x"
    words = ("run", *QUICK, "--prompt-file", prompt, "--", "sh", "-c")
    assert run(*words, f"cat > seen.txt; {seen}").code == 0
    assert (repository / "seen.txt").read_text() == "a 'quoted' prompt"
    assert run(*words, f'printf "%s!" "$1" > seen.txt; {seen}', "sh", "{prompt}").code == 0
    assert (repository / "seen.txt").read_text() == "a 'quoted' prompt!"


def test_an_agent_that_commits_is_complete(begun: Path) -> None:
    code, found = iterate("--", "sh", "-c", COMMIT)
    assert (code, found["status"], found["reason"], found["new_commits"]) == (
        0,
        "complete",
        "commits",
        1,
    )
    assert (found["exit_code"], found["iteration"], found["breaker"]["state"]) == (0, 1, "closed")


def test_an_agent_that_forgets_to_commit_is_rescued(begun: Path, tmp_path: Path) -> None:
    code, found = iterate(
        "--probe-command", answering(tmp_path, "complete"), "--", "sh", "-c", "echo x > new.txt"
    )
    assert (code, found["reason"]) == (0, "rescued")
    assert git(begun, "status", "--porcelain") == ""


def test_a_helper_that_commits_later_is_waited_for(begun: Path, tmp_path: Path) -> None:
    helper = f"(sleep 2; {COMMIT}) > /dev/null 2>&1 &"
    rarely = {"GUARD_COMPLETION_CHECK__PROBE_INTERVAL_SECONDS": "3600"}
    code, found = iterate("--no-probe", "--", "setsid", "sh", "-c", helper, env=rarely)
    assert (code, found["status"], found["new_commits"]) == (0, "complete", 1)


@pytest.mark.parametrize(
    ("knob", "verdict", "said"),
    [
        ("GUARD_RUN__MAX_IDLE_SECONDS", (10, "timeout", "hung"), "ended by guard (idle)"),
        ("GUARD_RUN__MAX_SECONDS", (12, "working", "max_time"), "ended by guard (max_time)"),
    ],
    ids=["max_idle_seconds", "max_seconds"],
)
def test_an_agent_that_never_ends_is_ended_and_what_it_left_is_kept(
    knob: str, verdict: tuple[int, str, str], said: str, begun: Path
) -> None:
    agent = ("sh", "-c", "echo x > new.txt; exec sleep 300")
    for limit in ("2", "20", "90"):  # On a busy machine it may be ended before it left anything.
        code, found = iterate("--no-probe", "--", *agent, env={knob: limit})
        if (begun / "new.txt").exists():
            break
    assert (code, found["status"], found["reason"]) == verdict
    assert [
        fact for fact in found["evidence"] if fact["source"] == "output" and said in fact["fact"]
    ]
    assert (found["rescued"], found["exit_code"]) == (verdict[0] == 10, -15)
    assert found["snapshot"] or found["rescue"]["snapshot"]
    assert (begun / "new.txt").read_text() == "x\n"


INIT = '{"type":"system","subtype":"init","session_id":"0b66888f-6ea6-497a-bbf7-1148f76ef540","tools":[]}'
AWAKE = f"""#!{sys.executable}
import os, time
print({INIT!r}, flush=True)
bell = os.eventfd(0)
while True:
    os.write(bell, (1).to_bytes(8, "little"))
    os.read(bell, 8)
    time.sleep(0.1)
"""


@pytest.mark.parametrize("knob", ["MAX_IDLE", "MAX_SILENCE"])
def test_a_cli_that_only_wakes_up_has_hung(knob: str, begun: Path, tmp_path: Path) -> None:
    limits = {"GUARD_RUN__MAX_IDLE_SECONDS": "0", "GUARD_RUN__MAX_SILENCE_SECONDS": "0"}
    program = write(tmp_path / "bin" / "claude", AWAKE)
    program.chmod(0o755)
    env = {**limits, f"GUARD_RUN__{knob}_SECONDS": "5"}
    code, found = iterate("--no-probe", "--", str(program), env=env)
    assert (code, found["status"], found["reason"]) == (10, "timeout", "hung")


CIRCLES = """
import json, sys, time
session = {"session_id": "0b66888f-6ea6-497a-bbf7-1148f76ef540"}
print(json.dumps({"type": "system", "subtype": "init", "tools": [], **session}), flush=True)
number = 0
while number < int(sys.argv[1]):
    number += 1
    use = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": "npm test"}}
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"failed {number}"}
    blocks = (("assistant", use), ("user", {**result, "is_error": True}))
    for kind, block in blocks:
        message = {"role": kind, "content": [block]}
        print(json.dumps({"type": kind, "message": message, **session}), flush=True)
    time.sleep(float(sys.argv[2]))
"""


def test_an_agent_that_goes_round_in_circles_is_ended(begun: Path, tmp_path: Path) -> None:
    program = write(tmp_path / "circles.py", CIRCLES)
    agent = (sys.executable, str(program), "1000000", "0.05")
    result = run("run", "--no-probe", "--format", "json", "--", *agent)
    found = result.json
    assert (result.code, found["status"], found["reason"]) == (10, "timeout", "looping")
    assert found["breaker"]["streak"] == 1
    assert re.search(r"looping: the same call, which fails, \d+ times: Bash npm test", result.err)
    facts = [fact["fact"] for fact in found["evidence"] if fact["source"] == "output"]
    assert facts[1].startswith("looping: the same call, which fails, ")
    assert "ended by guard (looping)" in facts[0]


HOOKED = """
import json, os, subprocess, sys, time
use = {"hook_event_name": "PostToolUse", "cwd": os.getcwd(), "tool_name": "Bash",
       "session_id": "0b66888f-6ea6-497a-bbf7-1148f76ef540", "tool_input": {"command": "npm test"},
       "tool_response": {"stdout": "2 failing", "stderr": "", "interrupted": False}}
print("I look into it.", flush=True)
for number in range(int(sys.argv[1])):
    stdin = json.dumps({**use, "tool_use_id": f"t{number}"}).encode()
    subprocess.run([sys.executable, "-m", "guard", "hook", "claude", "PostToolUse"], input=stdin)
    if len(sys.argv) > 2:
        print(sys.argv[2].replace("#", str(number)), flush=True)
"""


def test_an_agent_that_prints_text_is_ended_by_the_word_of_its_hooks(
    begun: Path, tmp_path: Path
) -> None:
    program = write(tmp_path / "hooked.py", HOOKED)
    agent = (sys.executable, str(program), "1000000")
    env = {"GUARD_RUN__MAX_REPEATS": "6"}
    result = run("run", "--no-probe", "--format", "json", "--", *agent, env=env)
    found = result.json
    assert (result.code, found["status"], found["reason"]) == (10, "timeout", "looping")
    said = "looping: the same call with the same result, "
    assert re.search(rf"{said}\d+ times: Bash npm test", result.err)
    assert said.removeprefix("looping: ") in found["detail"]
    facts = [one["fact"] for one in found["evidence"] if one["source"] == "hooks"]
    assert facts
    assert facts[0].startswith(said)


def test_what_hooks_tell_of_another_session_does_not_count(begun: Path, tmp_path: Path) -> None:
    program = write(tmp_path / "hooked.py", HOOKED)
    # Another user's program works in the same folder, and is none of the iteration's processes.
    agent = f"GUARD_ITERATION= {sys.executable} {program} 5; {COMMIT}"
    result = run("run", "--no-probe", "--format", "json", "--", "sh", "-c", agent)
    assert "looping" not in result.out + result.err


def test_hooks_do_not_count_where_the_stream_tells_of_the_calls(
    begun: Path, tmp_path: Path
) -> None:
    # The stream tells of another result each time.
    block = {"type": "tool_result", "tool_use_id": "t#", "content": "run #"}
    use = {"type": "tool_use", "id": "t#", "name": "Bash", "input": {"command": "npm test"}}
    lines = [INIT]
    for kind, part in (("assistant", use), ("user", block)):
        lines.append(json.dumps({"type": kind, "message": {"role": kind, "content": [part]}}))
    program = write(
        tmp_path / "hooked.py", HOOKED.replace('print("I look into it.", flush=True)', "")
    )
    agent = (sys.executable, str(program), "6", "\n".join(lines))
    result = run("run", "--no-probe", "--format", "json", "--", *agent)
    assert list(Path(os.environ["HOME"]).glob("state/guard/calls.d/*/*.log"))
    assert "looping" not in result.out + result.err


def test_max_repeats_of_zero_never_ends_an_agent(begun: Path, tmp_path: Path) -> None:
    program = write(tmp_path / "circles.py", CIRCLES)
    agent = (sys.executable, str(program), "60", "0")
    result = run("run", "--no-probe", "--", *agent, env={"GUARD_RUN__MAX_REPEATS": "0"})
    assert "looping" in result.err
    assert "ends it" not in result.err


def test_the_silence_of_another_program_has_no_limit(begun: Path, tmp_path: Path) -> None:
    agent = f"echo '{INIT}'; sleep 4; {COMMIT}"
    env = {"GUARD_RUN__MAX_SILENCE_SECONDS": "1"}
    assert iterate("--no-probe", "--", "sh", "-c", agent, env=env)[1]["reason"] == "commits"


def test_an_agent_that_will_not_end_is_forced(begun: Path) -> None:
    agent = "trap '' TERM; echo up > up; while :; do sleep 1; done"
    for limit in ("1", "20", "90"):  # On a busy machine it may be ended before it ignores signals.
        code, found = iterate("--no-probe", "--max-time", limit, "--", "sh", "-c", agent)
        if (begun / "up").exists():
            break
    assert (code, found["reason"], found["exit_code"]) == (12, "max_time", -9)


def test_an_agent_that_prints_or_works_is_not_idle(begun: Path) -> None:
    for limit in (5, 15, 45):  # A busy machine may stop it for longer than the first of these.
        agent = f"for i in $(seq {3 * limit}); do echo $i; sleep 0.5; done; {COMMIT}"
        env = {"GUARD_RUN__MAX_IDLE_SECONDS": str(limit)}
        reason = iterate("--", "sh", "-c", agent, env=env)[1]["reason"]
        if reason == "commits":
            break
    assert reason == "commits"


def test_a_usage_limit_is_limited_and_does_not_count(begun: Path) -> None:
    for _ in range(4):
        code, found = iterate(
            "--agent",
            "claude",
            "--",
            "sh",
            "-c",
            f"echo '{LIMIT.replace(chr(39), chr(39) + chr(92) + chr(39) + chr(39))}'; exit 1",
        )
        assert (code, found["status"]) == (13, "limited")
        assert found["retry_at"].endswith("05:00:00Z")
    assert found["breaker"] == {"state": "closed", "streak": 0, "reason": None, "retry_at": None}


def test_three_stalls_open_the_breaker_and_nothing_is_run_then(begun: Path, tmp_path: Path) -> None:
    says = answering(tmp_path, "working")
    for streak in (1, 2, 3):
        code, found = iterate("--probe-command", says, "--", "true")
        assert (code, found["status"], found["breaker"]["streak"]) == (10, "timeout", streak)
    assert found["breaker"]["state"] == "open"
    result = run("run", "--", "sh", "-c", "echo ran > ran.txt")
    assert (result.code, result.out) == (20, "")
    assert "the breaker is open" in result.err
    assert not (begun / "ran.txt").exists()


def test_a_commit_from_outside_earns_a_trial_and_work_closes_the_breaker(
    begun: Path, tmp_path: Path
) -> None:
    assert run("breaker", "trip").code == 0
    assert run("run", "--", "true").code == 20
    commit(begun, "outside.txt")
    code, found = iterate("--", "sh", "-c", COMMIT)
    assert (code, found["breaker"]["state"]) == (0, "closed")


def test_with_nobody_to_ask_an_ended_agent_is_judged_at_once(begun: Path) -> None:
    result = run("run", "--format", "json", "--probe-interval", "3600", "--", "true")
    assert (result.code, result.json["status"]) == (10, "timeout")


def test_the_output_is_passed_through_unchanged(begun: Path) -> None:
    text = r"printf 'one\r\ntwo\033[1m\377 no newline'; printf err >&2; exit 3"
    done = subprocess.run(
        [sys.executable, "-m", "guard", "-q", "run", "--no-probe", "--", "sh", "-c", text],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=TIME_LIMIT,
        check=False,
    )
    assert done.stdout.startswith(b"one\r\ntwo\033[1m\xff no newline")
    assert done.stderr == b"err"


def test_with_json_the_agents_output_goes_to_stderr(begun: Path) -> None:
    result = run("run", "--no-probe", "--format", "json", "--", "echo", "hello")
    assert json.loads(result.out)["schema"] == "guard/check/1"
    assert "hello\n" in result.err


def test_the_agent_reads_guards_own_stdin(begun: Path) -> None:
    result = run("run", "--no-probe", "--", "cat", stdin="a prompt\n")
    assert result.out.startswith("a prompt\n")


def test_the_report_is_written_to_a_file_too(begun: Path, tmp_path: Path) -> None:
    result = run("run", "--report", tmp_path / "r.json", "--", "sh", "-c", COMMIT)
    assert result.code == 0
    assert json.loads((tmp_path / "r.json").read_text())["status"] == "complete"


def test_a_program_that_is_not_there_is_wrong_usage_and_nothing_is_recorded(begun: Path) -> None:
    result = run("run", "--", "no-such-agent", "--flag")
    assert (result.code, result.out) == (2, "")
    assert "there is no program 'no-such-agent'" in result.err
    assert run("log", "--type", "iteration_started", "--format", "json").json["events"] == []


def test_the_agent_is_in_the_registries(begun: Path) -> None:
    words = ("--task", "T1", "--agent-id", "builder-1")
    assert iterate(*words, "--", "sh", "-c", COMMIT)[0] == 0
    [agent] = run("agent", "list", "--format", "json").json["agents"]
    assert (agent["agent_id"], agent["task_id"], agent["status"]) == (
        "builder-1",
        "T1",
        "completed",
    )


def test_the_session_is_captured_from_the_output(begun: Path) -> None:
    line = json.dumps({"type": "system", "subtype": "init", "session_id": "abc-1"})
    iterate("--agent", "claude", "--no-probe", "--", "sh", "-c", f"echo '{line}'")
    events = run("log", "--type", "session_seen", "--format", "json").json["events"]
    assert "abc-1" in [event["session"] for event in events]


def test_ctrl_c_stops_the_agent_and_leaves_a_recorded_iteration(begun: Path) -> None:
    agent = "trap 'echo stopped > stopped.txt; exit 0' INT; echo x > half.txt; while :; do sleep 0.1; done"
    guard = started("run", "--no-probe", "--", "sh", "-c", agent, listen=True)
    until((begun / "half.txt").exists)
    guard.send_signal(signal.SIGINT)
    out, err = guard.communicate(timeout=120)
    assert guard.returncode == 130, err
    assert (begun / "stopped.txt").exists()
    [ended] = run("log", "--type", "iteration_ended", "--format", "json").json["events"]
    assert (ended["status"], ended["reason"]) == ("interrupted", "stopped")
    assert "interrupted: stopped" in out


def test_what_a_stopped_iteration_left_is_still_the_agents(begun: Path, tmp_path: Path) -> None:
    agent = ("sh", "-c", "test -f half.txt && exit; echo x > half.txt; sleep 300")
    guard = started("run", "--no-probe", "--", *agent)
    until((begun / "half.txt").exists)
    guard.send_signal(signal.SIGINT)
    guard.communicate(timeout=120)
    code, found = iterate("--probe-command", answering(tmp_path, "complete"), "--", *agent)
    assert (code, found["reason"]) == (0, "rescued")
    assert git(begun, "status", "--porcelain") == ""


def test_an_agent_that_ignores_signals_is_ended_by_the_third(begun: Path) -> None:
    guard = started(
        "run",
        "--no-probe",
        "--",
        "sh",
        "-c",
        "trap 'echo x >> got' INT; echo x > got; while :; do sleep 0.1; done",
    )
    for heard in range(1, 4):
        until(partial(_heard, begun / "got", heard))
        guard.send_signal(signal.SIGINT)
    guard.communicate(timeout=120)
    assert guard.returncode == 130


def _heard(path: Path, times: int) -> bool:
    return path.exists() and len(path.read_text().splitlines()) >= times


def test_a_killed_guard_leaves_an_iteration_that_the_next_run_finishes(
    begun: Path, tmp_path: Path
) -> None:
    agent = f"{COMMIT}; echo $$ > ../pid; echo up > up; exec sleep 300"
    guard = started("run", "--no-probe", "--", "sh", "-c", agent)
    until((begun / "up").exists)
    killed(guard)
    pid = int((tmp_path / "pid").read_text())
    threading.Timer(3, os.kill, (pid, signal.SIGKILL)).start()
    result = run(
        "run",
        "--format",
        "json",
        *QUICK,
        "--",
        "sh",
        "-c",
        "echo 2 > two.txt; git add two.txt; git commit -qm two",
    )
    assert result.code == 0, result.err
    assert "iteration 1 was left unfinished" in result.err
    ended = run("log", "--type", "iteration_ended", "--format", "json").json["events"]
    assert [one["status"] for one in ended] == ["complete", "complete"]


def test_a_second_run_in_the_same_work_tree_is_refused(begun: Path) -> None:
    first = started("run", "--no-probe", "--", "sh", "-c", "echo up > up; sleep 300")
    try:
        until((begun / "up").exists)
        second = run("run", "--", "true")
        assert (second.code, second.out) == (1, "")
        assert "is running already" in second.err
    finally:
        first.send_signal(signal.SIGINT)
        first.communicate(timeout=120)


def test_what_an_iteration_left_is_the_agents_in_another_run_too(
    begun: Path, tmp_path: Path
) -> None:
    line = json.dumps({"type": "result", "subtype": "error_max_turns", "session_id": "s"})
    first = ("sh", "-c", f"echo half > half.txt; echo '{line}'; exit 1")
    assert iterate("--agent", "claude", "--", *first)[0] == 12
    code, found = iterate("--probe-command", answering(tmp_path, "complete"), "--", "true")
    assert (code, found["reason"], found["iteration"]) == (0, "rescued", 1)
    assert git(begun, "status", "--porcelain") == ""


def test_the_users_work_that_an_agent_destroys_is_kept_and_its_loss_is_said(
    begun: Path, tmp_path: Path
) -> None:
    write(begun / "first.txt", "precious\n")
    write(begun / "mine.txt", "mine\n")
    destroy = f"git checkout -q .; git clean -fdq; {COMMIT}"
    code, found = iterate("--", "sh", "-c", destroy)
    assert (code, found["uncommitted"]["gone"]) == (0, ["first.txt", "mine.txt"])
    [said] = [one["fact"] for one in found["evidence"] if "is safe: " in one["fact"]]
    (tmp_path / "back").mkdir()
    recover = said.partition("is safe: ")[2].replace("DIR", str(tmp_path / "back"))
    subprocess.run(["bash", "-c", recover], check=True)
    assert (tmp_path / "back" / "first.txt").read_text() == "precious\n"
    assert (tmp_path / "back" / "mine.txt").read_text() == "mine\n"


def test_a_check_inside_the_agent_ends_nothing(begun: Path) -> None:
    inner = f"{sys.executable} -m guard check --no-probe --no-wait > inner.txt"
    for streak in (1, 2, 3):
        code, found = iterate("--no-probe", "--no-rescue", "--", "sh", "-c", inner)
        assert (code, found["breaker"]["streak"]) == (10, streak)
        assert (begun / "inner.txt").read_text().startswith("working: agent_alive")
    assert run("run", "--", "true").code == 20


def test_a_baseline_inside_the_agent_is_refused(begun: Path) -> None:
    inner = f"{sys.executable} -m guard baseline 2> inner.txt; {COMMIT}"
    code, found = iterate("--", "sh", "-c", inner)
    assert (code, found["new_commits"]) == (0, 1)
    assert "is running already" in (begun / "inner.txt").read_text()


def test_an_amended_rescue_commit_is_the_agents_own(begun: Path, tmp_path: Path) -> None:
    says = answering(tmp_path, "complete")
    assert (
        iterate("--probe-command", says, "--", "sh", "-c", "echo 1 > f")[1]["reason"] == "rescued"
    )
    amend = "echo more >> f; git add f; git commit -q --amend --no-edit"
    code, found = iterate("--no-probe", "--", "sh", "-c", amend)
    assert (code, found["reason"], found["new_commits"]) == (0, "commits", 1)


def test_a_baseline_by_revision_counts_from_there(begun: Path) -> None:
    first = git(begun, "rev-parse", "HEAD").strip()
    commit(begun, "second.txt")
    code, found = iterate("--no-probe", "--baseline", first, "--", "true")
    assert (code, found["new_commits"], found["baseline"]) == (0, 1, first)


def test_a_report_is_not_written_through_a_link_in_the_place_of_its_folder(
    begun: Path, tmp_path: Path
) -> None:
    (begun / "out").mkdir()
    (tmp_path / "outside").mkdir()
    swap = f"rmdir out; ln -s {tmp_path}/outside out; {COMMIT}"
    result = run("run", "--report", "out/report.json", "--", "sh", "-c", swap)
    assert "a link was put in the place of its folder" in result.err
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_report_that_cannot_be_written_is_refused_before_anything_runs(begun: Path) -> None:
    result = run("run", "--report", "/nowhere/report.json", "--", "sh", "-c", COMMIT)
    assert (result.code, result.out) == (2, "")
    assert not (begun / "done.txt").exists()


def test_an_index_that_a_killed_rescue_left_behind_is_mended(begun: Path, tmp_path: Path) -> None:
    assert run("baseline").code == 0
    begun_run = run("log", "--type", "iteration_started", "--format", "json").json["events"][0]
    write(begun / "f.txt", "rescued\n")
    before = (begun / ".git" / "index").read_bytes()
    git(begun, "add", "f.txt")
    trailer = f"Guard-Rescue: {begun_run['run']}/{begun_run['iteration']}"
    git(begun, "commit", "-q", "-m", f"chore: rescue\n\n{trailer}")
    write(begun / ".git" / "index", before)
    assert git(begun, "status", "--porcelain") == "D  f.txt\n?? f.txt\n"
    result = run("check", "--format", "json", "--probe-command", answering(tmp_path, "complete"))
    assert (result.code, result.json["reason"]) == (0, "rescued")
    assert git(begun, "status", "--porcelain") == ""


def test_outside_a_repository_it_is_exit_4(home: Path, tmp_path: Path) -> None:
    result = run("run", "--", "true", cwd=tmp_path)
    assert (result.code, result.out) == (4, "")


def test_in_a_bare_repository_it_is_exit_4(home: Path, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "bare.git")
    for words in (("run", "--", "true"), ("check",), ("baseline",)):
        result = run(*words, cwd=tmp_path / "bare.git")
        assert (result.code, result.out) == (4, "")
        assert "bare repository" in result.err


def test_a_file_of_the_users_stays_so_after_the_agent_touched_it(
    begun: Path, tmp_path: Path
) -> None:
    write(begun / "first.txt", "the user's\n")
    done = ("--probe-command", answering(tmp_path, "complete"))
    _, first = iterate(*done, "--", "sh", "-c", "echo agents >> first.txt; echo x > one.txt")
    assert [one["path"] for one in first["rescue"]["held_back"]] == ["first.txt"]
    _, second = iterate(*done, "--", "sh", "-c", "echo x > two.txt")
    assert second["reason"] == "rescued"
    assert git(begun, "status", "--porcelain") == " M first.txt\n"
    assert (begun / "first.txt").read_text() == "the user's\nagents\n"


def test_an_agent_that_cannot_start_is_wrong_usage_and_no_stall(begun: Path) -> None:
    write(begun / "agent", "#!/nonexistent\n").chmod(0o755)
    for _ in range(4):
        result = run("run", "--no-probe", "--", "./agent")
        assert (result.code, "there is no program" in result.err) == (2, True)
    shown = run("breaker", "show", "--format", "json").json
    assert (shown["state"], shown["streak"]) == ("closed", 0)
    assert iterate("--", "sh", "-c", COMMIT)[1]["reason"] == "commits"


def test_what_died_with_a_guard_that_was_killed_is_no_stall(begun: Path) -> None:
    agent = "echo up > up; while :; do echo working; sleep 0.2; done"
    for _ in range(4):
        guard = started("run", "--no-probe", "--", "sh", "-c", agent)
        until((begun / "up").exists)
        killed(guard)
        (begun / "up").unlink()
    shown = run("breaker", "show", "--format", "json").json
    assert (shown["state"], shown["streak"]) == ("closed", 0)


@pytest.mark.parametrize(
    "words",
    [("x" * 5000,), ("\udcff",), tuple(str(number) for number in range(300))],
    ids=["a long prompt", "bytes that are no text", "very many"],
)
def test_whatever_the_words_of_the_command_are(words: tuple[str, ...], begun: Path) -> None:
    code, found = iterate("--", "sh", "-c", COMMIT, "sh", *words)
    assert (code, found["reason"]) == (0, "commits")
    again = iterate("--", "sh", "-c", COMMIT, "sh", *words[:-1], f"{words[-1]}.")[1]
    assert (again["run"] != found["run"], again["iteration"]) == (True, 1)


def test_of_those_that_begin_at_once_all_but_one_are_refused(begun: Path) -> None:
    agent = ("sh", "-c", f"while [ ! -e ../go ]; do sleep 0.1; done; {COMMIT}")
    guards = [started("-q", "run", "--no-probe", "--", *agent, listen=True) for _ in range(3)]
    try:
        until(lambda: sum(guard.poll() is not None for guard in guards) >= 2, 120)
    finally:
        (begun.parent / "go").touch()
    said = [guard.communicate(timeout=120) for guard in guards]
    assert sorted(guard.returncode for guard in guards) == [0, 1, 1], said
    assert sum("is running already" in err for _, err in said) == 2


def test_a_reader_that_pauses_keeps_guard_from_hearing_nothing(begun: Path, tmp_path: Path) -> None:
    agent = write(tmp_path / "agent.py", f"print('x' * 300_000)\nprint({LIMIT!r}, flush=True)\n")
    report = tmp_path / "report.json"
    words = ["run", "--agent", "claude", "--no-probe", "--report", str(report), "--"]
    process = subprocess.Popen(
        [sys.executable, "-m", "guard", "-q", *words, sys.executable, str(agent)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
    )  # fmt: skip
    with ending(process) as guard:
        assert guard.stdout is not None
        until(lambda: run("log", "--type", "check_made").out != "")
        data = guard.stdout.read()
        assert guard.wait(timeout=120) == 13
    assert data.startswith(b"x" * 300_000 + b"\n" + LIMIT.encode() + b"\n")
    assert json.loads(report.read_text())["status"] == "limited"


def test_a_check_after_a_crash_hears_what_the_agent_had_printed(begun: Path) -> None:
    agent = f"echo {shlex.quote(LIMIT)}; echo $$ > up; sleep 300"
    guard = started("run", "--agent", "claude", "--no-probe", "--", "sh", "-c", agent)
    until((begun / "up").exists)
    kept = Path(os.environ["XDG_STATE_HOME"])
    until(lambda: any(LIMIT in file.read_text() for file in kept.rglob("output.d/*.stdout")))
    killed(guard)
    assert run("check", "--no-probe", "--no-wait").code == 13
    os.killpg(int((begun / "up").read_text()), signal.SIGKILL)


def test_a_baseline_after_a_crash_leaves_the_agents_work_to_the_agent(
    begun: Path, tmp_path: Path
) -> None:
    write(begun / "first.txt", "the user's\n")
    agent = "echo $$ > ../pid; echo x > work.txt; exec sleep 300"
    guard = started("run", "--no-probe", "--", "sh", "-c", agent)
    seen_by_guard(begun / "work.txt")
    killed(guard)
    assert run("baseline").code == 0
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    result = run(
        "check", *QUICK, "--format", "json", "--probe-command", answering(tmp_path, "complete")
    )
    assert (result.code, result.json["reason"]) == (0, "rescued")
    assert git(begun, "status", "--porcelain") == " M first.txt\n"


def test_an_agent_that_deletes_guards_state_is_not_ended_for_it(
    begun: Path, workspace: Path
) -> None:
    agent = f'mv "{workspace}" ../gone; sleep 2; {COMMIT}'
    result = run("--workspace", workspace, "run", "--no-probe", "--", "sh", "-c", agent)
    assert git(begun, "log", "-1", "--format=%s") == "feat: done\n", result.err


def test_a_check_after_a_crash_ends_when_the_agent_has_ended(begun: Path) -> None:
    agent = "echo $$ > ../pid; echo up > up; exec sleep 300"
    guard = started("run", "--no-probe", "--", "sh", "-c", agent)
    until((begun / "up").exists)
    killed(guard)
    pid = int((begun.parent / "pid").read_text())
    threading.Timer(3, os.kill, (pid, signal.SIGKILL)).start()
    env = {"GUARD_COMPLETION_CHECK__PROGRESS_WINDOW_SECONDS": "0"}
    result = run("check", "--no-probe", "--probe-interval", "3600", env=env)
    assert result.code == 10


def test_a_child_that_forgot_its_environment_counts_while_the_agent_lives(begun: Path) -> None:
    for limit in (5, 15, 45):  # A busy machine may stop it for longer than the first of these.
        busy = f"setsid env -i timeout {limit + 2} sh -c 'while :; do :; done'"
        env = {"GUARD_RUN__MAX_IDLE_SECONDS": str(limit)}
        reason = iterate("--no-probe", "--", "sh", "-c", f"{busy}; {COMMIT}", env=env)[1]["reason"]
        if reason == "commits":
            break
    assert reason == "commits"


def test_an_agent_of_a_task_is_not_left_active_by_a_fault(begun: Path) -> None:
    assert run("run", "--task", "T1", "--no-probe", "--", "rm", "-rf", ".git").code == 4
    [agent] = run("agent", "list", "--task", "T1", "--format", "json").json["agents"]
    assert agent["status"] == "error"


def test_an_agent_that_waits_for_a_slow_reader_has_not_hung(begun: Path) -> None:
    agent = f"head -c 6000000 /dev/zero | tr '\\0' x; {COMMIT}"
    words = ("-q", "run", "--no-probe", "--", "sh", "-c", agent)
    for limit in (2, 10, 40):  # A busy machine may stop it for longer than the first of these.
        process = subprocess.Popen(
            [sys.executable, "-m", "guard", *words],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            env={**os.environ, "GUARD_RUN__MAX_IDLE_SECONDS": str(limit)},
        )  # fmt: skip
        with ending(process) as guard:
            assert guard.stdout is not None
            time.sleep(limit + 6)
            data = guard.stdout.read()
            code = guard.wait(timeout=120)
        if code == 0:
            break
    assert (code, data[:6_000_000]) == (0, b"x" * 6_000_000)


def left_waiting(tmp_path: Path, helper: str) -> tuple[str, ...]:
    """Leave an iteration beside this helper with the verdict `waiting`; return the words that ask how it stands."""
    done = ("--probe-command", answering(tmp_path, "complete"))
    assert iterate(*done, "--no-wait", "--", "sh", "-c", helper)[0] == 11
    return done


def test_what_a_helper_leaves_after_the_verdict_waiting_is_rescued(
    begun: Path, tmp_path: Path
) -> None:
    helper = f"({BUSY_UNTIL_GO}; echo x > helpers.txt) > /dev/null 2>&1 &"
    done = left_waiting(tmp_path, helper)
    time.sleep(3)
    (begun.parent / "go").touch()
    until((begun / "helpers.txt").exists)
    result = run("check", *QUICK, *done, "--format", "json")
    assert (result.code, result.json["reason"]) == (0, "rescued")


def test_how_the_agent_ended_is_known_after_the_verdict_waiting(
    begun: Path, tmp_path: Path
) -> None:
    done = left_waiting(tmp_path, f"({BUSY_UNTIL_GO}) > /dev/null 2>&1 & echo nothing to do")
    (begun.parent / "go").touch()
    env = {"GUARD_COMPLETION_CHECK__PROGRESS_WINDOW_SECONDS": "0"}
    result = run("check", *QUICK, *done, "--format", "json", env=env)
    assert (result.code, result.json["reason"]) == (0, "nothing_to_do")


def test_work_that_was_stashed_is_named(begun: Path, tmp_path: Path) -> None:
    done = ("--probe-command", answering(tmp_path, "complete"))
    agent = "echo x >> first.txt; git stash -q"
    code, found = iterate(*done, "--", "sh", "-c", agent)
    assert (code, found["reason"]) == (10, "uncommitted")
    assert f"git stash apply {found['uncommitted']['stashed'][0]}" in found["detail"]


def test_a_rescue_on_a_branch_of_its_own_raises_no_streak(begun: Path) -> None:
    for number in range(3):
        agent = f"git checkout -q -b other{number}; echo x > new{number}.txt"
        _, found = iterate("--no-probe", "--", "sh", "-c", agent)
        git(begun, "checkout", "-q", "main")
    assert (found["status"], found["reason"]) == ("timeout", "rescued")
    assert (found["breaker"]["state"], found["breaker"]["streak"]) == ("closed", 0)
