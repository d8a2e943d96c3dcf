"""Read the fields of a foreign document, each under several names, and note every fault with its place."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import isfinite
from typing import Any, NamedTuple

from guard.core.agents.agent import ACTIVE
from guard.core.agents.events import AgentStatus
from guard.core.base.text import escape, plural

MOST_PROBLEMS = 20
_MOST_PLACES = 3
_LONGEST_SHOWN = 60
LONGEST_LINE, LONGEST_TEXT = 512, 65536
_LONGEST_TIME = 64
_LAST_SECOND = 1e11
"""A larger number is a time in milliseconds, not in seconds."""
_FIRST = datetime(1970, 1, 1, tzinfo=UTC)
_IN_LINE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_IN_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


class BadRegistry(Exception):
    """The document cannot be imported; each problem names its place."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass
class Notes:
    """The faults of a document, and the assumptions made about it."""

    found: int = 0
    problems: list[str] = field(default_factory=list)
    assumed: dict[str, list[str]] = field(default_factory=dict)

    def add_problem(self, place: str, what: str) -> None:
        self.found += 1
        if self.found <= MOST_PROBLEMS:
            self.problems.append(f"{place}: {what}")

    def assume(self, place: str, what: str) -> None:
        places = self.assumed.setdefault(what, [])
        if places[-1:] != [place]:
            places.append(place)

    def refuse(self) -> None:
        """Raise a BadRegistry if any fault was noted."""
        more = self.found - len(self.problems)
        if self.found:
            raise BadRegistry((*self.problems, *([f"and {more} more"] if more else [])))

    def warnings(self, source: str) -> tuple[str, ...]:
        return tuple(
            f"{escape(source)}: {_name_places(places)}{what}"
            for what, places in self.assumed.items()
        )


def _name_places(places: list[str]) -> str:
    named = ", ".join(filter(None, places[:_MOST_PLACES]))
    more = len(places) - _MOST_PLACES
    others = f" and {plural(more, 'other')}" if more > 0 else ""
    return f"{named}{others}: " if named else ""


def describe(value: object) -> str:
    """Return a short, printable description of a value for a message."""
    if isinstance(value, str):
        shown = escape(value[:_LONGEST_SHOWN])
        return f'"{shown}{"…" if len(value) > _LONGEST_SHOWN else ""}"'
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**63):
        return str(value)
    return {int: "a huge number", list: "a list", dict: "an object"}.get(type(value), "a value")


@dataclass(frozen=True)
class Fields:
    """One object of the document."""

    place: str
    values: Mapping[str, Any]
    notes: Notes

    def find_name(self, *names: str) -> str | None:
        """Return the first of these names that has a value."""
        return next((name for name in names if self.values.get(name) is not None), None)

    def add_problem(self, name: str, what: str) -> None:
        value = describe(self.values.get(name))
        self.notes.add_problem(f"{self.place}.{name}" if self.place else name, f"{value} {what}")

    def line(self, *names: str) -> str | None:
        return self._text(names, LONGEST_LINE, _IN_LINE)

    def text(self, *names: str) -> str | None:
        return self._text(names, LONGEST_TEXT, _IN_TEXT)

    def _text(self, names: tuple[str, ...], most: int, harmful: re.Pattern[str]) -> str | None:
        name = self.find_name(*names)
        value = self.values[name] if name else None
        if name is None or value == "":
            return None
        if not isinstance(value, str):
            self.add_problem(name, "is not text")
        elif len(value) > most:
            self.add_problem(name, f"has more than {most} characters")
        elif harmful.search(value):
            self.add_problem(name, "has characters that are no text")
        else:
            return value
        return None

    def whole_number(self, name: str, least: int, most: int) -> int | None:
        """Return a whole number within these bounds; `50.0` is one too."""
        value = self.values.get(name)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        self.add_problem(name, f"is not a whole number from {least} to {most}")
        return None

    def moment(self, *names: str) -> datetime | None:
        """Return a time, given as ISO-8601 or in seconds since 1970; without a zone it is UTC."""
        name = self.find_name(*names)
        if name is None:
            return None
        try:
            return self._moment(self.values[name])
        except (ValueError, OverflowError):
            self.add_problem(name, "is not a time: ISO-8601 or seconds since 1970 are")
            return None

    def _moment(self, value: Any) -> datetime:
        if isinstance(value, int | float) and not isinstance(value, bool):
            if not (isfinite(value) and 0 < value < _LAST_SECOND):
                raise ValueError
            return datetime.fromtimestamp(value, UTC)
        if not isinstance(value, str) or len(value) > _LONGEST_TIME:
            raise ValueError
        found = datetime.fromisoformat(value)
        moment = found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
        if moment < _FIRST:
            raise ValueError
        if not found.tzinfo:
            self.notes.assume(self.place, "times without a zone are taken as UTC")
        return moment


_BEGUN = ("spawned_at", "started_at", "created_at")
_UPDATED = ("updated_at", "last_update")
_ENDED = ("completed_at", "terminated_at", "ended_at", "killed_at")
KILLED = ("terminated_at", "killed_at", "kill_reason", "termination_reason", "reason")


class Times(NamedTuple):
    begun: datetime
    updated: datetime
    ended: datetime | None


def read_times(entry: Fields, status: AgentStatus, now: datetime) -> Times | None:
    """Return the times of an agent, none of them after now; None if they contradict each other."""
    begun, updated, ended = (entry.moment(*names) for names in (_BEGUN, _UPDATED, _ENDED))
    if entry.find_name(*_ENDED) and status in ACTIVE:
        entry.add_problem(entry.find_name(*_ENDED) or "", f"is an end, and the status is {status}")
        return None
    if entry.find_name(*_BEGUN) is None:
        entry.notes.assume(entry.place, "has no time of its beginning: the earliest known is taken")
        begun = min(filter(None, (updated, ended, now)))
    if status not in ACTIVE and entry.find_name(*_ENDED) is None:
        entry.notes.assume(entry.place, "has no time of its end: the latest known is taken")
        ended = updated or now
    if begun is None:
        return None
    for name, moment in ((entry.find_name(*_ENDED), ended), (entry.find_name(*_UPDATED), updated)):
        if name and moment and moment < begun:
            entry.add_problem(name, "is before its beginning")
    if max(filter(None, (begun, updated, ended))) > now:
        entry.notes.assume(entry.place, "has times in the future: guard takes them as now")
    last = updated or ended or begun
    return Times(min(begun, now), min(last, now), min(ended, now) if ended else None)
