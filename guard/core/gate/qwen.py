"""Qwen Code's `stream-json`: Claude's events, with tools of its own names; shells in the background are not told of."""

from guard.core.base.event_values import Event, part_of
from guard.core.gate.claude import ClaudeStream
from guard.core.gate.line_meaning import TurnUsage, count_in


class QwenStream(ClaudeStream):
    name = "qwen"
    spawning = ("agent", "task")

    def _usage(self, event: Event) -> TurnUsage:
        """Its input tokens have the cached ones among them."""
        return TurnUsage(count_in(part_of(event, "usage").get("input_tokens")))
