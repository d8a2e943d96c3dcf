"""The documents of the agents' hooks in one form, whatever is in them."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.core.base.fields import parse_document
from guard.core.hooks.event_kinds import KINDS
from guard.core.hooks.payload import HookCall
from guard.hooks import plain_json
from guard.hooks.agent import payload
from tests.core.tool_calls.test_test_runs import RAN
from tests.hooks.agent.documents import DOCUMENTS, data

ALL = [(agent, event) for agent, events in DOCUMENTS.items() for event in events]
SUBAGENT = "a0000000000000001"
ALICE = "aalice-0000000000000001"
SHELL = {
    "id": "bje2j9jkg",
    "kind": "background_shell",
    "running": True,
    "description": "long job",
}
ITSELF = {"id": SUBAGENT, "kind": "subagent", "running": True, "description": "do sub"}
TOOL = {"tool": "Bash", "helper": SUBAGENT, "helper_type": "general-purpose"}
STARTED = {"helper": SUBAGENT, "helper_type": "general-purpose"}
MATE = {"helper": ALICE, "helper_type": "alice", "teammate": "alice", "team": "session-00000015"}
CHILD = {"helper": "00000018-0000-4000-8000-000000000018", "helper_type": "default"}
OTHER_CHILD = {"helper": "00000023-0000-4000-8000-000000000023", "helper_type": "default"}
UNDERSTOOD: dict[tuple[str, str], tuple[str, dict[str, Any]]] = {
    ("claude", "MessageDisplay"): ("other", {}),
    ("claude", "PermissionRequest"): ("other", {"tool": "Bash"}),
    ("claude", "PostCompact"): ("compacting", {"detail": "manual"}),
    ("claude", "PostToolBatch"): ("tool_used", {**TOOL, "tool": ""}),
    ("claude", "PostToolUse"): ("tool_used", TOOL),
    ("claude", "PreCompact"): ("compacting", {"detail": "manual"}),
    ("claude", "PreToolUse"): ("tool_starting", TOOL),
    ("claude", "SessionEnd"): ("session_ended", {"detail": "other"}),
    ("claude", "SessionStart"): ("session_started", {"source": "resume"}),
    ("claude", "Stop"): (
        "stopping",
        {"message": "started, I am done", "tasks": [SHELL], "wakeups": []},
    ),
    ("claude", "StopFailure"): ("stop_failed", {"detail": "server_error"}),
    ("claude", "SubagentStart"): ("helper_started", STARTED),
    ("claude", "SubagentStop"): (
        "helper_ended",
        {**STARTED, "message": "sub done", "tasks": [ITSELF], "wakeups": []},
    ),
    ("claude", "TaskCompleted"): ("task_completed", MATE),
    ("claude", "TaskCreated"): ("task_created", {}),
    ("claude", "TeammateIdle"): ("teammate_idle", MATE),
    ("claude", "UserPromptSubmit"): ("prompted", {}),
    ("codex", "PostToolUse"): ("tool_used", {**CHILD, "tool": "Bash"}),
    ("codex", "PreToolUse"): ("tool_starting", {**CHILD, "tool": "Bash"}),
    ("codex", "SessionEnd"): ("session_ended", {"detail": "other"}),
    ("codex", "SessionStart"): ("session_started", {"source": "startup"}),
    ("codex", "Stop"): ("stopping", {"message": "first"}),
    ("codex", "SubagentStart"): ("helper_started", OTHER_CHILD),
    ("codex", "SubagentStop"): ("helper_ended", {**CHILD, "message": "sub finished"}),
    ("codex", "UserPromptSubmit"): ("prompted", OTHER_CHILD),
    ("copilot", "agentStop"): ("stopping", {"detail": "end_turn"}),
    ("copilot", "permissionRequest"): ("other", {"tool": "bash"}),
    ("copilot", "postToolUse"): ("tool_used", {"tool": "bash"}),
    ("copilot", "preToolUse"): ("tool_starting", {"tool": "bash"}),
    ("copilot", "sessionEnd"): ("session_ended", {"detail": "complete"}),
    ("copilot", "sessionStart"): ("session_started", {"source": "new"}),
    ("copilot", "userPromptSubmitted"): ("prompted", {}),
    ("gemini", "AfterAgent"): ("stopping", {"message": "first"}),
    ("gemini", "AfterModel"): ("other", {}),
    ("gemini", "AfterTool"): ("tool_used", {"tool": "run_shell_command"}),
    ("gemini", "BeforeAgent"): ("prompted", {}),
    ("gemini", "BeforeModel"): ("other", {}),
    ("gemini", "BeforeTool"): ("tool_starting", {"tool": "run_shell_command"}),
    ("gemini", "BeforeToolSelection"): ("other", {}),
    ("gemini", "PreCompress"): ("compacting", {"detail": "auto"}),
    ("gemini", "SessionEnd"): ("session_ended", {"detail": "exit"}),
    ("gemini", "SessionStart"): ("session_started", {"source": "startup"}),
    ("qwen", "Notification"): ("other", {"detail": "auth_success"}),
    ("qwen", "PostToolUse"): ("tool_used", {"tool": "run_shell_command"}),
    ("qwen", "PreToolUse"): ("tool_starting", {"tool": "run_shell_command"}),
    ("qwen", "SessionStart"): ("session_started", {"source": "startup"}),
    ("qwen", "Stop"): ("stopping", {"message": "first", "tasks": [], "wakeups": []}),
    ("qwen", "UserPromptSubmit"): ("prompted", {}),
}
NOTHING: dict[str, Any] = {
    "helper": None,
    "helper_type": "",
    "teammate": None,
    "team": None,
    "tool": "",
    "in_background": False,
    "source": "",
    "detail": "",
    "tasks": None,
    "tasks_unclear": False,
    "wakeups": None,
}


def read(agent: str, event: str, stdin: bytes, **environ: str) -> HookCall:
    return parse_document(HookCall, _written(payload.read_payload(agent, event, stdin, environ)))


def _written(told: payload.Document) -> bytes:
    return plain_json.render(told).encode()


def test_every_document_has_its_row() -> None:
    assert set(UNDERSTOOD) == set(ALL)


@pytest.mark.parametrize(("agent", "event"), ALL, ids=lambda word: word)
def test_a_real_document_is_understood(agent: str, event: str) -> None:
    told, (kind, expected) = DOCUMENTS[agent][event], UNDERSTOOD[agent, event]
    heard = json.loads(read(agent, event, data(agent, event)).model_dump_json())
    assert (heard["agent"], heard["event"], heard["kind"]) == (agent, event, kind)
    assert heard["session"] == told.get("session_id", told.get("sessionId"))
    if (agent, event) != ("gemini", "AfterAgent"):
        assert heard["prompt"] == told.get("prompt_id", told.get("turn_id"))
    again = False if kind == "prompted" else told.get("stop_hook_active")
    wanted = {**NOTHING, "again": again, **expected}
    assert {name: heard[name] for name in wanted} == wanted


@pytest.mark.parametrize(
    ("agent", "key"), [("claude", "run_in_background"), ("qwen", "is_background")]
)
def test_a_tool_that_goes_on_in_the_background(agent: str, key: str) -> None:
    heard = read(agent, "PreToolUse", data(agent, "PreToolUse", tool_input={key: True}))
    assert heard.in_background


def test_gemini_tells_a_prompt_by_its_words_with_every_stop() -> None:
    """They are not kept: only whether they are the same counts."""
    one, same, other, none = (
        read("gemini", "AfterAgent", data("gemini", "AfterAgent", prompt=prompt)).prompt
        for prompt in ("make the page", "make the page", "and now the footer", None)
    )
    assert one == same != other
    assert one is not None
    assert "page" not in one
    assert none is None
    told = data("gemini", "BeforeAgent", prompt="make the page")
    assert read("gemini", "BeforeAgent", told).prompt is None


@pytest.mark.parametrize("status", ["running", "completed"])
def test_qwens_list_has_helpers_without_a_type(status: str) -> None:
    helper = {
        "id": "general-purpose-call_0001_0",
        "status": status,
        "agent_type": "general-purpose",
        "started_at": "2026-11-16T21:46:33.016Z",
        "description": "the footer",
    }
    heard = read("qwen", "Stop", data("qwen", "Stop", background_tasks=[helper]))
    assert heard.tasks is not None
    assert [(one.kind, one.running) for one in heard.tasks] == [("subagent", status == "running")]
    assert not heard.tasks_unclear


def test_the_clock_is_the_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUARD_NOW", "2001-01-01T00:00:00Z")
    heard = payload.read_payload("claude", "Stop", b"{}", os.environ)
    assert isinstance(heard["seconds"], float)
    assert heard["seconds"] > 1_700_000_000


def test_the_folder_is_the_projects_then_the_documents_then_the_current_one(tmp_path: Path) -> None:
    project, told = tmp_path / "project", tmp_path / "told"
    project.mkdir()
    told.mkdir()
    stdin = data("claude", "PostToolUse", cwd=str(told))
    assert read("claude", "PostToolUse", stdin, CLAUDE_PROJECT_DIR=str(project)).cwd == str(project)
    assert read("codex", "PostToolUse", stdin, CLAUDE_PROJECT_DIR=str(project)).cwd == str(told)
    assert read("claude", "PostToolUse", stdin).cwd == str(told)
    for gone in ("relative", str(tmp_path / "gone"), "/\0", "/\ud800", 7, None, "/" + "x" * 5000):
        assert read("claude", "Stop", data("claude", "Stop", cwd=gone)).cwd == os.getcwd()


@pytest.mark.parametrize(
    "stdin",
    [
        b"",
        b"no json",
        b"[1]",
        b"null",
        b'{"session_id": "cut',
        b'{"session_id": "s"} and more',
        b'{"a":' * 100_000,
        b"[" * 200_000 + b"]" * 200_000,
        b"\xff\xfe\x00",
        b" " * (payload.MOST_BYTES + 1),
        b'{"session_id": 7, "agent_id": {}, "background_tasks": 3, "stop_hook_active": "yes"}',
    ],
    ids=lambda stdin: stdin[:20].decode(errors="replace"),
)
def test_a_broken_document_leaves_what_the_environment_tells(stdin: bytes) -> None:
    heard = read("claude", "Stop", stdin, CLAUDE_CODE_SESSION_ID="of the environment")
    assert (heard.session, heard.helper, heard.tasks) == ("of the environment", None, None)
    assert heard.again is None
    assert read("codex", "Stop", stdin, CLAUDE_CODE_SESSION_ID="not its own").session is None


def test_texts_are_shortened_and_kept() -> None:
    stdin = data("claude", "Stop", session_id="é\x1b[31m\0\ud800" + "x" * 9000, agent_id="")
    heard = read("claude", "Stop", stdin)
    assert heard.session is not None
    assert len(heard.session) == 512
    assert heard.session.startswith("é\x1b[31m\0?xxx")
    assert heard.helper is None


def test_numbers_of_any_length_do_no_harm() -> None:
    stdin = b'{"session_id":"s","a":' + b"9" * 100_000 + b',"b":-Infinity,"c":1e999}'
    assert read("claude", "Stop", stdin).session == "s"


@pytest.mark.parametrize(
    ("listed", "known", "unclear"),
    [
        ([], [], False),
        ([{"id": "a", "type": "shell", "status": "running"}], [("a", True)], False),
        ([{"id": "a", "type": "shell", "status": "completed"}], [("a", False)], False),
        ([{"id": "a", "type": "hovercraft", "status": "running"}], [], True),
        ([{"id": "a", "type": "shell", "status": "undreamt-of"}], [], True),
        ([{"id": 7, "type": "shell", "status": "running"}], [], True),
        (["a"], [], True),
        ("all", None, True),
    ],
)
def test_what_is_not_understood_makes_the_list_unclear(
    listed: Any, known: list[tuple[str, bool]] | None, unclear: bool
) -> None:
    heard = read("claude", "Stop", data("claude", "Stop", background_tasks=listed))
    found = [(one.id, one.running) for one in heard.tasks] if heard.tasks is not None else None
    assert (found, heard.tasks_unclear) == (known, unclear)


def test_a_list_that_is_too_long_is_unclear() -> None:
    many = [{"id": f"t{n}", "type": "shell", "status": "running"} for n in range(1000)]
    heard = read("claude", "Stop", data("claude", "Stop", background_tasks=many))
    assert heard.tasks is not None
    assert len(heard.tasks) == payload.MOST_LISTED
    assert heard.tasks_unclear


def test_a_wake_up_is_one_however_it_is_listed() -> None:
    crons = [{"id": "c1", "schedule": "* * * * *"}, {"prompt": "look again"}, "c3", 7]
    heard = read("claude", "Stop", data("claude", "Stop", session_crons=crons))
    assert heard.wakeups is not None
    assert [one.id for one in heard.wakeups] == ["c1", "look again", "c3", "wake-up 4"]


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
FIELDS = sorted({name for events in DOCUMENTS.values() for one in events.values() for name in one})


@given(
    st.sampled_from([(agent, event) for agent, events in KINDS.items() for event in events]),
    st.dictionaries(st.sampled_from(FIELDS), JSON).map(lambda one: json.dumps(one).encode())
    | JSON.map(lambda one: json.dumps(one).encode())
    | st.binary(),
)
def test_any_document_becomes_a_heard(which: tuple[str, str], stdin: bytes) -> None:
    heard = read(*which, stdin)
    assert (heard.agent, heard.event) == which


def _zero(_written: str) -> int:
    return 0


def _small(written: str) -> int:
    return int(written) if len(written) < 10 else 0


@given(JSON)
def test_plain_json_says_what_json_says(value: Any) -> None:
    text = json.dumps(value)
    kept = json.loads(text, parse_float=_zero, parse_int=_small, parse_constant=_zero)
    assert plain_json.parse(text) == kept
    assert json.loads(plain_json.render(kept)) == kept


def test_json_does_where_the_scanner_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "_json", None)
    assert plain_json.parse(' {"a": [1, "b", null]} ') == {"a": [1, "b", None]}
    assert plain_json.parse("{") is None
    assert plain_json.render({"a": ["é", None, True]}) == '{"a":["\\u00e9",null,true]}'


@pytest.mark.parametrize("command", RAN)
def test_the_hook_keeps_every_command_that_may_be_a_run(command: str) -> None:
    assert payload.may_run_tests(command)
