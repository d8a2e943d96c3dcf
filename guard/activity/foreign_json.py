"""Read JSON that other programs wrote, within bounds: whole documents, and the newest lines of a file of events."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from guard.core.base.json_text import loads
from guard.system.private_files import close

MOST_BYTES = 1024 * 1024
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NO_ACCESS_TIME = getattr(os, "O_NOATIME", 0)
_TIME_KEYS = ("last_updated", "updated_at", "claimed_at", "timestamp", "time", "ts", "at")
ACTORS = ("agent_id", "agent", "author", "sender", "from")
"""Keys for the agent that did something."""
HOLDERS = ("claimed_by", "assigned_to", "assignee", "agent_id", "agent")
"""Keys for the agent that something belongs to."""
_TEXT_KEYS = ("message", "text", "content", "summary", "description", "body")
_MILLISECONDS = 1e11


class NoDocument(Exception):
    """The file cannot be read as JSON, or is too large."""


def read_document(path: Path, size: int) -> Any:
    if size > MOST_BYTES:
        raise NoDocument(f"{path.name} has {size} bytes, more than {MOST_BYTES}")
    try:
        return loads(_end_of(path))
    except (OSError, ValueError, RecursionError) as error:
        raise NoDocument(f"{path.name} cannot be read: {error}") from None


def read_newest_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The JSON objects in the last lines of a file, the newest first; other lines are skipped."""
    try:
        lines = _end_of(path).splitlines()
    except OSError as error:
        raise NoDocument(f"{path.name} cannot be read: {error}") from None
    for line in reversed(lines):
        try:
            found = loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield found


def objects_in(found: object) -> Iterator[dict[str, Any]]:
    """The objects of a document that is an object or a list, and of the lists and maps in it."""
    if isinstance(found, dict):
        yield found
        for value in found.values():
            inner = value.values() if isinstance(value, dict) else value
            if isinstance(value, dict | list):
                yield from (item for item in inner if isinstance(item, dict))
    elif isinstance(found, list):
        yield from (item for item in found if isinstance(item, dict))


def _end_of(path: Path) -> bytes:
    """The last bytes of a regular file; reading does not block, and leaves no access time where that is possible."""
    try:
        descriptor = os.open(path, _OPEN | _NO_ACCESS_TIME)
    except PermissionError:
        descriptor = os.open(path, _OPEN)
    try:
        size = os.fstat(descriptor).st_size
        return os.pread(descriptor, MOST_BYTES, max(0, size - MOST_BYTES))
    finally:
        close(descriptor)


def seconds_in(found: Mapping[str, Any], now: float) -> float | None:
    """The first time that an object states, in seconds since the epoch."""
    for key in _TIME_KEYS:
        seconds = _seconds(found.get(key), now)
        if seconds is not None:
            return seconds
    return None


def exact_seconds_in(found: Mapping[str, Any]) -> float | None:
    """The first time that an object states, unless it is ambiguous for want of a time zone."""
    for key in _TIME_KEYS:
        value = found.get(key)
        if isinstance(value, str) and (moment := _moment(value)) and moment.tzinfo is None:
            return None
        seconds = _seconds(value, 0)
        if seconds is not None:
            return seconds
    return None


def _seconds(value: object, now: float) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    with suppress(OverflowError, ValueError, OSError):
        if isinstance(value, str):
            moment = _moment(value)
            return _nearest_seconds(moment, now) if moment is not None else None
        return value / 1000 if value > _MILLISECONDS else float(value)
    return None


def _moment(text: str) -> datetime | None:
    text = text.strip()
    # A date alone is no time.
    with suppress(ValueError):
        return datetime.fromisoformat(text) if len(text) > len("2026-01-31") else None
    return None


def _nearest_seconds(moment: datetime, now: float) -> float:
    # Without a zone it is local time or UTC: the later of them that is not in the future.
    if moment.tzinfo is not None:
        return moment.timestamp()
    both = (moment.timestamp(), moment.replace(tzinfo=UTC).timestamp())
    return max((seconds for seconds in both if seconds <= now), default=min(both))


def names_in(found: Mapping[str, Any], keys: Iterable[str]) -> set[str]:
    """The agents that an object names under these keys, casefolded."""
    values = (found.get(key) for key in keys)
    return {value.casefold() for value in values if isinstance(value, str) and value}


def text_in(found: Mapping[str, Any]) -> str:
    return next(
        (text for key in _TEXT_KEYS if isinstance(text := found.get(key), str) and text), ""
    )
