"""Read finished tool calls (tool, input, result, exit code) from the event streams of all agent CLIs, and from hooks.

The streams differ in their events, and no event means one thing in one stream and another in the next: so one reader reads all.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from guard.core.base.agent_json import Event, part_of, parts_of, text_of, word_in
from guard.core.base.first_use import late_pattern

MOST_OUTPUT = 16 * 1024
"""So much of a result is kept, from its end."""
_MOST_PENDING = 1000
_WORDS = late_pattern(
    rb'"(?:tool_use|tool_result|item\.completed|tool\.execution_start|tool\.execution_complete|task_notification)"'
)
_EXIT = late_pattern(
    r"(?:\AExit code|^Exit Code:|\(exit code|exited with code|<shellId: \w+ completed with exit code) ?(-?\d{1,3})\b",
    re.MULTILINE,
)
_MEASURED = late_pattern(
    r"\b(?:in|took|time:?|duration:?|elapsed:?|real|user|sys|transform|setup|collect|tests|environment|prepare|import)"
    r"\s{1,9}[\d.:]{1,12}\s?(?:ms|m|s|sec(?:onds)?)\b[\d.s]{0,8}"
    r"|\A(?:ok|FAIL)\s{1,9}\S{1,200}\s{1,9}[\d.]{1,12}s\b|\([\d.]{1,12}\s?m?s(?:,[\d.\s]{1,12}s \w{1,9})?\)"
    r"|\bTime:\s{1,9}[\d:.]{1,12}\b|\b(?:start|finished) at:?\s{1,9}[\dT:.+-]{5,40}Z?"
    r"|\bProcess Group PGID: \d{1,9}|<shellId: \d{1,9} ",
    re.IGNORECASE,
)
"""What differs when the same command runs again: the times that a test runner measured, and the number of the process."""
_LONGEST_MEASURED = 4096
_EDITS = frozenset(
    [
        "edit",
        "write",
        "multiedit",
        "notebookedit",
        "replace",
        "write_file",
        "edit_file",
        "create_file",
        "create",
        "str_replace_editor",
        "str_replace_based_edit_tool",
        "apply_patch",
        "patch",
        "file_change",
    ]
)
_PATHS = ("file_path", "filePath", "path", "absolute_path", "relative_path", "notebook_path")


class BegunCall(NamedTuple):
    """A tool call whose result is not there yet."""

    tool: str
    input: Mapping[str, Any]
    lane: str
    """Who makes the call: empty for the session's own agent, else the id of one of its subagents."""


class ToolCall(NamedTuple):
    """One finished tool call."""

    call: str
    """Its id; empty if the agent CLI gives none."""
    tool: str
    input: Mapping[str, Any]
    output: str
    """The end of the result."""
    exit_code: int | None
    """None if the tool runs no program, or the agent CLI does not say."""
    failed: bool

    @property
    def command(self) -> str:
        """Return the command line; empty for a tool that runs none."""
        words = self.input.get("command", self.input.get("cmd"))
        if isinstance(words, list):
            # The shell's own words are the last one: `["bash", "-lc", "pytest"]`.
            return text_of(words[-1]) if words else ""
        return "" if self.edits else text_of(words)

    @property
    def edits(self) -> bool:
        return self.tool.casefold() in _EDITS

    @property
    def path(self) -> str:
        return next((text for name in _PATHS if (text := text_of(self.input.get(name)))), "")


class EndedCall(NamedTuple):
    """A tool call with its result as the event has it; what that means is found out when it is asked for."""

    name: str
    begun: BegunCall
    result: object
    failed: bool
    exit_code: int | None = None
    tells_exit: bool = False
    """Whether the call fails if the program that it runs does."""

    def read(self) -> ToolCall:
        output, code = _text_in(self.result), self.exit_code
        code = _exit_in(output) if code is None else code
        if code is None and self.tells_exit and not self.failed:
            code = 0
        tool, given, _ = self.begun
        return _call(self.name, tool, given, output, code, failed=self.failed)

    def has_same_result(self, other: "EndedCall") -> bool:
        """Compare the results; the times that a test runner measured do not count."""
        return _is_same_result(self.result, other.result)


