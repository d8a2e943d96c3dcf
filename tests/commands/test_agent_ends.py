"""`guard agent` on real sessions and processes: ends that nobody reported, kills, and waits."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import Result, commit, git, run
from tests.support.sessions import until
from tests.support.tmux_server import TmuxServer, needs_tmux

IDS = ("--task", "T1", "--agent", "a1")


@pytest.fixture(autouse=True)
def chosen(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The workspace in the environment."""
    monkeypatch.setenv("GUARD_WORKSPACE", str(workspace))


def report(*words: str | Path) -> Any:
    result = run(*words, "--format", "json")
    assert result.code == 0, result.err
    return result.json


def registries(workspace: Path) -> tuple[Any, Any]:
    task = json.loads((workspace / "T1" / "AGENT_REGISTRY.json").read_bytes())
    overall = json.loads((workspace / "registry" / "GLOBAL_REGISTRY.json").read_bytes())
    return task, overall


@needs_tmux
def test_a_session_that_was_closed_is_detected_and_another_of_a_longer_name_is_not_it(
    server: TmuxServer, workspace: Path
) -> None:
    for name in ("agent-1", "agent-1-long"):
        server.new(name)
        words = ("--task", "T1", "--agent", name, "--tmux-session", name)
        assert run("agent", "spawn", *words, "--tmux-socket", server.socket).err == ""
    listed = report("agent", "list")
    assert [agent["liveness"] for agent in listed["agents"]] == ["alive", "alive"]
    server.close("agent-1")
    listed = report("-v", "agent", "list")
    found = {agent["agent_id"]: agent for agent in listed["agents"]}
    ended = found["agent-1"]
    assert (ended["status"], ended["detected_by"]) == ("completed", "session_gone")
    assert ended["completed_at"]
    assert ended["detail"] == "tmux session agent-1 does not exist any more"
    assert ended["completion_validation"]["warnings"]
    assert (found["agent-1-long"]["status"], found["agent-1-long"]["liveness"]) == (
        "deployed",
        "alive",
    )
    task, overall = registries(workspace)
    assert (task["active_count"], task["completed_count"]) == (1, 1)
    assert (overall["active_agents"], overall["completed_agents"]) == (1, 1)
    log = (workspace / "events.jsonl").read_bytes()
    assert report("agent", "list")["active"] == 1
    assert (workspace / "events.jsonl").read_bytes() == log


def test_the_end_of_a_process_is_told_with_both_counts(
    sleeper: "subprocess.Popen[bytes]",
) -> None:
    report("agent", "spawn", *IDS, "--pid", str(sleeper.pid))
    assert report("status")["agents"][0]["liveness"] == "alive"
    sleeper.kill()
    sleeper.wait()
    result = run("-v", "status")
    assert result.code == 0
    assert result.err.splitlines() == [
        f"guard: detected that agent a1 of task T1 has ended: process {sleeper.pid} has ended",
        "guard: agent a1 of task T1: deployed to completed; active in the task 0, in all tasks 0",
    ]
    assert result.out.splitlines()[:2] == [
        "0 active, 1 completed, 1 spawned in 1 task",
        "task T1: 0 active, 1 completed, 1 spawned",
    ]


def test_a_look_that_is_not_wanted_ends_nobody(sleeper: "subprocess.Popen[bytes]") -> None:
    report("agent", "spawn", *IDS, "--pid", str(sleeper.pid))
    sleeper.kill()
    sleeper.wait()
    assert report("agent", "list", "--no-look")["active"] == 1
    assert report("agent", "list")["active"] == 0


def test_without_tmux_nobody_ends(workspace: Path, tmp_path: Path) -> None:
    result = run("agent", "spawn", *IDS, "--tmux-session", "gone", env={"PATH": str(tmp_path)})
    assert result.code == 0
    assert "tmux is not installed" in result.err
    late = {"PATH": str(tmp_path), "GUARD_NOW": "2099-01-01T00:00:00Z"}
    result = run("agent", "list", "--format", "json", env=late)
    agent = result.json["agents"][0]
    assert (agent["status"], agent["liveness"]) == ("deployed", "unknown")
    assert agent["seen"] == "tmux is not installed"


