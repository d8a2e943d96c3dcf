"""What a session repeats, by the calls that its hooks tell of."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from guard.context.invocation import Invocation
from guard.core.hooks.event_kinds import MARK
from guard.core.tool_calls.agent_loop import LoopFound
from guard.hooks.agent import journal
from guard.hooks.agent.journal import note_call
from guard.hooks.agent.payload import make_payload, read_fields
from guard.hooks.loops import HookLoops, find_hooked_loop
from guard.iteration.current import CheckTerms, current_iteration
from tests.hooks.agent.documents import DOCUMENTS, data
from tests.support import run

SESSION = "00000006-0000-4000-8000-000000000006"
AFTER = {
    "claude": "PostToolUse",
    "codex": "PostToolUse",
    "gemini": "AfterTool",
    "qwen": "PostToolUse",
    "copilot": "postToolUse",
}
PROMPTS = {
    "claude": "UserPromptSubmit",
    "codex": "UserPromptSubmit",
    "gemini": "BeforeAgent",
    "qwen": "UserPromptSubmit",
    "copilot": "userPromptSubmitted",
}
RESULTS: dict[str, Callable[[str], Any]] = {
    "claude": lambda text: {"stdout": text, "stderr": "", "interrupted": False, "isImage": False},
    "codex": lambda text: text,
    "gemini": lambda text: {
        "llmContent": f"<untrusted_context>\nOutput: {text}\nProcess Group PGID: {os.urandom(2)!r}\n</untrusted_context>",
        "returnDisplay": f"Output: {text}\nProcess Group PGID: {os.urandom(2)!r}",
    },
    "qwen": lambda text: {
        "llmContent": f"Command: x\nDirectory: (root)\nOutput: {text}\nError: (none)\nExit Code: 0\nSignal: (none)",
        "returnDisplay": text,
    },
    "copilot": lambda text: {
        "resultType": "success",
        "textResultForLlm": f"{text}\n<shellId: {os.urandom(1)[0]} completed with exit code 0>",
    },
}


@pytest.fixture
def begun(repository: Path) -> Path:
    assert run("baseline").code == 0
    return repository


class Session:
    """A session whose hooks are called; its clock goes on by a tenth of a second at each call."""

    def __init__(self, agent: str, session: str = SESSION, mark: str = "") -> None:
        self.agent = agent
        self.environ = {**os.environ, MARK: mark}
        self._names = {"session_id": session, "sessionId": session}
        self._now = 1000.0
        self._number = 0

    def hear(self, event: str, *, after: float = 0.1, **more: Any) -> None:
        self._now += after
        self._number += 1
        named: dict[str, Any] = {"agent_id": None, **self._names, "cwd": str(Path.cwd())}
        if "tool_use_id" in DOCUMENTS[self.agent][event]:
            named["tool_use_id"] = f"call{self._number}"
        elif self.agent == "gemini":
            named["timestamp"] = f"2026-11-16T01:43:{self._number:02}.694Z"
        fields = read_fields(data(self.agent, event, **{**named, **more}))
        payload = make_payload(self.agent, event, fields, self.environ)
        note_call({**payload, "boot_seconds": self._now}, fields, self.environ)

    def shell(self, command: str, result: str, **more: Any) -> None:
        old = self.agent == "copilot"
        given = {"command": command, "description": f"call {self._number}"}
        self.hear(
            AFTER[self.agent],
            **{
                "toolArgs" if old else "tool_input": given,
                "toolResult" if old else "tool_response": RESULTS[self.agent](result),
                **more,
            },
        )

    def tool(self, name: str, given: Mapping[str, Any], result: object, **more: Any) -> None:
        self.hear("PostToolUse", tool_name=name, tool_input=given, tool_response=result, **more)

    def edit(self, path: str = "a.py") -> None:
        given = {"file_path": path, "old_string": "x", "new_string": str(self._number)}
        self.tool("Edit", given, {"filePath": path})


def found() -> LoopFound | None:
    guard = Invocation()
    return find_hooked_loop(guard, current_iteration(guard, CheckTerms()))


every_cli = pytest.mark.parametrize("agent", AFTER)


@every_cli
def test_the_same_call_with_the_same_result(begun: Path, agent: str) -> None:
    session = Session(agent)
    for _ in range(5):
        session.shell("git status --short", "M a.py")
    loop = found()
    assert loop is not None
    assert (loop.pattern, loop.count) == ("same_result", 5)
    assert loop.call.endswith("git status --short")


@every_cli
def test_times_that_were_measured_do_not_count(begun: Path, agent: str) -> None:
    session = Session(agent)
    for number in range(4):
        session.shell("pytest -q", f"a line\n3 passed in 0.{number}s")
    loop = found()
    assert loop is not None
    assert loop.count == 4


@every_cli
def test_two_calls_in_turn(begun: Path, agent: str) -> None:
    session = Session(agent)
    for _ in range(3):
        session.shell("ls src", "a b")
        session.shell("cat log", "some text")
    loop = found()
    assert loop is not None
    assert (loop.pattern, loop.count) == ("two_calls", 3)


@every_cli
def test_other_results_are_healthy(begun: Path, agent: str) -> None:
    session = Session(agent)
    for number in range(8):
        session.shell("git log -1", f"commit {number} " + "x" * 5000)
        session.shell("make", "a" * 5000 + "bcdefghi"[number] + "a" * 5000)
    assert found() is None


@every_cli
def test_a_person_between_is_healthy(begun: Path, agent: str) -> None:
    session = Session(agent)
    for _ in range(3):
        session.shell("git status", "clean")
        session.shell("git status", "clean")
        session.hear(PROMPTS[agent], prompt="and again")
    assert found() is None


@every_cli
def test_polling_is_healthy(begun: Path, agent: str) -> None:
    session = Session(agent)
    for _ in range(6):
        session.shell("gh run view 17", "in progress", after=11.0)
        session.shell("sleep 3; cat job.log", "waits")
    assert found() is None


@every_cli
def test_three_times_is_healthy(begun: Path, agent: str) -> None:
    session = Session(agent)
    for _ in range(3):
        session.shell("git status", "clean")
    assert found() is None


def test_the_same_call_fails_with_other_words(begun: Path) -> None:
    session = Session("claude")
    for number in range(4):
        failed = {"tool_response": None, "error": f"Exit code 1\nerror in run {number}"}
        session.shell("npm test", "", **failed)
    loop = found()
    assert loop is not None
    assert (loop.pattern, loop.count) == ("same_failure", 4)


def test_a_code_other_than_zero_is_a_failure(begun: Path) -> None:
    session = Session("copilot")
    for number in range(4):
        text = f"run {number} went wrong\n<shellId: {number} completed with exit code 2>"
        session.shell(
            "npm test", "", toolResult={"resultType": "success", "textResultForLlm": text}
        )
    loop = found()
    assert loop is not None
    assert loop.pattern == "same_failure"


def test_another_tool_with_a_structured_result(begun: Path) -> None:
    session = Session("claude")
    for number in range(4):
        session.tool("Grep", {"pattern": "parse("}, {"numFiles": 0, "durationMs": number})
    loop = found()
    assert loop is not None
    assert loop.call == "Grep parse("


def test_a_structured_result_that_differs_is_healthy(begun: Path) -> None:
    session = Session("claude")
    for number in range(6):
        text = {"file": {"filePath": "a.py", "content": f"line {number}", "numLines": 1}}
        session.tool("Read", {"file_path": "a.py"}, text)
    for number in range(6):
        session.tool("Grep", {"pattern": "x"}, {"numFiles": number})
    assert found() is None


def test_an_edit_between_is_healthy(begun: Path) -> None:
    session = Session("claude")
    for _ in range(6):
        session.shell("npm test", "1 failing")
        session.edit()
    assert found() is None


def test_notes_do_not_come_between(begun: Path) -> None:
    session = Session("claude")
    for number in range(4):
        session.shell("git status", "clean")
        session.tool("TodoWrite", {"todos": [{"content": f"{number}"}]}, {})
    assert found() is not None


def test_calls_while_a_helper_works_are_healthy(begun: Path) -> None:
    session = Session("claude")
    session.hear("SubagentStart", agent_id="a1")
    for _ in range(5):
        session.shell("git status", "clean")
    assert found() is None
    session.hear("SubagentStop", agent_id="a1")
    for _ in range(5):
        session.shell("git status", "clean")
    assert found() is not None


def test_calls_of_two_helpers_are_told_apart(begun: Path) -> None:
    session = Session("codex")
    for _ in range(3):
        for helper in ("a1", "a2"):
            session.shell("git status", "clean", agent_id=helper)
    assert found() is None


def test_a_compaction_begins_anew(begun: Path) -> None:
    session = Session("claude")
    for _ in range(3):
        session.shell("git status", "clean")
        session.shell("git status", "clean")
        session.hear("PreCompact")
    assert found() is None


def test_the_same_message_without_a_call(begun: Path) -> None:
    session = Session("claude")
    for _ in range(3):
        session.hear("Stop", last_assistant_message="I am done with the work.")
    loop = found()
    assert loop is not None
    assert (loop.pattern, loop.count) == ("same_message", 3)


def test_a_prompt_of_guard_itself_is_no_person(begun: Path) -> None:
    session = Session("qwen")
    for _ in range(4):
        session.shell("git status", "clean")
        session.hear("UserPromptSubmit", prompt="")
    assert found() is not None


def test_a_hook_that_is_installed_twice_tells_of_a_call_once(begun: Path) -> None:
    session = Session("claude")
    for number in range(3):
        for _ in range(2):
            session.shell("git status", "clean", tool_use_id=f"t{number}")
    assert found() is None


def test_the_hooks_of_two_clis_tell_of_a_call_once(begun: Path) -> None:
    both = [Session("copilot"), Session("claude")]
    for _ in range(3):
        for session in both:
            session.shell("git status", "clean")
    assert found() is None


def test_two_sessions_are_told_apart(begun: Path) -> None:
    both = [Session("claude", f"{number}") for number in range(2)]
    for _ in range(3):
        for session in both:
            session.shell("git status", "clean")
    assert found() is None


def test_calls_from_before_the_baseline_do_not_count(begun: Path) -> None:
    session = Session("claude")
    for _ in range(3):
        session.shell("git status", "clean")
    assert run("baseline").code == 0
    session.shell("git status", "clean")
    assert found() is None


def test_the_journal_stays_small(begun: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "MOST_BYTES", 8000)
    session = Session("claude")
    guard = Invocation()
    loops = HookLoops(guard, current_iteration(guard, CheckTerms()))
    for number in range(100):
        session.shell("git status", "clean")
        if number % 7 == 0:
            loops.look(SESSION)
    loops.look(SESSION)
    assert sum(path.stat().st_size for path in journals(home)) < 20_000
    assert loops.current is not None
    assert loops.current.count == 100
    late = found()
    assert late is not None
    assert 10 < late.count < 100


def test_old_journals_make_room(begun: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "MOST_FILES", 8)
    for number in range(30):
        Session("claude", f"{number}").shell("git status", "clean")
        os.utime(journals(home)[0].parent / journal.journal_name(f"{number}"), (number, number))
    assert len(journals(home)) <= 9
    assert journals(home)[0].parent.joinpath(journal.journal_name("29")).exists()


def test_a_large_result_is_kept_as_a_hash(begun: Path, home: Path) -> None:
    session = Session("claude")
    for _ in range(4):
        session.shell("cat log", "some line\n" * 100_000 + "word 17 " * 10_000)
    assert sum(path.stat().st_size for path in journals(home)) < 16_000
    assert "some line" not in journals(home)[0].read_text()
    assert found() is not None


@pytest.mark.parametrize("line", ["", "{", "[]", "null", '{"what":"call"}', '{"seconds":"x"}'])
def test_a_broken_line_is_passed_over(begun: Path, home: Path, line: str) -> None:
    session = Session("claude")
    for _ in range(4):
        session.shell("git status", "clean")
        with journals(home)[0].open("a") as file:
            file.write(f"{line}\n")
    assert found() is not None


@pytest.mark.parametrize("agent", DOCUMENTS)
def test_every_document_can_be_noted(begun: Path, agent: str) -> None:
    session = Session(agent)
    for event in DOCUMENTS[agent]:
        session.hear(event)
    assert found() is None


def test_a_check_tells_what_the_hooks_say(begun: Path) -> None:
    document = {**DOCUMENTS["claude"]["PostToolUse"], "session_id": SESSION, "cwd": str(begun)}
    document |= {"tool_name": "Bash", "tool_input": {"command": "npm run lint"}, "agent_id": None}
    for number in range(4):
        stdin = json.dumps({**document, "tool_use_id": f"t{number}"})
        assert run("hook", "claude", "PostToolUse", stdin=stdin).code == 0
    facts = run("check", "--no-probe", "--no-wait", "--format", "json").json["evidence"]
    said = "looping: the same call with the same result, 4 times: Bash npm run lint"
    assert {"source": "hooks", "fact": said} in facts


def journals(home: Path) -> list[Path]:
    return sorted(home.glob("state/guard/calls.d/*/*"))
