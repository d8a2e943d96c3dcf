"""Tool calls in the real streams of all agent CLIs, and in hooks."""

import json
from pathlib import Path
from typing import Any

import pytest

from guard.core.tool_calls.read import ToolCall, ToolCallReader, read_hook

STREAMS = Path(__file__).parents[2] / "streams"


def calls_in(*lines: bytes) -> list[ToolCall]:
    reader = ToolCallReader()
    events = [json.loads(line) for line in lines if reader.is_wanted(line)]
    return [call for event in events for call in reader.read(event)]


@pytest.mark.parametrize(
    ("name", "tools", "command", "output", "code"),
    [
        ("claude-ok", ["Bash", "Write"], "echo hello > out.txt; cat out.txt", "hello", 0),
        ("qwen-ok", ["run_shell_command"], "echo q > q.txt; cat q.txt", "q", 0),
        ("codex-ok", ["shell"], "/bin/bash -lc 'echo hi > cx.txt; cat cx.txt'", "hi\n", 0),
        ("gemini-ok", ["run_shell_command"], "echo g > g.txt; cat g.txt", "g", None),
        ("opencode-ok", ["bash"], "echo o > o.txt; cat o.txt", "o\n", None),
        ("copilot-ok", ["bash"], "echo p > p.txt; cat p.txt", "p", 0),
    ],
)
def test_real_streams(
    name: str, tools: list[str], command: str, output: str, code: int | None
) -> None:
    found = calls_in(*(STREAMS / f"{name}.jsonl").read_bytes().splitlines())
    assert [call.tool for call in found] == tools
    first = found[0]
    assert (first.command, first.output, first.exit_code) == (command, output, code)
    assert not first.failed


def test_a_file_that_is_written() -> None:
    _, written = calls_in(*(STREAMS / "claude-ok.jsonl").read_bytes().splitlines())
    assert (written.edits, written.path, written.command) == (True, "/project/w.txt", "")


def test_the_end_of_a_command_in_the_background_is_told_by_its_notification() -> None:
    (found,) = calls_in(*(STREAMS / "claude-background.jsonl").read_bytes().splitlines())
    assert (found.command, found.exit_code) == ("make site", 0)


def claude(content: object, **given: Any) -> list[ToolCall]:
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "pytest"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": content, **given}
    events = [
        {"type": "assistant", "message": {"content": [call]}},
        {"type": "user", "message": {"content": [result]}},
    ]
    return calls_in(*(json.dumps(event).encode() for event in events))


def test_how_claude_tells_a_failure() -> None:
    (bad,) = claude("Exit code 2\n1 failed", is_error=True)
    assert (bad.exit_code, bad.failed) == (2, True)
    (denied,) = claude("The user does not want to run this.", is_error=True)
    assert (denied.exit_code, denied.failed) == (None, True)
    (listed,) = claude([{"type": "text", "text": "3 passed"}])
    assert (listed.output, listed.exit_code) == ("3 passed", 0)


def test_a_file_change_of_codex() -> None:
    item = {"id": "i", "type": "file_change", "changes": [{"path": "a.py", "kind": "update"}]}
    (found,) = calls_in(json.dumps({"type": "item.completed", "item": item}).encode())
    assert (found.edits, found.path) == (True, "a.py")


def test_a_result_without_its_call_and_odd_values_are_left_out() -> None:
    events: list[Any] = [
        {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "x"}]}},
        {"type": "assistant", "message": {"content": [{"type": "tool_use", "id": 1, "name": []}]}},
        {"type": "tool_result", "tool_id": None},
        {"type": "item.completed", "item": []},
        {"type": "tool.execution_complete", "data": 3},
        {"type": "tool_use", "part": {"state": "completed"}},
    ]
    assert calls_in(*(json.dumps(event).encode() for event in events)) == []


def test_many_calls_without_a_result_take_bounded_memory() -> None:
    reader = ToolCallReader()
    for number in range(5000):
        event = {"type": "tool_use", "tool_id": str(number), "tool_name": "x", "parameters": {}}
        assert list(reader.read(event)) == []
    assert list(reader.read({"type": "tool_result", "tool_id": "1"})) == []
    assert len(list(reader.read({"type": "tool_result", "tool_id": "4999"}))) == 1


HOOKS: dict[str, tuple[dict[str, Any], int | None, bool]] = {
    "Claude Code": (
        {"tool_response": {"stdout": "2 passed", "stderr": "", "interrupted": False}},
        0,
        False,
    ),
    "Claude Code, failed": ({"error": "Exit code 1\n1 failed"}, 1, True),
    "Codex": ({"tool_response": "2 passed"}, None, False),
    "Copilot": ({"tool_response": {"exitCode": 3, "output": "bad"}}, 3, True),
}


@pytest.mark.parametrize(("given", "code", "failed"), HOOKS.values(), ids=HOOKS)
def test_hooks(given: dict[str, Any], code: int | None, failed: bool) -> None:
    found = read_hook({"tool_name": "Bash", "tool_input": {"command": "pytest"}, **given})
    assert found is not None
    assert (found.command, found.exit_code, found.failed) == ("pytest", code, failed)
    assert read_hook({"prompt": "x"}) is None
