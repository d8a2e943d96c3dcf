"""Holds the end of an agent's turn back in its own event stream, while helpers of the agent are at work."""

from guard.core.gate.gate import MAX_HOLD_SECONDS, Gate, Held, LetGo
from guard.core.gate.line_meaning import Meaning, StreamReader, Usage
from guard.core.gate.outcome import Ended, Reason

__all__ = [
    "AGENTS",
    "MAX_HOLD_SECONDS",
    "Ended",
    "Gate",
    "Held",
    "LetGo",
    "Meaning",
    "Reason",
    "StreamReader",
    "Usage",
    "stream_reader",
]

AGENTS = ("claude", "codex", "gemini", "qwen", "opencode", "copilot")


def stream_reader(agent: str) -> StreamReader:
    """A reader of this agent's event stream, at its beginning."""
    from guard.core.gate.claude import Claude
    from guard.core.gate.codex import Codex
    from guard.core.gate.copilot import Copilot
    from guard.core.gate.gemini import Gemini
    from guard.core.gate.opencode import OpenCode
    from guard.core.gate.qwen import Qwen

    readers: tuple[type[StreamReader], ...] = (Claude, Codex, Gemini, Qwen, OpenCode, Copilot)
    return {reader.name: reader for reader in readers}[agent]()