@needs_tmux
def test_a_session_has_some_time_to_appear(
    server: TmuxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--tmux-session", "late", "--tmux-socket", server.socket)
    spawned = run("agent", "spawn", *IDS, *words)
    assert "there is no tmux session late" in spawned.err
    assert report("agent", "list")["agents"][0]["liveness"] == "unknown"
    server.new("late")
    seen = report("agent", "list")["agents"][0]
    assert seen["liveness"] == "alive"
    assert report("agent", "list")["agents"][0]["tmux_identity"]
    server.close("late")
    assert report("agent", "list")["agents"][0]["detected_by"] == "session_gone"

    report("agent", "spawn", "--task", "T1", "--agent", "a2", "--tmux-session", "never")
    monkeypatch.setenv("GUARD_REGISTRY__SESSION_START_SECONDS", "0")
    found = {one["agent_id"]: one for one in report("agent", "list")["agents"]}
    assert (found["a2"]["status"], found["a2"]["detail"]) == (
        "completed",
        "tmux session never was never seen",
    )


def test_what_cannot_be_recorded_is_still_shown(
    sleeper: "subprocess.Popen[bytes]", workspace: Path
) -> None:
    report("agent", "spawn", *IDS, "--pid", str(sleeper.pid))
    sleeper.kill()
    sleeper.wait()
    holder = subprocess.Popen(
        [sys.executable, "-m", "tests.support.writer", str(workspace), "x", "0", "1000000", "-"],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    try:
        assert holder.stdout
        assert holder.stdout.readline() == b"held\n"
        result = run(
            "agent", "list", "--format", "json", env={"GUARD_STORE__LOCK_TIMEOUT_SECONDS": "0.1"}
        )
        waited = run("agent", "wait", "T1", env={"GUARD_STORE__LOCK_TIMEOUT_SECONDS": "0.1"})
    finally:
        holder.kill()
        holder.communicate()
    assert result.code == 0
    assert "could not be recorded" in result.err
    agent = result.json["agents"][0]
    assert (agent["status"], agent["liveness"]) == ("deployed", "ended")
    assert waited.code == 0
    assert waited.err.count("could not be recorded") == 1


def test_a_kill_really_ends_a_process_that_ignores_being_asked(
    stubborn: "subprocess.Popen[bytes]", workspace: Path
) -> None:
    report("agent", "spawn", *IDS, "--pid", str(stubborn.pid))
    killed = report("agent", "kill", *IDS, "--reason", "stuck", "--grace", "0.5")
    assert stubborn.wait(90) == -9
    agent = killed["agent"]
    assert (agent["status"], agent["detected_by"], agent["reason"]) == (
        "terminated",
        "kill",
        "stuck",
    )
    assert agent["terminated_at"]
    assert agent["completed_at"] is None
    assert "was killed" in agent["detail"]
    task, overall = registries(workspace)
    assert (task["active_count"], task["completed_count"]) == (0, 0)
    assert (overall["active_agents"], overall["completed_agents"]) == (0, 0)
    assert task["by_status"]["terminated"] == 1

    again = run("agent", "kill", *IDS, "--reason", "again")
    assert (again.code, again.out) == (1, "")
    assert "has ended already (terminated)" in again.err


@needs_tmux
def test_a_kill_closes_the_session(server: TmuxServer) -> None:
    server.new("agent-1")
    server.new("agent-1-long")
    words = ("--tmux-session", "agent-1", "--tmux-socket", server.socket)
    report("agent", "spawn", *IDS, *words)
    assert report("agent", "kill", *IDS, "--reason", "x")["recorded_as"] == "killed"
    assert server.find("agent-1") is None
    assert server.find("agent-1-long") is not None


def refused(result: Result) -> str:
    assert (result.code, result.out) == (1, "")
    assert result.err.splitlines()[1].startswith("hint: ")
    return result.err.splitlines()[0]


def test_what_is_not_provably_the_agents_is_not_killed(
    sleeper: "subprocess.Popen[bytes]", workspace: Path, tmp_path: Path
) -> None:
    old = {"task_id": "T1", "agents": [{"agent_id": "a1", "status": "running"}]}
    old["agents"][0]["pid"] = sleeper.pid  # type: ignore[index]
    file = tmp_path / "old.json"
    file.write_text(json.dumps(old))
    assert run("agent", "import", file).code == 0
    before = (workspace / "events.jsonl").read_bytes()
    refused(run("agent", "kill", *IDS, "--reason", "x"))
    assert sleeper.poll() is None
    assert (workspace / "events.jsonl").read_bytes() == before


def test_nobody_kills_the_shell_that_calls_guard() -> None:
    report("agent", "spawn", *IDS, "--pid", str(os.getpid()))
    assert "guard itself was started from process" in refused(
        run("agent", "kill", *IDS, "--reason", "x")
    )
    assert report("agent", "list")["active"] == 1


def test_of_an_agent_without_a_process_only_the_registries_change() -> None:
    report("agent", "spawn", *IDS)
    result = run("agent", "kill", *IDS, "--reason", "x")
    assert result.code == 0
    assert "nothing was ended, only the registries changed" in result.err
    assert report("agent", "list")["agents"][0]["status"] == "terminated"


def test_an_agent_that_had_ended_before_the_kill_was_not_killed(
    sleeper: "subprocess.Popen[bytes]", workspace: Path
) -> None:
    report("agent", "spawn", *IDS, "--pid", str(sleeper.pid))
    sleeper.kill()
    sleeper.wait()
    result = run("agent", "kill", *IDS, "--reason", "stuck", "--format", "json")
    assert "it was not killed" in result.err
    agent = result.json["agent"]
    assert (agent["status"], agent["detected_by"]) == ("completed", "session_gone")
    assert result.json["completed_count"] == 1
    assert b'"reason":"stuck"' in (workspace / "events.jsonl").read_bytes()


def test_a_place_told_later_does_not_forget_the_other_one(
    sleeper: "subprocess.Popen[bytes]",
) -> None:
    report("agent", "spawn", *IDS, "--tmux-session", "later")
    words = ("--status", "working", "--pid", str(sleeper.pid))
    agent = report("agent", "update", *IDS, *words)["agent"]
    assert (agent["tmux_session"], agent["pid"]) == ("later", sleeper.pid)
    assert agent["pid_start"]


@needs_tmux
def test_a_session_told_late_has_its_time_to_appear(server: TmuxServer) -> None:
    server.new("keeps-the-server")
    early, late = "2026-01-31T12:00:00Z", "2026-01-31T13:00:00Z"
    run("agent", "spawn", *IDS, env={"GUARD_NOW": early})
    words = ("--status", "working", "--tmux-session", "x", "--tmux-socket", server.socket)
    run("agent", "update", *IDS, *words, env={"GUARD_NOW": late})
    listed = run("agent", "list", "--format", "json", env={"GUARD_NOW": late}).json
    assert (listed["agents"][0]["status"], listed["agents"][0]["liveness"]) == (
        "working",
        "unknown",
    )
    listed = run("agent", "list", "--format", "json", env={"GUARD_NOW": "2026-01-31T13:00:31Z"})
    assert listed.json["agents"][0]["detected_by"] == "session_gone"


def test_a_validation_is_told_with_its_own_claim_only() -> None:
    report("agent", "spawn", *IDS, "--type", "builder")
    said = ("--status", "completed", "--message", "done", "--strict", "--format", "json")
    claim = run("agent", "update", *IDS, *said)
    assert (claim.code, claim.json["recorded_as"]) == (1, "refused") or claim.code == 0
    after = report("agent", "update", *IDS, "--status", "working")
    assert after["completion_validation"] is None


def test_a_wait_ends_with_the_last_agent(sleeper: "subprocess.Popen[bytes]") -> None:
    report("agent", "spawn", *IDS, "--pid", str(sleeper.pid))
    report("agent", "spawn", "--task", "T1", "--agent", "a2")
    words = [sys.executable, "-m", "guard", "agent", "wait", "T1", "--timeout", "600"]
    waiting = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert waiting.stderr
        assert waiting.stderr.readline().startswith("guard: task T1: waiting for 2 agents")
        run("agent", "update", "--task", "T1", "--agent", "a2", "--status", "failed")
        assert waiting.stderr.readline().startswith("guard: task T1: waiting for 1 agent")
        assert waiting.poll() is None
        sleeper.kill()
        sleeper.wait()
        out, _ = waiting.communicate(timeout=90)
    finally:
        waiting.kill()
        waiting.communicate()
    assert waiting.returncode == 0
    assert out.splitlines()[0] == "0 active, 1 completed, 1 failed, 2 spawned"


def test_a_wait_gives_up_with_the_code_for_waiting(sleeper: "subprocess.Popen[bytes]") -> None:
    report("agent", "spawn", *IDS, "--pid", str(sleeper.pid))
    result = run("agent", "wait", "T1", "--timeout", "0.2")
    assert (result.code, result.out.splitlines()[0]) == (11, "1 active, 0 completed, 1 spawned")


def test_a_wait_for_a_task_that_never_was_is_refused() -> None:
    assert "never had an agent" in refused(run("agent", "wait", "T9"))


def test_an_old_incarnation_cannot_end_a_new_one() -> None:
    assert report("agent", "spawn", *IDS)["agent"]["incarnation"] == 1
    report("agent", "update", *IDS, "--status", "failed")
    assert report("agent", "spawn", *IDS)["agent"]["incarnation"] == 2
    said = ("--status", "completed", "--message", "I am done")
    late = report("agent", "update", *IDS, *said, "--incarnation", "1")
    assert (late["recorded_as"], late["agent"]["status"]) == ("late", "deployed")
    by_variable = run(
        "agent", "update", *IDS, *said, "--format", "json", env={"GUARD_AGENT_INCARNATION": "1"}
    )
    assert by_variable.json["recorded_as"] == "late"
    assert report("agent", "list")["active"] == 1
    ended = report("agent", "update", *IDS, *said, "--incarnation", "2")
    assert (ended["recorded_as"], ended["active_count"]) == ("updated", 0)


def test_every_transition_is_in_the_log_with_both_counts(workspace: Path) -> None:
    report("agent", "spawn", "--task", "T2", "--agent", "b1")
    report("agent", "spawn", *IDS)
    report("agent", "update", *IDS, "--status", "working")
    report("agent", "update", *IDS, "--status", "working")
    report("agent", "update", *IDS, "--status", "completed")
    lines = (workspace / "events.jsonl").read_bytes().splitlines()
    moved = [event for event in map(json.loads, lines) if event["type"] == "agent_transitioned"]
    assert [
        (one["previous_status"], one["status"], one["active_count"], one["active_agents"])
        for one in moved
        if one["task_id"] == "T1"
    ] == [
        (None, "deployed", 1, 2),
        ("deployed", "working", 1, 2),
        ("working", "completed", 0, 1),
    ]


def test_a_damaged_registry_is_folded_again_said_and_kept_aside(workspace: Path) -> None:
    report("agent", "spawn", *IDS)
    file = workspace / "T1" / "AGENT_REGISTRY.json"
    file.write_text('{"active_count": 7}')
    result = run("agent", "list", "--task", "T1", "--format", "json")
    assert result.json["active"] == 1
    assert "AGENT_REGISTRY.json is damaged" in result.err
    ended = run("agent", "update", *IDS, "--status", "failed", "--format", "json")
    assert (ended.json["active_count"], ended.json["completed_count"]) == (0, 1)
    assert json.loads(file.read_bytes())["active_count"] == 0
    assert [one.read_text() for one in file.parent.glob("*.damaged-*")] == ['{"active_count": 7}']


def test_a_kill_of_the_agent_of_a_run_ends_its_guard_too(repository: Path) -> None:
    commit(repository)
    words = [sys.executable, "-m", "guard", "run", "--task", "T1", "--agent-id", "a1", "--no-probe"]
    running = subprocess.Popen(
        [*words, "--", "sleep", "600"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        until(_has_started)
        agent = report("agent", "list")["agents"][0]
        assert (agent["keeper_pid"], agent["liveness"]) == (running.pid, "alive")
        killed = report("agent", "kill", *IDS, "--reason", "enough")
        running.communicate(timeout=90)
    finally:
        running.kill()
        running.communicate()
    agent = killed["agent"]
    assert (agent["status"], agent["reason"], killed["recorded_as"]) == (
        "terminated",
        "enough",
        "killed",
    )
    listed = report("agent", "list")
    assert (listed["active"], listed["completed"]) == (0, 0)


def _has_started() -> bool:
    """Whether the agent's own process is registered: guard is there before it."""
    listed = report("agent", "list")
    return listed["active"] == 1 and listed["agents"][0]["pid"] is not None


def _running(*words: str) -> "subprocess.Popen[bytes]":
    argv = [sys.executable, "-m", "guard", "run", "--task", "T1", "--agent-id", "a1", "--no-probe"]
    return subprocess.Popen([*argv, "--no-wait", "--", *words], stderr=subprocess.DEVNULL)


def test_a_run_that_is_stopped_ends_its_agent(repository: Path) -> None:
    commit(repository)
    running = _running("sleep", "600")
    try:
        until(_has_started)
        running.terminate()
        running.wait(90)
    finally:
        running.kill()
        running.wait()
    agent = report("agent", "list")["agents"][0]
    assert (agent["status"], agent["detected_by"]) == ("terminated", "kill")
    assert agent["reason"].startswith("guard was stopped")


def test_the_end_of_a_run_does_not_end_a_later_life(repository: Path, tmp_path: Path) -> None:
    commit(repository)
    gate = tmp_path / "gate"
    running = _running("sh", "-c", f"while ! [ -e {gate} ]; do sleep 0.1; done")
    try:
        until(_has_started)
        report("agent", "update", *IDS, "--status", "failed")
        assert report("agent", "spawn", *IDS)["agent"]["incarnation"] == 2
        gate.touch()
        running.wait(90)
    finally:
        running.kill()
        running.wait()
    agent = report("agent", "list", "--no-look")["agents"][0]
    assert (agent["incarnation"], agent["status"]) == (2, "deployed")


def test_a_second_run_of_the_same_agent_is_refused_while_the_first_lives(
    repository: Path, tmp_path: Path
) -> None:
    commit(repository)
    git(repository, "worktree", "add", "-q", str(tmp_path / "other"))
    gate = tmp_path / "gate"
    running = _running("sh", "-c", f"while ! [ -e {gate} ]; do sleep 0.1; done")
    try:
        until(_has_started)
        words = ("run", "--task", "T1", "--agent-id", "a1", "--no-probe", "--", "true")
        said = refused(run(*words, cwd=tmp_path / "other"))
        assert said.startswith("guard: agent a1 of task T1 is active already (its guard: process")
        assert report("agent", "list")["active"] == 1
        running.kill()
        running.wait()
        living = report("agent", "list")["agents"][0]
        assert (living["status"], living["liveness"]) == ("deployed", "alive")
        refused(run(*words, cwd=tmp_path / "other"))
        gate.touch()
        until(lambda: report("agent", "list")["active"] == 0)
        assert run(*words, cwd=tmp_path / "other").code == 10
    finally:
        gate.touch()
        running.kill()
        running.wait()
    agent = report("agent", "list", "--no-look")["agents"][0]
    assert (agent["incarnation"], agent["status"]) == (2, "failed")


def test_a_broken_file_of_the_project_stops_no_report(repository: Path) -> None:
    report("agent", "spawn", *IDS)
    (repository / "guard.toml").write_text("[claims")
    assert run("agent", "spawn", "--task", "T1", "--agent", "a2").code == 0
    result = run("agent", "update", *IDS, "--status", "failed", "--format", "json")
    assert (result.code, result.json["agent"]["status"]) == (0, "failed")
    assert "is not TOML" in result.err


def test_where_nobody_could_look_nobody_is_accused_of_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    report("agent", "spawn", *IDS, "--type", "fixer")
    said = "Fixed src/app.py and ran pytest: all 12 tests pass."
    words = ("--status", "completed", "--message", said)
    found = report("agent", "update", *IDS, *words)["completion_validation"]
    assert found["blocking_issues"] == []
    assert not any("test" in warning for warning in found["warnings"])


def _loops(gate: Path) -> tuple[str, ...]:
    return ("sh", "-c", f"while ! [ -e {gate} ]; do sleep 0.1; done")


def test_two_runs_without_a_name_in_two_work_trees_have_two(
    repository: Path, tmp_path: Path
) -> None:
    commit(repository)
    git(repository, "worktree", "add", "-q", str(tmp_path / "other"))
    gate, argv = tmp_path / "gate", [sys.executable, "-m", "guard", "run", "--task", "T1"]
    running = subprocess.Popen([*argv, "--no-probe", "--no-wait", "--", *_loops(gate)])
    try:
        until(_has_started)
        words = ("run", "--task", "T1", "--no-probe", "--no-wait", "--", "true")
        second = run(*words, cwd=tmp_path / "other")
        assert (second.code, "this agent is called agent-2" in second.err) == (10, True)
    finally:
        gate.touch()
        running.wait(90)
    found = {one["agent_id"]: one["status"] for one in report("agent", "list")["agents"]}
    assert found == {"agent": "failed", "agent-2": "failed"}


def test_a_run_inside_the_place_that_was_registered_goes_on_with_it(repository: Path) -> None:
    commit(repository)
    guard = f"{sys.executable} -m guard"
    script = (
        f"{guard} agent spawn --task T1 --agent a1 --pid $$ && "
        f"{guard} run --task T1 --agent-id a1 --no-probe --no-wait -- true"
    )
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=90)
    assert done.returncode == 10, done.stderr
    agent = report("agent", "list", "--no-look")["agents"][0]
    assert (agent["incarnation"], agent["status"]) == (1, "failed")


@needs_tmux
def test_a_run_inside_the_session_that_was_registered_goes_on_with_it(
    repository: Path, server: TmuxServer, workspace: Path, tmp_path: Path
) -> None:
    commit(repository)
    guard, ended = f"{sys.executable} -m guard --workspace {workspace}", tmp_path / "ended"
    script = (
        f"cd {repository} && {guard} run --task T1 --agent-id a1 --no-probe --no-wait -- true; "
        f"echo $? > {ended}.new; mv {ended}.new {ended}; sleep 600"
    )
    go = tmp_path / "go"
    server.new("mine", "sh", "-c", f"while ! [ -e {go} ]; do sleep 0.1; done; {script}")
    report("agent", "spawn", *IDS, "--tmux-session", "mine", "--tmux-socket", server.socket)
    go.touch()
    until(ended.exists)
    assert ended.read_text() == "10\n"
    assert report("agent", "list", "--no-look")["agents"][0]["incarnation"] == 1


def test_an_agent_of_which_nobody_knows_is_taken_over(repository: Path, tmp_path: Path) -> None:
    commit(repository)
    old = {"agents": [{"agent_id": "a1", "status": "running", "pid": 4711, "task_id": "T1"}]}
    file = tmp_path / "old.json"
    file.write_text(json.dumps(old))
    assert run("agent", "import", file).code == 0
    words = ("run", "--task", "T1", "--agent-id", "a1", "--no-probe", "--no-wait", "--", "true")
    result = run(*words)
    assert (result.code, "guard takes over agent" in result.err) == (10, True)
    listed = report("agent", "list", "--no-look")
    assert (listed["agents"][0]["incarnation"], listed["active"]) == (2, 0)


def test_a_reason_that_is_no_text_does_not_lose_the_kill(
    sleeper: "subprocess.Popen[bytes]",
) -> None:
    report("agent", "spawn", *IDS, "--pid", str(sleeper.pid))
    result = run("agent", "kill", *IDS, "--reason", "bad \udcff", "--format", "json")
    assert result.code == 0
    assert result.json["agent"]["reason"].startswith("bad ")
    assert result.json["agent"]["status"] == "terminated"


def test_an_agent_that_was_left_waiting_ends_with_its_iteration(
    repository: Path, tmp_path: Path
) -> None:
    commit(repository)
    gate = tmp_path / "gate"
    helper = f"while ! [ -e {gate} ]; do sleep 0.1; done; git commit -q --allow-empty -m done"
    script = (
        f"echo x > late.txt; git add .; (setsid sh -c '{helper}' >/dev/null 2>&1 &) ; sleep 0.3"
    )
    words = ("run", "--task", "T1", "--agent-id", "a1", "--no-probe", "--no-wait", "--")
    try:
        waiting = run(*words, "sh", "-c", script)
        assert waiting.code == 11, waiting.err
        agent = report("agent", "list")["agents"][0]
        assert (agent["status"], agent["liveness"]) == ("working", "unknown")
    finally:
        gate.touch()
    until(lambda: git(repository, "log", "--oneline").count("\n") == 2)
    assert run("check", "--no-probe").code == 0
    listed = report("agent", "list")
    assert (listed["active"], listed["agents"][0]["status"]) == (0, "completed")
