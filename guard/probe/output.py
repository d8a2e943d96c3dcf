"""A CLI's own JSON: one document, a list of them, or one to a line."""

from collections.abc import Iterable, Mapping
from typing import Any

from guard.core.base.strict_json import loads
from guard.core.probe.answer import BadAnswer

Event = Mapping[str, Any]


def events(output: bytes) -> list[Event]:
    """The objects in an output. Lines that are no objects are noise; one that begins like an object has to be whole."""
    try:
        whole = loads(output)
    except ValueError:
        return [_event(line) for line in output.splitlines() if line.lstrip()[:1] == b"{"]
    return [one for one in (whole if isinstance(whole, list) else [whole]) if isinstance(one, dict)]


def _event(line: bytes) -> Event:
    try:
        event: Event = loads(line)
    except ValueError as error:
        raise BadAnswer(f"a line of the output cannot be read: {error}") from None
    return event


def last(found: Iterable[Event], kind: str) -> Event:
    """The last event of a type; an empty one if there is none."""
    return next((event for event in reversed(list(found)) if event.get("type") == kind), {})


def inner(event: Event, *names: str) -> Event:
    """The object at this place of an event; an empty one if there is none."""
    for name in names:
        value = event.get(name)
        event = value if isinstance(value, Mapping) else {}
    return event


def words(value: object) -> bytes | None:
    """A text as it goes to extraction; None if it is no text."""
    return value.encode() if isinstance(value, str) else None


def count(*values: object) -> int | None:
    """The sum of those that are counts; None if none is."""
    counts = [value for value in values if type(value) is int and value >= 0]
    return min(sum(counts), 2**53) if counts else None


def dollars(values: Iterable[object]) -> float | None:
    """The sum of those that are amounts; None if none is."""
    amounts = [
        float(value)
        for value in values
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1e9
    ]
    return sum(amounts) if amounts else None
