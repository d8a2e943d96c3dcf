"""Turn the event stream of any agent CLI into what people read: messages, tool calls and their results.

The streams differ in their events, and no event means one thing in one stream and another in the next: one reader reads all.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Literal

from guard.core.base.agent_json import Event, part_of, parts_of, text_of, word_in
from guard.core.base.fields import Frozen
from guard.core.base.lines import LONGEST_LINE, Lines, object_in
from guard.core.base.text import escape

EntryKind = Literal["prompt", "message", "call", "result", "note", "text"]
_MOST_RESULT_LINES = 6
_LONGEST_CALL = 200
_MOST_CHARACTERS = 4000
_MAY_BE_EVENT = re.compile(rb'\s*+(?:\{\s*+(?:"|\Z)|\[\s*+(?:\{|\Z))')
"""The beginning of a line with an event, or with an array of events; a prompt such as `[y/n]` is none."""
_ARGUMENTS = (
    "command",
    "cmd",
    "file_path",
    "filePath",
    "path",
    "pattern",
    "query",
    "url",
    "prompt",
)


class TranscriptEntry(Frozen):
    """One thing that was said or done."""

    kind: EntryKind
    """`text` is output that is no event; a `note` is a word of the program, such as an error."""
    text: str
    tool: str | None = None
    """The tool of a call."""
    failed: bool = False
    """Whether it is the result of a call that failed."""
    helper: bool = False
    """Whether it is a subagent's."""


def read_transcript(chunks: Iterable[bytes]) -> Iterator[TranscriptEntry]:
    """Yield what the output says; pieces of one message are joined."""
    lines, reader = Lines(), _EntryReader()
    for chunk in chunks:
        for line in lines.feed(chunk):
            yield from reader.read(line)
    for line in lines.end():
        yield from reader.read(line)
    yield from reader.end()


class LiveTranscript:
    """Turns what an agent prints into what a terminal shows: events as text, all else byte for byte and at once."""

    def __init__(self) -> None:
        self._reader = _EntryReader()
        self._held = bytearray()
        """The beginning of a line that may be an event."""
        self._in_text = False
        """Whether a line that is no event has begun."""

    def feed(self, data: bytes, *, has_events: bool) -> bytes:
        """Return what to show; `has_events` says that the program is known to print the events of an agent CLI."""
        shown = bytearray()
        *whole, last = data.split(b"\n")
        for line in whole:
            shown += self._take(line + b"\n", has_events)
        return bytes(shown + self._take(last, has_events))

    def end(self) -> bytes:
        """Return what was held until its end could come."""
        held, self._held = bytes(self._held), bytearray()
        return _shown(self._reader.end()) + held

    def _take(self, piece: bytes, has_events: bool) -> bytes:
        if not piece:
            return b""
        if not self._in_text and _MAY_BE_EVENT.match(bytes(self._held[:64]) + piece[:64]):
            self._held += piece
            if not piece.endswith(b"\n") and len(self._held) <= LONGEST_LINE:
                return b""
            piece, self._held = bytes(self._held), bytearray()
            if has_events and piece.endswith(b"\n") and (events := _events_in(piece)):
                return _shown(entry for line in events for entry in self._reader.read(line))
        piece, self._held = bytes(self._held) + piece, bytearray()
        self._in_text = not piece.endswith(b"\n")
        return _shown(self._reader.end()) + piece


def _events_in(line: bytes) -> list[bytes]:
    # An array on one line holds all events of a session.
    lines = Lines()
    found = [*lines.feed(line), *lines.end()]
    return found if all(object_in(each.strip()) is not None for each in found) else []


def _shown(entries: Iterable[TranscriptEntry]) -> bytes:
    return "".join(f"{entry_text(entry)}\n" for entry in entries).encode(errors="replace")