class ToolCallReader:
    """Reads the events of one session in their order, and yields each call when its result is there."""

    def __init__(self) -> None:
        self._pending: dict[str, BegunCall] = {}

    @staticmethod
    def is_wanted(line: bytes) -> bool:
        """Tell whether a line of a stream may have to be read."""
        return _WORDS.search(line) is not None

    @property
    def has_several(self) -> bool:
        """Tell whether more than one call has begun and not ended."""
        return len(self._pending) > 1

    def take_begun(self, call: str) -> BegunCall | None:
        """Return a call that has begun, and forget it, because its result is read elsewhere."""
        return self._pending.pop(call, None)

    def begin(self, call: str, begun: BegunCall) -> None:
        while len(self._pending) >= _MOST_PENDING:
            del self._pending[next(iter(self._pending))]
        self._pending[call] = begun

    def read(self, event: Event) -> Iterator[ToolCall]:
        return (ended.read() for ended in self.end_calls(event))

    def end_calls(self, event: Event) -> Iterator[EndedCall]:
        """Yield the calls that end with this event, without looking at their results."""
        match event.get("type"):
            case "assistant" | "user":
                yield from self._read_blocks(event)
            case "system" if event.get("subtype") == "task_notification":
                yield from self._end(event.get("tool_use_id"), event.get("summary"))
            case "item.completed":
                yield from codex_calls(part_of(event, "item"))
            case "tool_use" if "part" in event:
                yield from _opencode_call(part_of(event, "part"), lane_of(event))
            case "tool_use":
                name, tool, given = map(event.get, ("tool_id", "tool_name", "parameters"))
                self.begin_asked(name, tool, given)
            case "tool_result":
                result = event.get("output", event.get("error"))
                failed = event.get("status") not in ("success", None)
                yield from self._end(event.get("tool_id"), result, failed=failed)
            case "assistant.message" | "tool.execution_start" | "tool.execution_complete":
                yield from self._read_copilot(event)

    def _read_blocks(self, event: Event) -> Iterator[EndedCall]:
        # Claude Code and Qwen Code.
        for block in parts_of(part_of(event, "message"), "content"):
            kind = block.get("type")
            if kind == "tool_use":
                self.begin_asked(
                    block.get("id"), block.get("name"), block.get("input"), lane_of(event)
                )
            elif kind == "tool_result" and not self._is_in_background(block.get("tool_use_id")):
                failed = block.get("is_error") is True
                name, result = block.get("tool_use_id"), block.get("content")
                yield from self._end(name, result, failed=failed, tells=True)

    def _is_in_background(self, name: object) -> bool:
        # Its result says only that it has begun; a notification tells how it ended.
        begun = self._pending.get(str(name))
        return begun is not None and begun.input.get("run_in_background") is True

    def _read_copilot(self, event: Event) -> Iterator[EndedCall]:
        data, lane = part_of(event, "data"), lane_of(event)
        for request in parts_of(data, "toolRequests"):
            name, tool, asked = map(request.get, ("toolCallId", "name", "arguments"))
            self.begin_asked(name, tool, asked, lane)
        if event.get("type") == "tool.execution_start":
            name, tool, asked = map(data.get, ("toolCallId", "toolName", "arguments"))
            self.begin_asked(name, tool, asked, lane)
        if event.get("type") != "tool.execution_complete":
            return
        code = part_of(data, "shellExecution").get("exitCode")
        result = part_of(data, "result").get("content") or part_of(data, "error").get("message")
        failed = data.get("success") is False
        yield from self._end(data.get("toolCallId"), result, failed=failed, code=code)

    def begin_asked(self, name: object, tool: object, given: object, lane: str = "") -> None:
        """Note a call as an event has it."""
        if isinstance(name, str) and isinstance(tool, str):
            self.begin(name, BegunCall(tool, given if isinstance(given, dict) else {}, lane))

    def _end(
        self,
        name: object,
        result: object,
        *,
        failed: bool = False,
        code: object = None,
        tells: bool = False,
    ) -> Iterator[EndedCall]:
        found = self._pending.pop(name, None) if isinstance(name, str) else None
        if found is not None:
            code = code if isinstance(code, int) else None
            yield EndedCall(str(name), found, result, failed, code, tells)


def lane_of(event: Event) -> str:
    """Return the subagent whose event this is; empty for the session's own agent."""
    lane = event.get("parent_tool_use_id") or event.get("sessionID")
    return word_in(lane or part_of(event, "data").get("parentToolCallId"))


