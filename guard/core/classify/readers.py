"""Which reader is for which agent."""

from guard.core.classify.base import Format
from guard.core.classify.claude import Claude, Qwen
from guard.core.classify.codex import Codex
from guard.core.classify.copilot import Copilot
from guard.core.classify.errors import Trouble
from guard.core.classify.gemini import Gemini
from guard.core.classify.opencode import OpenCode
from guard.core.classify.stream_reader import Reader

_FORMATS: dict[str, type[Format]] = {
    one.name: one for one in (Claude, Qwen, Codex, Gemini, OpenCode, Copilot)
}
"""In the order in which they are tried: Qwen's events are Claude's, but the first has a name on it that Claude leaves alone."""


def choose(agent: str | None) -> Reader:
    """The reader for an agent, or for all of them."""
    if agent == "command":
        return Reader((), Trouble("ok", "completed"))
    if agent is None:
        return Reader(tuple(_FORMATS.values()), Trouble("unknown", "no_output"))
    if agent not in _FORMATS:
        raise ValueError(f"{agent!r} is no agent whose output can be read")
    return Reader((_FORMATS[agent],), Trouble("crash", "no_result"))