class _EntryReader:
    """Reads the lines of one session in their order."""

    def __init__(self) -> None:
        self._pending: TranscriptEntry | None = None
        """An entry that the next line may go on with."""
        self._has_message = False

    def read(self, line: bytes) -> Iterator[TranscriptEntry]:
        for entry, goes_on in self._entries(line):
            before, self._pending = self._pending, entry
            if before is not None and goes_on and before.kind == entry.kind:
                text = (before.text + entry.text)[:_MOST_CHARACTERS]
                self._pending = before.model_copy(update={"text": text})
            elif goes_on:
                yield from () if before is None else (before,)
            else:
                yield from (entry,) if before is None else (before, entry)
                self._pending = None

    def end(self) -> Iterator[TranscriptEntry]:
        pending, self._pending = self._pending, None
        if pending is not None:
            yield pending

    def _entries(self, line: bytes) -> Iterator[tuple[TranscriptEntry, bool]]:
        """Yield the entries of a line, each with whether the next line may go on with it."""
        stripped = line.strip()
        if not stripped:
            return
        event = object_in(stripped) if stripped.startswith(b"{") else None
        if event is None:
            text = line.decode(errors="replace").rstrip("\r\n")
            yield TranscriptEntry(kind="text", text=text[:_MOST_CHARACTERS]), False
            return
        is_piece = event.get("type") == "message" and event.get("delta") is True
        for entry in self._of_event(event):
            self._has_message = self._has_message or entry.kind == "message"
            yield entry, is_piece

    def _of_event(self, event: Event) -> Iterator[TranscriptEntry]:
        kind = event.get("type")
        if kind == "result" and event.get("is_error") is True:
            told = (event, part_of(event, "error"))
            words = [text_of(each.get(name)) for each in told for name in ("result", "message")]
            errors = event.get("errors")
            words += map(text_of, errors) if isinstance(errors, list) else []
            yield from _note(next(filter(None, words), ""))
        elif kind == "result" and not self._has_message:
            # The only document of a session; in a stream the same was a message before.
            yield from _said("message", text_of(event.get("result")))
        elif isinstance(kind, str):
            yield from _of_event(event)
        else:
            yield from _said("message", text_of(event.get("response")))
            yield from _note(text_of(part_of(event, "error").get("message")))


def _of_event(event: Event) -> Iterator[TranscriptEntry]:
    match event.get("type"):
        case "assistant" | "user":
            yield from _blocks(event)
        case "item.completed":
            yield from _codex_item(part_of(event, "item"))
        case "turn.failed":
            yield from _note(text_of(part_of(event, "error").get("message")))
        case "session.error" | "error":
            errors = (event, part_of(event, "data"), part_of(event, "error", "data"))
            yield from _note(next(filter(None, (text_of(e.get("message")) for e in errors)), ""))
        case "text" | "tool_use" if "part" in event:
            yield from _opencode(part_of(event, "part"))
        case "message" | "tool_use" | "tool_result":
            yield from _gemini(event)
        case "user.message" | "assistant.message" | "tool.execution_complete":
            yield from _copilot(event, part_of(event, "data"))


def _opencode(part: Event) -> Iterator[TranscriptEntry]:
    if part.get("type") == "text" or "tool" not in part:
        yield from _said("message", text_of(part.get("text")))
        return
    state = part_of(part, "state")
    yield _call(word_in(part.get("tool")), part_of(state, "input"))
    output = text_of(state.get("output")) or text_of(state.get("error"))
    yield _result(output, failed=state.get("status") == "error")


def _gemini(event: Event) -> Iterator[TranscriptEntry]:
    match event.get("type"):
        case "message":
            kind: EntryKind = "message" if event.get("role") == "assistant" else "prompt"
            yield from _said(kind, text_of(event.get("content")))
        case "tool_use":
            yield _call(word_in(event.get("tool_name")), part_of(event, "parameters"))
        case _:
            failed = event.get("status") not in ("success", None)
            said = text_of(event.get("output")) or text_of(part_of(event, "error").get("message"))
            yield _result(said, failed=failed)


