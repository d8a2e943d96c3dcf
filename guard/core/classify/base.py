"""What every reader of an agent's JSON has in common: what it wants to see, and what it has to say at the end."""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from guard.core.base.event_values import Event
from guard.core.base.fields import is_id
from guard.core.classify.errors import ErrorMeaning, ReportedError
from guard.core.classify.plain import error_lines
from guard.core.gate.members import StreamTeam


@dataclass(frozen=True)
class StreamEnd:
    """How a stream of events ended."""

    finished: bool
    """Whether the last turn came to its end, well or badly."""
    trouble: ReportedError | None = None
    message: str = ""
    """The agent's last own words."""
    asked: bool = False
    """Whether the last thing that it did was to put a question to a person."""
    helpless: bool = False
    """Whether every tool that it tried was denied."""
    killed: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    cost: float | None = None


@dataclass(frozen=True)
class Errors:
    """The end of standard error, and how the program ended."""

    data: bytes
    exit_code: int | None
    announced: bool
    """Whether a session was named there."""
    latest: bytes
    """What of it came after the last of standard output."""


class Format(ABC):
    """Takes the events of one agent, one after the other."""

    name: ClassVar[str]
    wanted: ClassVar[re.Pattern[bytes]]
    """What a line has to contain to be worth parsing."""
    exit_codes: ClassVar[Mapping[int, ErrorMeaning]] = {}
    """Exit codes that have a meaning with this agent."""
    announced: ClassVar[re.Pattern[bytes] | None] = None
    """How the session is named at the beginning of standard error, where it is."""
    signed: ClassVar[re.Pattern[bytes] | None] = None
    """How it is named at the end of standard error, where it is."""
    last_words: ClassVar[Mapping[str, ErrorMeaning]] = {}
    """Last lines by which the program says, in plain text, that it failed, whatever its exit code."""
    fails_on_stderr: ClassVar[bool] = False
    """Whether a failure is a document at the end of standard error."""

    def __init__(self) -> None:
        self.session: str | None = None
        self.team: StreamTeam | None = None
        """The agent's helpers, where the events tell of them."""

    def is_wanted(self, line: bytes) -> bool:
        """Whether a line is worth parsing."""
        if self.wanted.search(line):
            return True
        return self.team is not None and self.team.may_tell(line)

    @staticmethod
    @abstractmethod
    def recognises(event: Event) -> bool:
        """Whether this event is one that only this agent prints."""

    @staticmethod
    @abstractmethod
    def opens(event: Event) -> bool:
        """Whether this event, which was recognised, is one with which a stream begins."""

    @abstractmethod
    def take(self, event: Event) -> None:
        """One more event."""

    @abstractmethod
    def ending(self) -> StreamEnd:
        """How it ended, when there are no more events."""

    @staticmethod
    def own_errors(errors: Errors) -> list[str]:
        """The last lines of standard error that are the program's own."""
        return error_lines(errors.data)

    def know(self, session: object) -> None:
        """Remember the session's id, if it is one: it becomes an argument of a command."""
        if isinstance(session, str) and is_id(session):
            self.session = session


def wants(*types: str) -> re.Pattern[bytes]:
    """Lines in which an object of one of these types stands."""
    return re.compile(rb'"type"\s*:\s*"(?:%s)"' % "|".join(types).encode())
