"""Classify an agent's output and exit status; the readers of the formats are loaded on first use."""

from datetime import datetime
from typing import TYPE_CHECKING

from guard.core.classify.outcome import MEANINGS, Classification, Outcome, status_of

if TYPE_CHECKING:
    from guard.core.classify.stream_reader import OutputReader

AGENTS = ("claude", "codex", "gemini", "qwen", "opencode", "copilot", "command")

__all__ = [
    "AGENTS",
    "MEANINGS",
    "Classification",
    "Outcome",
    "classify",
    "make_reader",
    "status_of",
]


def make_reader(agent: str | None) -> "OutputReader":
    """Return a reader for an agent's output; with None, the reader recognises the agent by its first events."""
    from guard.core.classify.stream_reader import choose_reader

    return choose_reader(agent)


def classify(
    stdout: bytes, stderr: bytes, agent: str | None, exit_code: int | None, now: datetime
) -> Classification:
    reader = make_reader(agent)
    reader.feed(stdout)
    reader.feed_error(stderr)
    return reader.finish(exit_code, now)