def _copilot(event: Event, data: Event) -> Iterator[TranscriptEntry]:
    helper = bool(data.get("parentToolCallId"))
    match event.get("type"):
        case "user.message":
            yield from _said("prompt", text_of(data.get("content")))
        case "assistant.message":
            yield from _said("message", text_of(data.get("content")), helper=helper)
            for request in parts_of(data, "toolRequests"):
                given = part_of(request, "arguments")
                yield _call(word_in(request.get("name")), given, helper=helper)
        case _:
            output = text_of(part_of(data, "result").get("content"))
            output = output or text_of(part_of(data, "error").get("message"))
            yield _result(output, failed=data.get("success") is False, helper=helper)


def _blocks(event: Event) -> Iterator[TranscriptEntry]:
    # Claude Code and Qwen Code.
    helper = bool(event.get("parent_tool_use_id"))
    is_agent = event.get("type") == "assistant"
    for block in parts_of(part_of(event, "message"), "content"):
        match block.get("type"):
            case "text":
                kind: EntryKind = "message" if is_agent else "prompt"
                yield from _said(kind, text_of(block.get("text")), helper=helper)
            case "tool_use":
                yield _call(word_in(block.get("name")), part_of(block, "input"), helper=helper)
            case "tool_result":
                content = block.get("content")
                texts = (
                    [text_of(part.get("text")) for part in content if isinstance(part, dict)]
                    if isinstance(content, list)
                    else [text_of(content)]
                )
                failed = block.get("is_error") is True
                yield _result("\n".join(texts), failed=failed, helper=helper)


def _codex_item(item: Event) -> Iterator[TranscriptEntry]:
    match item.get("type"):
        case "agent_message":
            yield from _said("message", text_of(item.get("text")))
        case "command_execution":
            yield _call("shell", {"command": text_of(item.get("command"))})
            failed = item.get("exit_code") not in (0, None)
            yield _result(text_of(item.get("aggregated_output")), failed=failed)
        case "file_change":
            paths = [text_of(change.get("path")) for change in parts_of(item, "changes")]
            yield _call("file_change", {"path": ", ".join(paths)})
        case "mcp_tool_call" | "collab_tool_call":
            yield _call(word_in(item.get("tool")), part_of(item, "arguments") or item)
        case "error":
            yield from _note(text_of(item.get("message")))


def _said(kind: EntryKind, text: str, *, helper: bool = False) -> Iterator[TranscriptEntry]:
    if text:
        yield TranscriptEntry(kind=kind, text=text[:_MOST_CHARACTERS], helper=helper)


def _note(text: str) -> Iterator[TranscriptEntry]:
    return _said("note", text)


def _call(tool: str, given: Event, *, helper: bool = False) -> TranscriptEntry:
    named = next((value for name in _ARGUMENTS if (value := text_of(given.get(name)))), None)
    text = named if named is not None else json.dumps(dict(given), ensure_ascii=False)
    shown = " ".join(text.split())[:_LONGEST_CALL]
    return TranscriptEntry(kind="call", tool=tool or "tool", text=shown, helper=helper)


def _result(text: str, *, failed: bool, helper: bool = False) -> TranscriptEntry:
    shown = text.strip()[:_MOST_CHARACTERS]
    return TranscriptEntry(kind="result", text=shown, failed=failed, helper=helper)


def entry_text(entry: TranscriptEntry) -> str:
    """Return the entry as lines for a terminal; no character of it can move the cursor."""
    lines = [escape(line) for line in entry.text.splitlines()]
    margin = "    | " if entry.helper else ""
    match entry.kind:
        case "call":
            shown = [f"> {escape(entry.tool or '')}: {' '.join(lines)}"]
        case "result":
            kept, more = lines[:_MOST_RESULT_LINES], len(lines) - _MOST_RESULT_LINES
            kept += [f"… and {more} more lines"] if more > 0 else []
            kept = kept or ["(no output)"]
            shown = [f"    {line}" for line in kept]
            if entry.failed:
                shown[0] = f"  ! {kept[0]}"
        case "prompt":
            shown = [f"» {line}" for line in lines]
        case "note":
            shown = [f"! {line}" for line in lines]
        case _:
            shown = lines
    return "\n".join(margin + line for line in shown)
