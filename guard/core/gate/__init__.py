"""Hold the end of an agent's turn back in its own event stream while helpers of the agent are at work."""

from guard.core.gate.reader import StreamReader

AGENTS = ("claude", "codex", "gemini", "qwen", "opencode", "copilot")


def stream_reader(agent: str) -> StreamReader:
    from guard.core.gate.claude import ClaudeStream
    from guard.core.gate.codex import CodexStream
    from guard.core.gate.copilot import CopilotStream
    from guard.core.gate.simple_streams import GeminiStream, OpenCodeStream, QwenStream

    readers: tuple[type[StreamReader], ...] = (
        ClaudeStream,
        CodexStream,
        GeminiStream,
        QwenStream,
        OpenCodeStream,
        CopilotStream,
    )
    return {reader.name: reader for reader in readers}[agent]()
