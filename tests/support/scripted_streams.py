"""Write one script of a session as the event stream of each agent CLI."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

_BEGIN = datetime(2026, 11, 16, 1, 0, tzinfo=UTC)
Event = dict[str, Any]


@dataclass(frozen=True)
class Call:
    tool: str
    """`shell`, `read`, `edit`, or the name of another tool, which every CLI calls the same."""
    input: Event
    output: str = "ok"
    failed: bool = False
    helper: str = ""
    """The call that started the subagent whose call this is."""


@dataclass(frozen=True)
class Say:
    text: str


@dataclass(frozen=True)
class Person:
    text: str


@dataclass(frozen=True)
class Later:
    seconds: float


@dataclass(frozen=True)
class Spawn:
    """A helper begins to work in the background, or ends."""

    name: str
    ends: bool = False


Step = Call | Say | Person | Later | Spawn


def shell(command: str, output: str = "ok", *, failed: bool = False, helper: str = "") -> Call:
    return Call("shell", {"command": command}, output, failed, helper)


def read(path: str, output: str = "text", *, helper: str = "") -> Call:
    return Call("read", {"file_path": path}, output, helper=helper)


def edit(path: str, new: str = "b", *, failed: bool = False) -> Call:
    given = {"file_path": path, "old_string": "a", "new_string": new}
    return Call("edit", given, "no match" if failed else "edited", failed)


@dataclass
class _Writer:
    tools: Event = field(default_factory=dict)
    number: int = 0
    at: datetime = _BEGIN

    def stamp(self) -> str:
        return self.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def tool(self, call: Call) -> str:
        return str(self.tools.get(call.tool, call.tool))

    def opening(self) -> Iterator[Event]:
        raise NotImplementedError

    def say(self, text: str) -> Iterator[Event]:
        raise NotImplementedError

    def person(self, words: str) -> Iterator[Event]:
        raise NotImplementedError

    def call(self, call: Call) -> Iterator[Event]:
        raise NotImplementedError

    def spawn(self, step: Spawn) -> Iterator[Event]:
        raise NotImplementedError

    def closing(self) -> Iterator[Event]:
        raise NotImplementedError


class _Claude(_Writer):
    extra: Event = {"claude_code_version": "2.1.325"}
    last: Event = {"total_cost_usd": 0.01}

    def _event(self, kind: str, parent: str = "", **fields: Any) -> Event:
        known = {
            "parent_tool_use_id": parent or None,
            "session_id": "s1",
            "uuid": f"u{self.number}",
        }
        return {"type": kind, **fields, **known, "timestamp": self.stamp()}

    def _assistant(self, block: Event, parent: str = "") -> Event:
        message = {"role": "assistant", "model": "m", "content": [block], "usage": {}}
        return self._event("assistant", parent, message=message)

    def opening(self) -> Iterator[Event]:
        yield {"type": "system", "subtype": "init", "session_id": "s1", "model": "m", **self.extra}

    def say(self, text: str) -> Iterator[Event]:
        yield self._assistant({"type": "text", "text": text})

    def person(self, words: str) -> Iterator[Event]:
        content = [{"type": "text", "text": words}]
        yield self._event("user", message={"role": "user", "content": content})

    def call(self, call: Call) -> Iterator[Event]:
        name = f"toolu_{self.number}"
        shown = {**call.input, **({"description": f"try {name}"} if call.tool == "shell" else {})}
        use = {"type": "tool_use", "id": name, "name": self.tool(call), "input": shown}
        yield self._assistant(use, call.helper)
        result = {"type": "tool_result", "tool_use_id": name, "content": call.output}
        content = [{**result, "is_error": call.failed}]
        told = {"stdout": call.output, "durationMs": self.number * 37}
        message = {"role": "user", "content": content}
        yield self._event("user", call.helper, message=message, tool_use_result=told)

    def spawn(self, step: Spawn) -> Iterator[Event]:
        known = {"task_id": step.name, "session_id": "s1"}
        if step.ends:
            ended = {"type": "system", "subtype": "task_notification", "status": "completed"}
            yield {**ended, **known}
            return
        given = {"description": step.name, "prompt": "p", "run_in_background": True}
        use = {"type": "tool_use", "id": step.name, "name": self.tools["agent"], "input": given}
        yield self._assistant(use)
        started = {"type": "system", "subtype": "task_started", "tool_use_id": step.name}
        yield {**started, **known, "is_backgrounded": True, "task_type": "local_agent"}

    def closing(self) -> Iterator[Event]:
        fields: Event = {"subtype": "success", "is_error": False, "result": "done", "num_turns": 3}
        usage = {"input_tokens": 10, "output_tokens": 5}
        yield self._event("result", **fields, usage=usage, **self.last)


class _Qwen(_Claude):
    extra: Event = {"qwen_code_version": "0.24.4"}
    last: Event = {}


class _Codex(_Writer):
    # It has no event for what a person says: a turn begins.
    def opening(self) -> Iterator[Event]:
        yield {"type": "thread.started", "thread_id": "t1"}
        yield {"type": "turn.started"}

    def _item(self, kind: str, **fields: Any) -> Event:
        return {"type": "item.completed", "item": {"id": f"i{self.number}", "type": kind, **fields}}

    def say(self, text: str) -> Iterator[Event]:
        yield self._item("agent_message", text=text)

    def person(self, words: str) -> Iterator[Event]:  # noqa: ARG002
        yield {"type": "turn.completed", "usage": {}}
        yield {"type": "turn.started"}

    def call(self, call: Call) -> Iterator[Event]:
        status = "failed" if call.failed else "completed"
        if call.tool == "shell":
            words = {"command": f"/bin/bash -lc {call.input['command']!r}"}
            code = 1 if call.failed else 0
            yield {
                "type": "item.started",
                "item": {"id": f"i{self.number}", "type": "command_execution", **words},
            }
            yield self._item(
                "command_execution", **words, aggregated_output=call.output, exit_code=code
            )
        elif call.tool == "edit":
            change = {"path": call.input["file_path"], "kind": "update"}
            yield self._item("file_change", changes=[change], status=status)
        else:
            content = {"content": [{"type": "text", "text": call.output}]}
            yield self._item(
                "mcp_tool_call", server="s", tool=call.tool, arguments=call.input, result=content,
                status=status,
            )  # fmt: skip

    def spawn(self, step: Spawn) -> Iterator[Event]:
        state = {"c1": {"status": "completed" if step.ends else "running", "message": None}}
        tool = "wait" if step.ends else "spawn_agent"
        fields = {"sender_thread_id": "t1", "receiver_thread_ids": ["c1"], "prompt": "p"}
        yield self._item(
            "collab_tool_call", tool=tool, **fields, agents_states=state, status="completed"
        )

    def closing(self) -> Iterator[Event]:
        yield {"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 1}}


class _Gemini(_Writer):
    def _event(self, kind: str, **fields: Any) -> Event:
        return {"type": kind, "timestamp": self.stamp(), **fields}

    def opening(self) -> Iterator[Event]:
        yield self._event("init", session_id="g1", model="m")
        yield self._event("message", role="user", content="work")

    def say(self, text: str) -> Iterator[Event]:
        half = len(text) // 2
        for piece in (text[:half], text[half:]):
            yield self._event("message", role="assistant", content=piece, delta=True)

    def person(self, words: str) -> Iterator[Event]:
        yield self._event("message", role="user", content=words)

    def call(self, call: Call) -> Iterator[Event]:
        name = f"{call.tool}-{self.number}"
        yield self._event(
            "tool_use", tool_name=self.tool(call), tool_id=name, parameters=call.input
        )
        status = "error" if call.failed else "success"
        yield self._event("tool_result", tool_id=name, status=status, output=call.output)

    def closing(self) -> Iterator[Event]:
        yield self._event("result", status="success", stats={})


class _OpenCode(_Writer):
    def _event(self, kind: str, session: str = "main", **part: Any) -> Event:
        at = int(self.at.timestamp() * 1000)
        return {"type": kind, "timestamp": at, "sessionID": session or "main", "part": part}

    def opening(self) -> Iterator[Event]:
        yield self._event("step_start", type="step-start")

    def say(self, text: str) -> Iterator[Event]:
        yield self._event("text", type="text", text=text)

    def call(self, call: Call) -> Iterator[Event]:
        status = {"status": "error", "error": call.output} if call.failed else {}
        state = {"status": "completed", "input": call.input, "output": call.output, **status}
        yield self._event(
            "tool_use", call.helper, tool=self.tool(call), callID=f"c{self.number}", state=state
        )
        yield self._event("step_finish", reason="tool-calls", tokens={}, cost=0)

    def closing(self) -> Iterator[Event]:
        yield self._event("step_finish", reason="stop", tokens={}, cost=0)


class _Copilot(_Writer):
    def _event(self, kind: str, **data: Any) -> Event:
        return {"type": kind, "data": data, "id": f"e{self.number}", "timestamp": self.stamp()}

    def opening(self) -> Iterator[Event]:
        yield self._event("user.message", content="work")

    def say(self, text: str) -> Iterator[Event]:
        yield self._event("assistant.message_delta", deltaContent=text)
        yield self._event("assistant.message", content=text, toolRequests=[])

    def person(self, words: str) -> Iterator[Event]:
        yield self._event("user.message", content=words)

    def call(self, call: Call) -> Iterator[Event]:
        name, parent = f"call_{self.number}", {"parentToolCallId": call.helper}
        parent = parent if call.helper else {}
        known = {"toolCallId": name, **parent}
        request = {"toolCallId": name, "name": self.tool(call), "arguments": call.input}
        yield self._event("assistant.message", content="", toolRequests=[request], **parent)
        yield self._event(
            "tool.execution_start", toolName=self.tool(call), arguments=call.input, **known
        )
        code = {"shellExecution": {"exitCode": 1 if call.failed else 0}}
        told = code if call.tool == "shell" else {}
        yield self._event(
            "tool.execution_complete", **known, success=not call.failed or call.tool == "shell",
            result={"content": call.output}, **told,
        )  # fmt: skip

    def closing(self) -> Iterator[Event]:
        yield {"type": "result", "sessionId": "c1", "exitCode": 0, "usage": {}}


WRITERS: dict[str, Callable[[], _Writer]] = {
    "claude": lambda: _Claude({"shell": "Bash", "read": "Read", "edit": "Edit", "agent": "Agent"}),
    "qwen": lambda: _Qwen(
        {"shell": "run_shell_command", "read": "read_file", "edit": "edit", "agent": "agent"}
    ),
    "codex": _Codex,
    "gemini": lambda: _Gemini(
        {"shell": "run_shell_command", "read": "read_file", "edit": "replace"}
    ),
    "opencode": lambda: _OpenCode({"shell": "bash"}),
    "copilot": lambda: _Copilot({"shell": "bash", "read": "view", "edit": "edit"}),
}
TELLS_OF_HELPERS = ("claude", "qwen", "codex")
"""The CLIs in whose streams a helper in the background can be written here."""
TELLS_OF_PERSONS = ("claude", "qwen", "codex", "gemini", "copilot")


def write_stream(agent: str, script: list[Step]) -> list[tuple[float, bytes]]:
    """Return the lines of the stream, each with the second at which it comes."""
    writer = WRITERS[agent]()
    lines = [(0.0, event) for event in writer.opening()]
    for step in script:
        writer.number += 1
        writer.at += timedelta(seconds=step.seconds if isinstance(step, Later) else 1)
        passed = (writer.at - _BEGIN).total_seconds()
        lines += [(passed, event) for event in _events(writer, step)]
    lines += [(lines[-1][0], event) for event in writer.closing()]
    return [(at, json.dumps(event).encode() + b"\n") for at, event in lines]


def _events(writer: _Writer, step: Step) -> Iterator[Event]:
    match step:
        case Call():
            return writer.call(step)
        case Say():
            return writer.say(step.text)
        case Person():
            return writer.person(step.text)
        case Spawn():
            return writer.spawn(step)
        case Later():
            return iter(())
