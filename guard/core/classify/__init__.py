"""What an agent's output and exit status mean; the readers of the formats are loaded when one is asked for."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

from guard.core.classify.outcome import MEANINGS, Classification, Outcome, status_of

if TYPE_CHECKING:
    from guard.core.classify.stream_reader import OutputReader

AGENTS = ("claude", "codex", "gemini", "qwen", "opencode", "copilot", "command")

__all__ = [
    "AGENTS",
    "MEANINGS",
    "Classification",
    "Outcome",
    "OutputReader",
    "classify",
    "reader",
    "status_of",
]


def __getattr__(name: str) -> Any:
    if name == "OutputReader":
        from guard.core.classify.stream_reader import OutputReader

        return OutputReader
    raise AttributeError(name)


def reader(agent: str | None) -> "OutputReader":
    """A reader for an agent's output; for None the first lines tell which agent it is."""
    from guard.core.classify.readers import choose

    return choose(agent)


def classify(
    stdout: bytes, stderr: bytes, agent: str | None, exit_code: int | None, now: datetime
) -> Classification:
    """What this output, all of it, means."""
    one = reader(agent)
    one.feed(stdout)
    one.feed_error(stderr)
    return one.finish(exit_code, now)
