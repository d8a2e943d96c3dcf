"""Read finished tool calls (tool, input, result, exit code) from the event streams of all agent CLIs, and from hooks.

The streams differ in their events, and no event means one thing in one stream and another in the next: so one reader reads all.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from guard.core.base.agent_json import Event, part_of, parts_of, text_of

MOST_OUTPUT = 16 * 1024
"""So much of a result is kept, from its end."""
_MOST_PENDING = 1000
_WORDS = re.compile(
    rb'"(?:tool_use|tool_result|item\.completed|tool\.execution_start|tool\.execution_complete|task_notification)"'
)
_EXIT = re.compile(
    r"(?:\AExit code|^Exit Code:|\(exit code|exited with code|<shellId: \w+ completed with exit code) ?(-?\d{1,3})\b",
    re.MULTILINE,
)
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
_PATHS = ("file_path", "filePath", "path", "absolute_path", "notebook_path")


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


class ToolCallReader:
    """Reads the events of one session in their order, and yields each call when its result is there."""

    def __init__(self) -> None:
        self._pending: dict[str, tuple[str, Mapping[str, Any]]] = {}

    @staticmethod
    def is_wanted(line: bytes) -> bool:
        """Tell whether a line of a stream may have to be read."""
        return _WORDS.search(line) is not None

    def read(self, event: Event) -> Iterator[ToolCall]:
        match event.get("type"):
            case "assistant" | "user":
                yield from self._read_blocks(event)
            case "system" if event.get("subtype") == "task_notification":
                yield from self._end(event.get("tool_use_id"), text_of(event.get("summary")), {})
            case "item.completed":
                yield from _codex_call(part_of(event, "item"))
            case "tool_use" if "part" in event:
                yield from _opencode_call(part_of(event, "part"))
            case "tool_use":
                self._begin(event.get("tool_id"), event.get("tool_name"), event.get("parameters"))
            case "tool_result":
                failed = {"failed": event.get("status") not in ("success", None)}
                yield from self._end(event.get("tool_id"), text_of(event.get("output")), failed)
            case "tool.execution_start":
                data = part_of(event, "data")
                self._begin(data.get("toolCallId"), data.get("toolName"), data.get("arguments"))
            case "tool.execution_complete":
                yield from self._read_copilot(part_of(event, "data"))

    def _read_blocks(self, event: Event) -> Iterator[ToolCall]:
        # Claude Code and Qwen Code.
        for block in parts_of(part_of(event, "message"), "content"):
            if block.get("type") == "tool_use":
                self._begin(block.get("id"), block.get("name"), block.get("input"))
            elif block.get("type") == "tool_result":
                name, output = block.get("tool_use_id"), _text_in(block.get("content"))
                if not self._is_in_background(name):
                    failed = block.get("is_error") is True
                    yield from self._end(name, output, {"failed": failed, "tells": True})

    def _is_in_background(self, name: object) -> bool:
        # Its result says only that it has begun; a notification tells how it ended.
        _, given = self._pending.get(str(name), ("", {}))
        return given.get("run_in_background") is True

    def _read_copilot(self, data: Event) -> Iterator[ToolCall]:
        shell = part_of(data, "shellExecution").get("exitCode")
        given: dict[str, Any] = {"failed": data.get("success") is False}
        if isinstance(shell, int):
            given["exit_code"] = shell
        yield from self._end(
            data.get("toolCallId"), text_of(part_of(data, "result").get("content")), given
        )

    def _begin(self, name: object, tool: object, given: object) -> None:
        if isinstance(name, str) and isinstance(tool, str):
            while len(self._pending) >= _MOST_PENDING:
                del self._pending[next(iter(self._pending))]
            self._pending[name] = tool, given if isinstance(given, dict) else {}

    def _end(self, name: object, output: str, given: Mapping[str, Any]) -> Iterator[ToolCall]:
        found = self._pending.pop(name, None) if isinstance(name, str) else None
        if found is None:
            return
        failed = given.get("failed") is True
        code = given.get("exit_code", _exit_in(output))
        if code is None and given.get("tells") and not failed:
            code = 0  # These tools fail if the program does.
        yield _call(str(name), *found, output, code, failed=failed)


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


def _codex_call(item: Event) -> Iterator[ToolCall]:
    name, kind, code = text_of(item.get("id")), text_of(item.get("type")), item.get("exit_code")
    failed = item.get("status") == "failed"
    if kind == "command_execution":
        given, output = (
            {"command": text_of(item.get("command"))},
            text_of(item.get("aggregated_output")),
        )
        yield _call(
            name, "shell", given, output, code if isinstance(code, int) else None, failed=failed
        )
    elif kind == "file_change":
        for change in parts_of(item, "changes"):
            yield _call(name, kind, {"path": text_of(change.get("path"))}, "", None, failed=failed)
    elif kind == "mcp_tool_call":
        output = _text_in(part_of(item, "result").get("content"))
        yield _call(
            name, text_of(item.get("tool")), part_of(item, "arguments"), output, None, failed=failed
        )


def _opencode_call(part: Event) -> Iterator[ToolCall]:
    state = part_of(part, "state")
    if state.get("status") not in ("completed", "error"):
        return
    output = text_of(state.get("output")) or text_of(state.get("error"))
    code = part_of(state, "metadata").get("exit")
    code = code if isinstance(code, int) else _exit_in(output)
    failed = state.get("status") == "error"
    tool = text_of(part.get("tool"))
    yield _call(
        text_of(part.get("callID")), tool, part_of(state, "input"), output, code, failed=failed
    )


def _call(
    name: str, tool: str, given: Mapping[str, Any], output: str, code: int | None, *, failed: bool
) -> ToolCall:
    return ToolCall(name, tool, given, output[-MOST_OUTPUT:], code, failed or bool(code))


def _exit_in(output: str) -> int | None:
    found = _EXIT.search(output[:MOST_OUTPUT]) or _EXIT.search(output[-MOST_OUTPUT:])
    return int(found[1]) if found else None


def _text_in(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(text_of(part.get("text")) for part in content if isinstance(part, dict))
    return text_of(content)
