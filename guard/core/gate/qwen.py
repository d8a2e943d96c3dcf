"""Qwen Code's `stream-json`: Claude's events, with tools of its own names; shells in the background are not told of."""

from guard.core.base.event_values import Event, part_of
from guard.core.gate.claude import Claude
from guard.core.gate.line_meaning import Usage, count_in


class Qwen(Claude):
    name = "qwen"
    spawning = ("agent", "task")

    def _usage(self, event: Event) -> Usage:
        """Its input tokens have the cached ones among them."""
        return Usage(count_in(part_of(event, "usage").get("input_tokens")))