def read_hook(document: Mapping[str, Any]) -> ToolCall | None:
    """Return the call that a hook after a tool call reports; None if the document has no tool."""
    tool = text_of(document.get("tool_name") or document.get("toolName"))
    given = document.get("tool_input", document.get("toolArgs"))
    result = document.get("tool_response", document.get("toolResult"))
    if not tool:
        return None
    answer = result if isinstance(result, dict) else {}
    output = _text_in(result) or "\n".join(
        text
        for name in ("stdout", "stderr", "output", "textResultForLlm", "llmContent")
        if (text := text_of(answer.get(name)))
    )
    failed = (
        answer.get("is_error") is True
        or bool(document.get("error"))
        or bool(answer.get("error"))
        or answer.get("success") is False
        or answer.get("resultType") not in (None, "success")
    )
    code = next(
        (answer[name] for name in ("exit_code", "exitCode") if isinstance(answer.get(name), int)),
        None,
    )
    code = _exit_in(output or text_of(document.get("error"))) if code is None else code
    if code is None and not failed and not answer.get("interrupted") and "stdout" in answer:
        code = 0
    name = text_of(document.get("tool_use_id"))
    return _call(name, tool, given if isinstance(given, dict) else {}, output, code, failed=failed)


def end_hook_call(document: Mapping[str, Any], lane: str) -> EndedCall | None:
    """Return the call that a hook after a tool call reports, as an ended call of that lane."""
    call = read_hook(document)
    if call is None:
        return None
    begun = BegunCall(call.tool, call.input, lane)
    return EndedCall(call.call, begun, call.output, call.failed, call.exit_code)


def codex_calls(item: Event) -> Iterator[EndedCall]:
    """Yield the calls that an item of Codex tells of."""
    name, kind, code = text_of(item.get("id")), text_of(item.get("type")), item.get("exit_code")
    failed = item.get("status") == "failed"
    if kind == "command_execution":
        begun = BegunCall("shell", {"command": text_of(item.get("command"))}, "")
        code = code if isinstance(code, int) else None
        yield EndedCall(name, begun, item.get("aggregated_output"), failed, code)
    elif kind == "file_change":
        for change in parts_of(item, "changes"):
            begun = BegunCall(kind, {"path": text_of(change.get("path"))}, "")
            yield EndedCall(name, begun, "", failed)
    elif kind == "mcp_tool_call":
        result = part_of(item, "result").get("content") or part_of(item, "error").get("message")
        begun = BegunCall(text_of(item.get("tool")), part_of(item, "arguments"), "")
        yield EndedCall(name, begun, result, failed)


def _opencode_call(part: Event, lane: str) -> Iterator[EndedCall]:
    state = part_of(part, "state")
    if state.get("status") not in ("completed", "error"):
        return
    code = part_of(state, "metadata").get("exit")
    begun = BegunCall(text_of(part.get("tool")), part_of(state, "input"), lane)
    result, failed = state.get("output") or state.get("error"), state.get("status") == "error"
    code = code if isinstance(code, int) else None
    yield EndedCall(text_of(part.get("callID")), begun, result, failed, code)


def _call(
    name: str, tool: str, given: Mapping[str, Any], output: str, code: int | None, *, failed: bool
) -> ToolCall:
    return ToolCall(name, tool, given, output[-MOST_OUTPUT:], code, failed or bool(code))


def _is_same_result(one: object, other: object) -> bool:
    if one == other:
        return True
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same_result, one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        one, other = one.get("text"), other.get("text")
    if not (isinstance(one, str) and isinstance(other, str)):
        return False
    return all(map(_is_same_line, *_split_evenly(one, other)))


def _split_evenly(one: str, other: str) -> tuple[list[str], list[str]]:
    lines, others = one.split("\n"), other.split("\n")
    return (lines, others) if len(lines) == len(others) else ([one], [""])


def _is_same_line(one: str, other: str) -> bool:
    if one == other:
        return True
    if len(one) > _LONGEST_MEASURED or len(other) > _LONGEST_MEASURED:
        return False
    return _MEASURED.sub("", one) == _MEASURED.sub("", other)


def _exit_in(output: str) -> int | None:
    if "xit" not in output:
        return None
    found = _EXIT.search(output[:MOST_OUTPUT]) or _EXIT.search(output[-MOST_OUTPUT:])
    return int(found[1]) if found else None


def _text_in(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(_text_in(part.get("text")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""
