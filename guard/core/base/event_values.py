"""Values in an event of an agent, none of which is trusted to be there, or to be what it should be."""

from collections.abc import Mapping
from typing import Any

Event = Mapping[str, Any]
LONGEST_MESSAGE = 64 * 1024


def text_of(value: object) -> str:
    """A text of bounded length; nothing if it is none."""
    return value[:LONGEST_MESSAGE] if isinstance(value, str) else ""


def word_in(value: object) -> str:
    """A name or an id: like a text, but short."""
    return text_of(value)[:200]


def part_of(event: Event, *names: str) -> Event:
    """The object at this place of an event; an empty one if there is none."""
    for name in names:
        inner = event.get(name)
        event = inner if isinstance(inner, Mapping) else {}
    return event


def parts_of(event: Event, name: str) -> list[Event]:
    """The objects in the list of this name."""
    inner = event.get(name)
    return [part for part in inner if isinstance(part, Mapping)] if isinstance(inner, list) else []


def number_in(value: object) -> float | None:
    """A number of ordinary size, and not merely true or false."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e18:
        return None
    return float(value)


def status_in(value: object) -> int | None:
    """An HTTP status."""
    return value if isinstance(value, int) and 100 <= value <= 599 else None
