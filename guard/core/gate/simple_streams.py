"""Read the streams of Gemini CLI (`stream-json`), Qwen Code (`stream-json`) and OpenCode (`run --format json`)."""

from guard.core.base.agent_json import Event, count_in, part_of
from guard.core.gate.claude import ClaudeStream
from guard.core.gate.reader import NOTHING, LineMeaning, StreamReader, TurnUsage


class GeminiStream(StreamReader):
    """One result ends the stream; it reports nothing about helpers in the background."""

    name = "gemini"
    words = (b'"init"', b'"result"')
    ending = (b'"result"',)
    beginning = (b'"message"', b'"tool_use"')

    def read(self, event: Event) -> LineMeaning:
        match event.get("type"):
            case "init":
                self.note_session(event.get("session_id"))
            case "message" | "tool_use":
                return LineMeaning(begins_turn=True)
            case "result":
                usage = TurnUsage(count_in(part_of(event, "stats").get("input_tokens")))
                return LineMeaning(end_of_turn=True, usage=usage)
        return NOTHING


class QwenStream(ClaudeStream):
    """Claude's events with other tool names; the stream reports nothing about shells in the background."""

    name = "qwen"
    spawning = ("agent", "task")

    def _usage(self, event: Event) -> TurnUsage:
        # Its input tokens include the cached ones.
        return TurnUsage(count_in(part_of(event, "usage").get("input_tokens")))


_FINISHED = ("stop", "length", "content-filter")


class OpenCodeStream(StreamReader):
    """There is no closing line: the step that stops ends the turn, and each step has its own tokens.

    A subagent runs inside the tool call that starts it, and has a session of its own.
    """

    name = "opencode"
    words = (b'"step_start"', b'"step_finish"')
    ending = (b'"step_finish"',)
    beginning = (b'"step_start"',)

    def __init__(self) -> None:
        super().__init__()
        self._tokens = 0
        """The input tokens of the steps of this turn."""

    def read(self, event: Event) -> LineMeaning:
        self.note_session(event.get("sessionID"))
        if event.get("sessionID") != self.session:
            return NOTHING
        match event.get("type"):
            case "step_start":
                return LineMeaning(begins_turn=True)
            case "step_finish":
                return self._step(part_of(event, "part"))
        return NOTHING

    def _step(self, part: Event) -> LineMeaning:
        tokens, cache = part_of(part, "tokens"), part_of(part, "tokens", "cache")
        read = (tokens.get("input"), cache.get("read"), cache.get("write"))
        self._tokens += sum(map(count_in, read))
        if part.get("reason") not in _FINISHED:
            return NOTHING
        usage, self._tokens = TurnUsage(self._tokens), 0
        return LineMeaning(end_of_turn=True, usage=usage)
