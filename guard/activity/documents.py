"""JSON that others wrote, read within bounds: whole documents, and the newest lines of a file of events."""

import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from guard.core.strict_json import loads
from guard.files import close

MOST_BYTES = 1024 * 1024
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_TIME_KEYS = (
    "last_updated",
    "updated_at",
    "claimed_at",
    "timestamp",
    "time",
    "ts",
    "at",
    "created_at",
)
_AGENT_KEYS = (
    "agent_id",
    "agent",
    "claimed_by",
    "assigned_to",
    "assignee",
    "sender",
    "from",
    "author",
)
_TEXT_KEYS = ("message", "text", "content", "summary", "description", "body")
_MILLISECONDS = 1e11


class Unreadable(Exception):
    """A file that is no document, or too large for one."""


def document(path: Path, size: int) -> Any:
    """The JSON in a file."""
    if size > MOST_BYTES:
        raise Unreadable(f"{path.name} has {size} bytes, more than {MOST_BYTES}")
    try:
        return loads(_end_of(path))
    except (OSError, ValueError, RecursionError) as error:
        raise Unreadable(f"{path.name} cannot be read: {error}") from None


def newest_lines(path: Path, most: int) -> Iterator[dict[str, Any]]:
    """The objects in the last lines of a file, the newest first; what is no object is passed over."""
    try:
        lines = _end_of(path).splitlines()
    except OSError as error:
        raise Unreadable(f"{path.name} cannot be read: {error}") from None
    for line in reversed(lines[-most:]):
        try:
            found = loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield found


def _end_of(path: Path) -> bytes:
    """The last bytes of a regular file; nothing is waited for."""
    descriptor = os.open(path, _OPEN)
    try:
        size = os.fstat(descriptor).st_size
        return os.pread(descriptor, MOST_BYTES, max(0, size - MOST_BYTES))
    finally:
        close(descriptor)


def seconds_in(found: Mapping[str, Any]) -> float | None:
    """The time that an object tells of itself, in seconds since the epoch."""
    for key in _TIME_KEYS:
        seconds = _seconds(found.get(key))
        if seconds is not None:
            return seconds
    return None


def _seconds(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str):
        try:
            # Without a time zone it is this machine's, as most programs write it.
            return datetime.fromisoformat(value.strip()).timestamp()
        except (ValueError, OverflowError, OSError):
            return None
    return value / 1000 if value > _MILLISECONDS else float(value)


def names(found: Mapping[str, Any], agent: str) -> bool:
    """Whether the object says that it is this agent's."""
    said = [found.get(key) for key in _AGENT_KEYS]
    return any(isinstance(one, str) and one.casefold() == agent.casefold() for one in said)


def words_in(found: Mapping[str, Any]) -> str:
    """What the object says in words."""
    return next((one for key in _TEXT_KEYS if isinstance(one := found.get(key), str) and one), "")
