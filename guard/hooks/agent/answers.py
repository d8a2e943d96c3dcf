"""What the agents' programs read from a hook: nothing, a reason to go on, or a message for the user; in one line of ASCII."""

import json

_SHOW_MESSAGES = ("claude", "codex", "gemini", "qwen")
NOTHING = ""
"""To every program it means: go on, or stop, as you were about to."""


def block(agent: str, reason: str) -> str:
    """The agent is to go on, for this reason. OpenCode cannot be told."""
    return NOTHING if agent == "opencode" else _line({"decision": "block", "reason": reason})


def message(agent: str, text: str) -> str:
    """The session stops, and its user is told something, where the program shows it."""
    shown = bool(text) and agent in _SHOW_MESSAGES
    return _line({"systemMessage": text.replace("\n", " ")}) if shown else NOTHING


def _line(document: dict[str, str]) -> str:
    return json.dumps(document, ensure_ascii=True)
