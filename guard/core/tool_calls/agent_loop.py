"""What an agent repeats without getting on."""

from typing import Literal

from guard.core.base.fields import Count, Frozen, Line

LoopPattern = Literal["same_result", "same_failure", "two_calls", "same_message"]

_WORDS: dict[LoopPattern, str] = {
    "same_result": "the same call with the same result, {} times",
    "same_failure": "the same call, which fails, {} times",
    "two_calls": "the same two calls in turn, {} times",
    "same_message": "the same message without a call, {} times",
}


class LoopFound(Frozen):
    """What an agent repeats, and how often it did."""

    pattern: LoopPattern
    count: Count
    """How many calls, turns of the two calls, or messages were the same."""
    call: Line
    """The call, the two calls, or the beginning of the message."""

    @property
    def calls(self) -> int:
        """Return how many calls, or messages, were made in the loop."""
        return self.count * (2 if self.pattern == "two_calls" else 1)

    @property
    def sentence(self) -> str:
        return f"{_WORDS[self.pattern].format(self.count)}: {self.call}"
