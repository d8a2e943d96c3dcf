"""The agent CLIs, and how to read values from their events, each of which may be missing or of a wrong type."""

from collections.abc import Mapping
from typing import Any, Literal

AgentCli = Literal["claude", "codex", "gemini", "qwen", "opencode", "copilot", "command"]
Event = Mapping[str, Any]
LONGEST_MESSAGE = 64 * 1024
_LONGEST_NAME = 200
_MOST_COUNTED = 10**18


def text_of(value: object) -> str:
    """Return a text of bounded length; an empty one if the value is no text."""
    return value[:LONGEST_MESSAGE] if isinstance(value, str) else ""


def word_in(value: object) -> str:
    return text_of(value)[:_LONGEST_NAME]


def part_of(event: Event, *names: str) -> Event:
    """Return the object at this path of an event; an empty one if there is none."""
    for name in names:
        inner = event.get(name)
        event = inner if isinstance(inner, dict) else {}
    return event


def parts_of(event: Event, name: str) -> list[Event]:
    inner = event.get(name)
    return [part for part in inner if isinstance(part, dict)] if isinstance(inner, list) else []


def number_in(value: object) -> float | None:
    """Return a number of ordinary size, or None; a bool is not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e18:
        return None
    return float(value)


def status_in(value: object) -> int | None:
    return value if isinstance(value, int) and 100 <= value <= 599 else None


def name_in(value: object) -> str:
    """Return a name on one line, shortened; empty if the value is no text."""
    words = text_of(value).encode(errors="replace").decode().split()
    return " ".join(words)[:_LONGEST_NAME]


def member_in(value: object) -> str | None:
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_NAME:
        return None
    return value.encode(errors="replace").decode()


def count_in(value: object) -> int:
    if type(value) is int and 0 <= value < _MOST_COUNTED:
        return value
    number = number_in(value)
    return int(number) if number is not None and number > 0 else 0
