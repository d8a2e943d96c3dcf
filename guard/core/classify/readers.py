"""Which reader is for which agent."""

from guard.core.classify.base import Format
from guard.core.classify.claude import ClaudeFormat, QwenFormat
from guard.core.classify.codex import CodexFormat
from guard.core.classify.copilot import CopilotFormat
from guard.core.classify.errors import ReportedError
from guard.core.classify.gemini import GeminiFormat
from guard.core.classify.opencode import OpenCodeFormat
from guard.core.classify.stream_reader import OutputReader

_FORMATS: dict[str, type[Format]] = {
    one.name: one
    for one in (ClaudeFormat, QwenFormat, CodexFormat, GeminiFormat, OpenCodeFormat, CopilotFormat)
}
"""In the order in which they are tried: Qwen's events are Claude's, but the first has a name on it that Claude leaves alone."""


def choose(agent: str | None) -> OutputReader:
    """The reader for an agent, or for all of them."""
    if agent == "command":
        return OutputReader((), ReportedError("ok", "completed"))
    if agent is None:
        return OutputReader(tuple(_FORMATS.values()), ReportedError("unknown", "no_output"))
    if agent not in _FORMATS:
        raise ValueError(f"{agent!r} is no agent whose output can be read")
    return OutputReader((_FORMATS[agent],), ReportedError("crash", "no_result"))
