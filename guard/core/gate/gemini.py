"""Gemini CLI's `stream-json`: one result ends it, and of helpers in the background it tells nothing."""

from guard.core.base.event_values import Event, part_of
from guard.core.gate.line_meaning import NOTHING, LineMeaning, StreamReader, TurnUsage, count_in


class GeminiStream(StreamReader):
    name = "gemini"
    telling = (b'"init"', b'"result"')
    ending = (b'"result"',)
    beginning = (b'"message"', b'"tool_use"')

    def read(self, event: Event) -> LineMeaning:
        match event.get("type"):
            case "init":
                self.know(event.get("session_id"))
            case "message" | "tool_use":
                return LineMeaning(begins_turn=True)
            case "result":
                usage = TurnUsage(count_in(part_of(event, "stats").get("input_tokens")))
                return LineMeaning(end_of_turn=True, usage=usage)
        return NOTHING
