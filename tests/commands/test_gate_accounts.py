"""`guard gate` and the accounting of teams: what the stream tells is recorded, and who else counts holds too."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.streams import init, jsonl, result, system
from tests.support import TIME_LIMIT, commit, run, run_with_bytes
from tests.support.sessions import ending

SESSION = "5a1b2c3d-0000-4000-8000-000000000001"


@pytest.fixture(autouse=True)
def project(repository: Path) -> Path:
    """The test stands in a repository with a commit."""
    commit(repository)
    return repository


def gate(*events: Any) -> tuple[int, list[Any], str]:
    code, out, err = run_with_bytes("-v", "gate", "--agent", "claude", stdin=jsonl(*events))
    return code, [json.loads(line) for line in out.splitlines()], err.decode()


def team(*words: str) -> Any:
    return run("team", *words, "--format", "json").json


def begun() -> Any:
    return {**init(), "session_id": SESSION}


RUNS = system("task_started", task_id="t1", description="build", is_backgrounded=True)
ENDED = system("task_notification", task_id="t1", status="completed")


def test_what_the_stream_tells_is_in_the_accounts() -> None:
    code, lines, _ = gate(begun(), RUNS, result())
    assert (code, lines[-1]["type"]) in ((11, "usage_update"), (16, "usage_update"))
    shown = team("show", "--session", SESSION)
    assert shown["active_team_name"] == f"session:{SESSION}"
    assert [one["member"] for one in shown["members"]] == ["t1"]


def test_an_end_in_the_stream_is_in_the_accounts_and_the_log_has_both() -> None:
    code, lines, err = gate(begun(), RUNS, result(), ENDED, result())
    assert (code, lines[-1]["type"]) == (0, "complete")
    assert "letting go" in err
    assert team("show", "--session", SESSION)["active_teammate_count"] == 0
    types = [event["type"] for event in run("log", "--format", "json").json["events"]]
    wanted = ["team_member_joined", "completion_held", "team_member_left", "completion_released"]
    assert [name for name in types if name in wanted] == wanted


def test_a_member_that_only_the_accounts_know_holds_too() -> None:
    team("spawn", "--team", "crew", "--member", "m1", "--session", SESSION)
    code, lines, _ = gate(begun(), result())
    assert (code, lines[-1]["type"]) == (11, "usage_update")
    team("leave", "--member", "m1", "--session", SESSION)
    code, lines, _ = gate(begun(), result())
    assert (code, lines[-1]["type"]) == (0, "complete")


def test_members_of_a_command_hold_where_no_iteration_is_open() -> None:
    for member in ("m1", "m2"):
        team("spawn", "--team", "crew", "--member", member)
    code, lines, _ = gate(begun(), result())
    assert (code, lines[-1]["type"]) == (11, "usage_update")
    held = [(one["name"], one["count"]) for one in events("completion_held")]
    assert held == [("crew", 2)]
    team("clear")
    assert gate(begun(), result())[0] == 0


def test_the_team_of_another_session_holds_nothing() -> None:
    team("spawn", "--team", "crew", "--member", "m1", "--session", "another")
    code, lines, _ = gate(begun(), result())
    assert (code, lines[-1]["type"]) == (0, "complete")


def test_a_ghost_releases_the_gate() -> None:
    words = ("--team", "crew", "--member", "m1", "--session", SESSION, "--lease", "1")
    run("team", "spawn", *words, env={"GUARD_NOW": "2026-01-31T12:00:00Z"})
    code, lines, _ = gate(begun(), result())
    assert (code, lines[-1]["type"]) == (0, "complete")


def test_a_store_that_cannot_be_used_ends_no_stream(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = project.parent / "blocked"
    blocked.write_text("no folder")
    monkeypatch.setenv("GUARD_WORKSPACE", str(blocked))
    code, lines, err = gate(begun(), RUNS, ENDED, result())
    assert (code, lines[-1]["type"]) == (0, "complete")
    assert err.count("goes by the stream alone") == 1


def test_the_limit_of_a_hold_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUARD_TEAM__MAX_HOLD_SECONDS", "0")
    _, lines, err = gate(begun(), RUNS, result())
    assert lines[-1]["type"] == "complete"
    assert "until the time limit" in err


def test_a_check_counts_the_helpers_that_the_gate_has_seen(project: Path) -> None:
    run("baseline")
    gate(begun(), RUNS, result())
    commit(project, "more.txt")
    checked = run("check", "--no-wait", "--no-probe", "--format", "json")
    assert (checked.code, checked.json["reason"]) == (11, "team")


def test_a_member_of_the_iteration_that_joined_before_its_session_was_known_holds() -> None:
    run("baseline")
    team("spawn", "--team", "crew", "--member", "m1")
    code, lines, _ = gate(begun(), result())
    assert (code, lines[-1]["type"]) == (11, "usage_update")


def test_helpers_that_were_killed_with_the_stream_hold_nothing_later() -> None:
    thread = {"type": "thread.started", "thread_id": "t-1"}
    states = {"a1": {"status": "running", "message": None}}
    spawned = {
        "type": "item.completed",
        "item": {
            "id": "i1",
            "type": "collab_tool_call",
            "tool": "spawn_agent",
            "receiver_thread_ids": ["a1"],
            "agents_states": states,
            "status": "completed",
        },
    }
    end = {"type": "turn.completed", "usage": {"input_tokens": 5}}

    def codex(*events: Any) -> int:
        data = jsonl(thread, {"type": "turn.started"}, *events, end)
        return run_with_bytes("gate", "--agent", "codex", stdin=data)[0]

    assert codex(spawned) == 16
    assert codex() == 0


def test_a_gate_that_is_told_to_stop_ends_nobody() -> None:
    thread = {"type": "thread.started", "thread_id": SESSION}
    item = {"id": "i1", "type": "collab_tool_call", "tool": "spawn_agent", "prompt": "a part"}
    data = jsonl(thread, {"type": "item.started", "item": item})
    command = [sys.executable, "-m", "guard", "gate", "--agent", "codex"]
    pipe = subprocess.PIPE
    with ending(subprocess.Popen(command, stdin=pipe, stdout=pipe, bufsize=0)) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(data)
        assert process.stdout.read(len(data)) == data
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIME_LIMIT) == 130
    assert team("show", "--session", SESSION)["active_teammate_count"] == 1


@pytest.mark.parametrize(
    ("file", "text"), [("config.toml", "x = ["), ("config.toml", '[team]\nlease_seconds = "x"\n')]
)
def test_a_fault_of_the_users_settings_loses_no_line(home: Path, file: str, text: str) -> None:
    (home / "config" / "guard").mkdir(parents=True)
    (home / "config" / "guard" / file).write_text(text)
    code, lines, err = gate(begun(), RUNS, ENDED, result())
    assert (code, len(lines), lines[-1]["type"]) == (0, 4, "complete")
    assert "goes by the stream alone" in err


@pytest.mark.parametrize("text", ["nan", "inf", "1e12", "-1"])
def test_a_limit_that_cannot_be_is_wrong_usage(text: str) -> None:
    assert run("gate", "--agent", "claude", "--max-hold", text, stdin="").code == 2


def events(*types: str) -> list[Any]:
    return [one for one in run("log", "--format", "json").json["events"] if one["type"] in types]


def test_a_hold_for_members_of_a_command_is_logged_with_name_and_count() -> None:
    assert run("baseline").code == 0
    for member in ("m1", "m2"):
        team("spawn", "--team", "crew", "--member", member)
    assert gate(begun(), result())[0] == 11
    assert gate(begun(), RUNS, result())[0] == 11
    held = [(one["name"], one["count"]) for one in events("completion_held")]
    assert held == [("crew", 2), (f"session:{SESSION}", 3)]
    told = json.dumps({"session_id": SESSION, "cwd": str(Path.cwd()), "background_tasks": []})
    run_with_bytes("hook", "claude", "Stop", stdin=told.encode())
    stopped = events("completion_held")[-1]
    assert (stopped["count"], stopped["reason"]) == (2, "team")
    assert stopped["name"]


def hooked(name: str, agent: str) -> None:
    told = json.dumps({"session_id": SESSION, "cwd": str(Path.cwd()), "agent_id": agent})
    run_with_bytes("hook", "claude", name, stdin=told.encode())


def called(number: int = 1, tool: str = "Agent", **wish: Any) -> Any:
    use = {"type": "tool_use", "id": f"toolu_{number}", "name": tool, "input": wish}
    return {"type": "assistant", "message": {"content": [use]}}


BEFORE_THE_TASK = {
    "a subagent in front": called(description="dig"),
    "a subagent behind": called(description="dig", run_in_background=True),
    "a teammate": called(tool="Task", description="dig", team_name="crew", name="ana"),
}


@pytest.mark.parametrize("call", BEFORE_THE_TASK.values(), ids=BEFORE_THE_TASK)
def test_a_helper_that_a_hook_names_before_the_stream_does_counts_once(call: Any) -> None:
    hooked("SubagentStart", "a1")
    code, lines, _ = gate(begun(), call, result())
    assert (code, lines[-1]["type"]) == (11, "usage_update")
    assert [one["count"] for one in events("completion_held")] == [1]
    shown = team("show", "--session", SESSION)
    assert (shown["active_teammate_count"], shown["members"][0]["member"]) == (1, "a1")
    hooked("SubagentStop", "a1")
    assert team("show", "--session", SESSION)["active_teammate_count"] == 0


def test_each_call_has_one_helper_that_a_hook_names() -> None:
    hooked("SubagentStart", "a1")
    gate(begun(), called(1, description="one"), called(2, description="two"), result())
    assert team("show", "--session", SESSION)["active_teammate_count"] == 2
    hooked("SubagentStart", "a2")
    shown = team("show", "--session", SESSION)
    counting = [one["member"] for one in shown["members"] if one["status"] != "left"]
    assert (shown["active_teammate_count"], counting) == (2, ["a1", "a2"])
