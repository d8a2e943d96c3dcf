"""Holds the end of an agent's turn back in its own event stream, while helpers of the agent are at work."""

from guard.core.gate.gate import MAX_HOLD_SECONDS, Gate, LetGo, StreamHeld
from guard.core.gate.line_meaning import LineMeaning, StreamReader, TurnUsage
from guard.core.gate.outcome import Reason, StreamOutcome

__all__ = [
    "AGENTS",
    "MAX_HOLD_SECONDS",
    "Gate",
    "LetGo",
    "LineMeaning",
    "Reason",
    "StreamHeld",
    "StreamOutcome",
    "StreamReader",
    "TurnUsage",
    "stream_reader",
]

AGENTS = ("claude", "codex", "gemini", "qwen", "opencode", "copilot")


def stream_reader(agent: str) -> StreamReader:
    """A reader of this agent's event stream, at its beginning."""
    from guard.core.gate.claude import ClaudeStream
    from guard.core.gate.codex import CodexStream
    from guard.core.gate.copilot import CopilotStream
    from guard.core.gate.gemini import GeminiStream
    from guard.core.gate.opencode import OpenCodeStream
    from guard.core.gate.qwen import QwenStream

    readers: tuple[type[StreamReader], ...] = (
        ClaudeStream,
        CodexStream,
        GeminiStream,
        QwenStream,
        OpenCodeStream,
        CopilotStream,
    )
    return {reader.name: reader for reader in readers}[agent]()
