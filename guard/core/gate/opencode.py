"""OpenCode's `run --format json`: no closing line, so the step that stops ends the turn; each step has its own tokens.

A subagent runs inside the tool call that starts it, and has a session of its own.
"""

from guard.core.base.event_values import Event, part_of
from guard.core.gate.line_meaning import NOTHING, LineMeaning, StreamReader, TurnUsage, count_in

_FINISHED = ("stop", "length", "content-filter")


class OpenCodeStream(StreamReader):
    name = "opencode"
    telling = (b'"step_start"', b'"step_finish"')
    ending = (b'"step_finish"',)
    beginning = (b'"step_start"',)

    def __init__(self) -> None:
        super().__init__()
        self._tokens = 0
        """What the steps of this turn have read."""

    def read(self, event: Event) -> LineMeaning:
        self.know(event.get("sessionID"))
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
