"""Find an agent that goes round in circles: the same call or message again and again, with nothing new between.

A call is the same if its tool and input are; two of them repeat each other if the results are the same too, or both failed.
Only neighbours are compared, so two calls of each subagent are kept. The line of a result is read only if that is needed to
compare it, and only a small part of a stream is.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, NamedTuple

from guard.core.base.agent_json import (
    LONGEST_MESSAGE,
    Event,
    number_in,
    part_of,
    parts_of,
    text_of,
    word_in,
)
from guard.core.base.first_use import late_pattern
from guard.core.base.lines import event_in
from guard.core.base.text import escape, fit_line
from guard.core.tool_calls.agent_loop import LoopFound, LoopPattern
from guard.core.tool_calls.read import (
    BegunCall,
    EndedCall,
    ToolCall,
    ToolCallReader,
    codex_calls,
    lane_of,
)
from guard.core.tool_calls.shell import word_set
from guard.core.tool_calls.test_runs import edits_code

_LEAST_CALLS = 4
_LEAST_TURNS = 3
_LEAST_MESSAGES = 3
_POLL_SECONDS = 10.0
_MOST_LANES = 8
_LARGE = 1024 * 1024
_MOST_NOTED = 16
_LONGEST_HEAD = 600
_LONGEST_TIME = 24
_LONGEST_SHOWN = 200
_LEAST_LETTERS = 4
"""A message of fewer different letters, such as a line of dashes, repeats itself by chance."""
_SAID_OF_COMMANDS = ("description", "explanation", "justification")

_TELLING = frozenset(
    [
        "assistant",
        "user",
        "system",
        "message",
        "item.completed",
        "turn.started",
        "user.message",
        "assistant.message",
        "tool_use",
        "tool_result",
        "text",
        "tool.execution_start",
        "tool.execution_complete",
    ]
)
"""The events that may tell of a call, a message or a person's word."""
_HEAD = 300
_RESULT = late_pattern(rb'"type"\s*:\s*"(?:user|user\.message|tool_result)"')
_TYPED = b'{"type":"'
_TYPED_RESULT = (b'{"type":"user",', b'{"type":"user.message",', b'{"type":"tool_result",')
_CALL_ID = late_pattern(rb'"(?:tool_use_id|tool_id)"\s*:\s*"([^"\\]{1,200})"')
_TEXT = late_pattern(rb'"(?:content|output)"\s*:\s*"')
_STRING = late_pattern(rb'(?:[^"\\]++|\\.)*+"', re.DOTALL)
_STAMP = late_pattern(rb'"timestamp"\s*:\s*"([^"\\]{1,40})"')
_FAILED = late_pattern(rb'"is_error"\s*:\s*true|"status"\s*:\s*"(?!success)')
_FAILED_TEXT = late_pattern(rb"\A(?:Exit code|[^\n]{0,500}?Exit Code:) ?-?0*[1-9]")
_BLOCK = b'"tool_use_id"'
_NOTES = word_set(
    "todowrite todo_write write_todos todoread todo_read update_plan update_goal think"
)
"""Tools with which an agent only keeps notes: they do not come between two calls."""
_WAITING_TOOL = late_pattern(
    r"(?:.*_)?(?:wait|await|sleep|poll|monitor|watch|wakeup)(?:_.*)?"
    r"|(?:.*_)?(?:task|job|bash|shell|terminal|agent|process|command|background)_(?:output|status|result)s?(?:_tool)?"
    r"|read_bash|list_bash|write_stdin"
)
_WAITING_COMMAND = late_pattern(
    r"(?:\A|[;&|({'\"\n]|\bdo\b|\bthen\b|(?:\A|[\s'\"])(?:g?timeout(?:\s-\S+)*\s+\S+|sudo|time|nohup|env|command)\b)\s*"
    r"(?:sleep|usleep|wait|watch|inotifywait|wait-on|wait-for(?:-it)?(?:\.sh)?|start-sleep"
    r"|tail\s(?:[^;&|\n]*\s)?(?:-\w*f|--follow)|docker\s+wait|kubectl\s+(?:wait|rollout\s+status))\b"
    r"|\btime\.sleep\(|\s--(?:watch|wait)\b|\bgh\s+run\s+watch\b|\baws\s[^;&|\n]*\swait\b",
    re.IGNORECASE,
)
_CAMEL = late_pattern(r"(?<=[a-z\d])(?=[A-Z])")


class LoopFinder:
    """Reads a session once, event by event, and tells what it repeats now and what it repeated most."""

    unread: ClassVar[tuple[str, ...]] = (
        "item.started",
        "turn.completed",
        "step_start",
        "step_finish",
    )
    """Frequent events that tell nothing of loops."""

    def __init__(self, has_child: Callable[[], bool] = lambda: False) -> None:
        self._has_child = has_child
        """Tells whether a helper of the agent is at work: then the agent waits for it."""
        self._reader = ToolCallReader()
        self._lanes: dict[str, _Lane] = {}
        self._piece, self._is_in_pieces = "", False
        """The beginning of a message that comes in pieces."""
        self._worst: _Repeat | None = None
        self._effort = _Effort()
        self._has_calls = False
        self._noted: list[tuple[bytes, bytes, float | None]] = []
        """Results that were not looked at yet: the id of the call, the line, and when it came."""

    @property
    def current(self) -> LoopFound | None:
        """Return what the agent repeats now."""
        self._take_noted()
        now = [lane.repeat for lane in self._lanes.values() if lane.repeat is not None]
        return max(now, key=lambda repeat: repeat.weight).describe() if now else None

    @property
    def worst(self) -> LoopFound | None:
        """Return what the agent repeated most often in this session."""
        self._take_noted()
        return self._worst.describe() if self._worst is not None else None

    def clear(self) -> None:
        """Forget what was repeated, because something else is at work or came between."""
        self._take_noted()
        self._lanes.clear()

    @property
    def has_calls(self) -> bool:
        """Tell whether the events have told of a call that ended."""
        return self._has_calls or bool(self._noted)

    def is_wanted(self, line: bytes, at: float | None) -> bool:
        """Tell whether a line that nothing else needs has to be read; a result that is not is noted unread."""
        if not line.startswith(_TYPED_RESULT) and (
            line.startswith(_TYPED) or _RESULT.search(line, 0, _HEAD) is None
        ):
            return False
        found = _CALL_ID.search(line, 0, _HEAD) or _CALL_ID.search(line)
        if found is None:
            return True
        self._noted.append((found[1], line, at))
        if len(self._noted) >= _MOST_NOTED or len(line) > _LARGE:
            self._take_noted()
        return False

    def _take_noted(self) -> None:
        noted, self._noted = self._noted, []
        for call, line, at in noted:
            if self._reader.has_several and line.count(_BLOCK) > 1:
                event = event_in(line)
                self._end_calls(event or {}, at)
                continue
            name = call.decode(errors="replace")
            begun = self._reader.take_begun(name)
            if begun is None:
                continue
            lane = self._lanes.get(begun.lane) or self._lane(begun.lane)
            if begun.input.get("run_in_background") is True:
                lane.clear()
                continue
            self._effort.left += 128 + len(line) // 64
            if len(line) > _LARGE:
                self._drop_large(lane)
            self._add(lane, _Done(begun.tool, begun.input, at, line, begun=begun, name=name))

    def _drop_large(self, lane: "_Lane") -> None:
        # Only of the agent that has the newest one large results are kept, so that the memory is bounded.
        for other in self._lanes.values():
            for done in (other.last, other.before):
                if done is not None and other is not lane and len(done.line or b"") > _LARGE:
                    done.line = None

    def take(self, event: Event, at: float | None = None) -> None:
        """Read one event; `at` is when it came, in seconds of any clock."""
        kind = event.get("type")
        if self._noted:
            self._take_noted()
        if kind == "assistant":
            self._take_blocks(event)
            return
        if not self._piece and (not isinstance(kind, str) or kind not in _TELLING):
            return
        if kind == "item.completed" and self._take_item(part_of(event, "item"), at):
            return
        message, is_in_pieces = self._message_in(event, kind)
        if message:
            self._add_message(self._lane(lane_of(event)), message, is_in_pieces=is_in_pieces)
        if _is_new_prompt(event, kind):
            self.clear()
        else:
            self._end_calls(event, at)

    def _take_blocks(self, event: Event) -> None:
        # What Claude Code and Qwen Code say and call: most of what they print.
        parent = event.get("parent_tool_use_id")
        name = word_in(parent) if parent else ""
        message = part_of(event, "message")
        texts = []
        for block in parts_of(message, "content"):
            if block.get("type") == "tool_use":
                self._reader.begin_asked(
                    block.get("id"), block.get("name"), block.get("input"), name
                )
            elif "text" in block:
                texts.append(text_of(block["text"]))
        # An error of the program may look like a message.
        if texts and not event.get("error") and message.get("model") != "<synthetic>":
            lane = self._lanes.get(name) or self._lane(name)
            text = texts[0] if len(texts) == 1 else " ".join(texts)
            if lane.message is None:
                # Mostly a call follows, and then nothing has to be compared.
                lane.message, lane.messages = text, 1
            else:
                self._add_message(lane, text, is_in_pieces=False)

    def _take_item(self, item: Event, at: float | None) -> bool:
        # What Codex says and runs: most of what it prints.
        kind = item.get("type")
        if kind == "agent_message":
            self._add_message(self._lane(""), text_of(item.get("text")), is_in_pieces=False)
        elif kind == "command_execution":
            self._effort.left += 128
            given = {"command": text_of(item.get("command"))}
            self._add(self._lane(""), _Done("shell", given, at, None, item=item))
        return kind in ("agent_message", "command_execution")

    def _end_calls(self, event: Event, at: float | None) -> None:
        for ended in self._reader.end_calls(event):
            self._effort.left += 128
            begun = ended.begun
            lane = self._lane(begun.lane)
            if event.get("type") == "system":  # Something in the background has ended.
                lane.clear()
            else:
                stamp = event.get("timestamp")
                done = _Done(begun.tool, begun.input, at, None, begun=begun, ended=ended)
                done.stamp = stamp
                self._add(lane, done)

    def take_call(self, ended: EndedCall, at: float, *, in_background: bool) -> None:
        """Take in a call that something other than an event tells of; `at` is when it ended, in seconds of any clock."""
        self._effort.left += 128
        begun = ended.begun
        lane = self._lane(begun.lane)
        if in_background:
            lane.clear()
        else:
            self._add(lane, _Done(begun.tool, begun.input, at, None, begun=begun, ended=ended))

    def take_message(self, message: str, lane: str) -> None:
        self._add_message(self._lane(lane), message, is_in_pieces=False)

    def _lane(self, name: str) -> "_Lane":
        found = self._lanes.get(name)
        if found is None:
            while len(self._lanes) >= _MOST_LANES:
                del self._lanes[next(iter(self._lanes))]
            found = self._lanes[name] = _Lane()
        return found

    def _message_in(self, event: Event, kind: object) -> tuple[str, bool]:
        """Return the message of the agent that this event has or completes, and whether it came in pieces."""
        text = text_of(event.get("content"))
        is_said = kind == "message" and event.get("role") == "assistant"
        if is_said and event.get("delta"):
            self._piece, self._is_in_pieces = (self._piece + text)[:LONGEST_MESSAGE], True
            return "", False
        before = self._piece, self._is_in_pieces
        self._piece, self._is_in_pieces = text if is_said else "", False
        return before if before[0] or is_said else (_whole_message(event, kind), False)

    def _add_message(self, lane: "_Lane", message: str, *, is_in_pieces: bool) -> None:
        if not is_in_pieces and lane.message is None:
            # Mostly a call follows, and then nothing has to be compared.
            lane.message, lane.messages = message, 1
            return
        letters = _letters(message)
        unit, times = _repeated_unit(letters) if is_in_pieces else (letters, 1)
        if not unit:
            return
        before = _letters(lane.message or "")
        lane.messages = lane.messages + times if unit == before else times
        lane.message = unit
        if lane.messages >= _LEAST_MESSAGES and not self._has_child():
            self._note(lane, _Repeat("same_message", lane.messages, (), message.strip()))

    def _add(self, lane: "_Lane", done: "_Done") -> None:
        self._has_calls = True
        lane.messages, lane.message = 0, None
        if done.tool.casefold() in _NOTES:
            return
        last, before, lane.repeat = lane.last, lane.before, None
        lane.before, lane.last = last, done
        if last is None:
            return
        try:
            if done.may_repeat(last) or (before is not None and done.may_repeat(before)):
                self._compare(lane, done, last, before)
            else:
                lane.run, lane.turns = 1, 0
        except RecursionError:  # Values that are nested too deep to be compared.
            lane.clear()

    def _compare(self, lane: "_Lane", done: "_Done", last: "_Done", before: "_Done | None") -> None:
        again = done.may_repeat(last) and self._is_same(done, last)
        in_turn = (
            not again
            and before is not None
            and done.may_repeat(before)
            and self._is_same(done, before)
            and not _is_same_call(last.begun, done.begun)
        )
        lane.run = lane.run + 1 if again else 1
        lane.turns = lane.turns + 1 if in_turn else 0
        if not (again or in_turn):
            return
        if _is_apart(last, done) or self._has_child():
            lane.run, lane.turns = 1, 0
        elif again:
            self._note_run(lane, done)
        else:
            self._note_turns(lane, last, done)

    def _note_run(self, lane: "_Lane", done: "_Done") -> None:
        if lane.run == _LEAST_CALLS:
            lane.is_healthy = done.waits or done.hides_its_change
        if lane.run >= _LEAST_CALLS and not lane.is_healthy:
            pattern: LoopPattern = "same_failure" if done.failed else "same_result"
            self._note(lane, _Repeat(pattern, lane.run, (done.begun,)))

    def _note_turns(self, lane: "_Lane", last: "_Done", done: "_Done") -> None:
        least = 2 * _LEAST_TURNS - 2
        if lane.turns == least:
            lane.is_healthy = any(one.waits or one.is_edit for one in (last, done))
        if lane.turns >= least and not lane.is_healthy:
            calls = (last.begun, done.begun)
            self._note(lane, _Repeat("two_calls", lane.turns // 2 + 1, calls))

    def _is_same(self, done: "_Done", other: "_Done") -> bool:
        """Tell whether two calls repeat each other."""
        if not _is_same_call(done.begun, other.begun):
            return False
        if done.has_same_text(other, self._effort):
            return True
        one, two = done.read(self._effort), other.read(self._effort)
        if one is None or two is None:
            return False
        if one.result == two.result and (one.failed, one.exit_code) == (two.failed, two.exit_code):
            return True
        if done.failed or other.failed:
            return done.failed and other.failed
        return _is_alike(one.result, two.result) and one.has_same_result(two)

    def _note(self, lane: "_Lane", repeat: "_Repeat") -> None:
        lane.repeat = repeat
        if self._worst is None or repeat.weight >= self._worst.weight:
            self._worst = repeat


class _Done:
    """A call that has ended; what its result is, and what the call was, is read when it may repeat another."""

    __slots__ = ("_begun", "at", "ended", "input", "item", "line", "name", "stamp", "text", "tool")

    def __init__(
        self,
        tool: str,
        given: Mapping[str, Any],
        at: float | None,
        line: bytes | None,
        *,
        begun: BegunCall | None = None,
        ended: EndedCall | None = None,
        item: Event | None = None,
        name: str = "",
    ) -> None:
        self.tool = tool
        self.input = given
        self.at = at
        self.line = line
        """The line with its result, until that is read."""
        self._begun = begun
        self.ended = ended
        self.item = item
        """What Codex prints of the call, until that is read."""
        self.name = name
        self.stamp: object = None
        """When it ended, as the event says it."""
        self.text = b""
        """The text of the result as it stands in the line, if it was looked for."""

    def may_repeat(self, other: "_Done") -> bool:
        """Tell whether this may be the same call, without looking at all of it."""
        if self.tool != other.tool:
            return False
        command = self.input.get("command")
        return command == other.input.get("command") and (
            command is not None or self.input == other.input
        )

    @property
    def begun(self) -> BegunCall:
        if self._begun is None:
            self._begun = BegunCall(self.tool, self.input, "")
        return self._begun

    def has_same_text(self, other: "_Done", effort: "_Effort") -> bool:
        """Tell whether the lines show the same result, without reading them."""
        if self.line is None or other.line is None:
            return False
        mine, its = (_TEXT.search(line, 0, _LONGEST_HEAD) for line in (self.line, other.line))
        if mine is None or its is None:
            return False
        if not other.text and effort.spend(len(other.line) // 2):
            other.text = _string_at(other.line, its.end())
        if not other.text or not self.line.startswith(other.text, mine.end()):
            return False
        self.text = other.text
        return _says_failed(self.line, mine.end(), self.text) == _says_failed(
            other.line, its.end(), other.text
        )

    def read(self, effort: "_Effort") -> EndedCall | None:
        """Return the call with its result; None if it cannot be read, or reading it would take too long."""
        line, item = self.line, self.item
        if item is not None:
            self.ended, self.item = next(codex_calls(item), None), None
        if self.ended is None and line is not None and effort.spend(len(line)):
            event = event_in(line)
            if event is not None:
                self.stamp = event.get("timestamp")
                reader = ToolCallReader()
                reader.begin(self.name, self.begun)
                self.ended = next(reader.end_calls(event), None)
        return self.ended

    @property
    def moment(self) -> float | None:
        if self.line is not None and self.ended is None:
            found = _STAMP.search(self.line, max(0, len(self.line) - _LONGEST_HEAD))
            found = found or _STAMP.search(self.line, 0, _LONGEST_HEAD)
            if found is not None:
                return _moment_of(found[1].decode(errors="replace"), self.at)
        return _moment_of(self.stamp, self.at)

    @property
    def failed(self) -> bool:
        if self.ended is None and self.line is not None:
            found = _TEXT.search(self.line, 0, _LONGEST_HEAD)
            if found is not None and self.text:
                return _says_failed(self.line, found.end(), self.text)
        return self.ended is not None and self.ended.read().failed

    @property
    def waits(self) -> bool:
        name = _CAMEL.sub("_", self.begun.tool.rpartition("__")[2]).casefold()
        command = self._call.command
        return bool(_WAITING_TOOL.fullmatch(name) or (command and _WAITING_COMMAND.search(command)))

    @property
    def is_edit(self) -> bool:
        return (self._call.edits or edits_code(self._call)) and not self.failed

    @property
    def hides_its_change(self) -> bool:
        # Some events name the file that was edited, and not what was written.
        return self.is_edit and set(self.begun.input) <= {"path"}

    @property
    def _call(self) -> ToolCall:
        return ToolCall("", self.begun.tool, self.begun.input, "", None, failed=False)


class _Repeat(NamedTuple):
    pattern: LoopPattern
    times: int
    calls: tuple[BegunCall, ...]
    message: str = ""

    @property
    def weight(self) -> int:
        return self.times * max(1, len(self.calls))

    def describe(self) -> LoopFound:
        shown = " / ".join(map(_describe_call, self.calls)) or self.message[: 2 * _LONGEST_SHOWN]
        line = fit_line(escape(" ".join(shown.split())), _LONGEST_SHOWN)
        return LoopFound(pattern=self.pattern, count=self.times, call=line)


@dataclass(slots=True)
class _Lane:
    """What the agent, or one of its subagents, did last."""

    last: _Done | None = None
    before: _Done | None = None
    run: int = 1
    """How many neighbouring calls up to the last are the same."""
    turns: int = 0
    """How many neighbouring calls up to the last are the same as the call before their neighbour."""
    message: str | None = None
    """The newest message, if no call came after it."""
    messages: int = 0
    repeat: _Repeat | None = None
    is_healthy: bool = False
    """Whether the calls that are repeated only wait, or edit: then they are no loop."""

    def clear(self) -> None:
        self.last = self.before = self.repeat = None
        self.run, self.turns, self.message, self.messages = 1, 0, None, 0


@dataclass(slots=True)
class _Effort:
    """How many bytes may be read only to compare results: a small part of the stream."""

    left: int = 16 * 1024 * 1024

    def spend(self, size: int) -> bool:
        if size > self.left:
            return False
        self.left -= size
        return True


def _string_at(line: bytes, start: int) -> bytes:
    found = _STRING.match(line, start)
    return found[0] if found is not None else b""


def _says_failed(line: bytes, start: int, text: bytes) -> bool:
    end = start + len(text)
    if _FAILED.search(line, 0, start) or _FAILED.search(line, end, end + _LONGEST_HEAD):
        return True
    return _FAILED_TEXT.search(text[:_LONGEST_HEAD]) is not None


def _is_alike(one: object, other: object) -> bool:
    # Results of other length differ in more than a time that was measured.
    if isinstance(one, str) and isinstance(other, str):
        return abs(len(one) - len(other)) < _LONGEST_TIME
    return type(one) is type(other)


def _is_apart(last: _Done, done: _Done) -> bool:
    # Then the agent looks again and again at something that takes its time.
    one, two = last.moment, done.moment
    return one is not None and two is not None and two - one >= _POLL_SECONDS


def _repeated_unit(letters: str) -> tuple[str, int]:
    # Messages that come in pieces have no end: the same one three times reads as one that says all three times.
    length = (letters + letters).find(letters, 1)
    if len(set(letters[:length])) < _LEAST_LETTERS:
        return letters, 1
    return letters[:length], len(letters) // length


def _letters(message: str) -> str:
    return "".join(message.split())


def _is_same_call(one: BegunCall, other: BegunCall) -> bool:
    if one.tool != other.tool:
        return False
    if one.input == other.input:
        return True
    command = one.input.get("command")
    if command is None or command != other.input.get("command"):
        return False
    return _without_remarks(one) == _without_remarks(other)


def _without_remarks(begun: BegunCall) -> Mapping[str, Any]:
    # What a command is for is said anew each time.
    return {name: given for name, given in begun.input.items() if name not in _SAID_OF_COMMANDS}


def _is_new_prompt(event: Event, kind: object) -> bool:
    """Tell whether a person said something, or the agent lost what it knew and begins anew."""
    match kind:
        case "user":
            # A reminder of the program itself is no word of a person.
            is_own = event.get("isSynthetic") is True or event.get("isMeta") is True
            content = part_of(event, "message").get("content")
            blocks = parts_of(part_of(event, "message"), "content")
            is_result = any(block.get("type") == "tool_result" for block in blocks)
            return bool(content) and not (is_own or is_result or lane_of(event))
        case "message":
            return event.get("role") == "user"
        case "user.message" | "turn.started":
            return not lane_of(event)
        case "system":
            return event.get("subtype") == "compact_boundary"
    return False


def _whole_message(event: Event, kind: object) -> str:
    match kind:
        case "assistant.message":
            return text_of(part_of(event, "data").get("content"))
        case "text":
            return text_of(part_of(event, "part").get("text"))
    return ""


def _moment_of(said: object, at: float | None) -> float | None:
    if isinstance(said, str) and len(said) < 40:
        with suppress(ValueError):
            return datetime.fromisoformat(said).timestamp()
    number = number_in(said)
    return number / 1000 if number is not None else at


def _describe_call(begun: BegunCall) -> str:
    call = ToolCall("", begun.tool, begun.input, "", None, failed=False)
    words = call.command or call.path or next(iter(begun.input.values()), "")
    if isinstance(words, dict | list):
        words = ""  # It may be nested deep.
    return f"{begun.tool} {fit_line(str(words)[: 2 * _LONGEST_SHOWN], _LONGEST_SHOWN)}".strip()
