"""The base of the readers of agents' JSON events."""

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
class StderrEnd:
    """The end of standard error, and how the program ended."""

    data: bytes
    exit_code: int | None
    announced: bool
    """Whether a session was named there."""
    latest: bytes
    """What of it came after the last of standard output."""


class Format(ABC):
    """Reads the events of one agent, one after the other."""

    name: ClassVar[str]
    wanted: ClassVar[re.Pattern[bytes]]
    """What a line has to contain to be worth parsing."""
    exit_codes: ClassVar[Mapping[int, ErrorMeaning]] = {}
    """Exit codes that have a meaning with this agent."""
    announced: ClassVar[re.Pattern[bytes] | None] = None
    """The line at the beginning of standard error that names the session, for programs that print one."""
    signed: ClassVar[re.Pattern[bytes] | None] = None
    """The line at the end of standard error that names the session, for programs that print one."""
    last_words: ClassVar[Mapping[str, ErrorMeaning]] = {}
    """Last lines of plain text by which the program says that it failed, whatever its exit code."""
    fails_on_stderr: ClassVar[bool] = False
    """Whether a failure is a document at the end of standard error."""

    def __init__(self) -> None:
        self.session: str | None = None
        self.team: StreamTeam | None = None
        """The agent's helpers, if the events report them."""

    def is_wanted(self, line: bytes) -> bool:
        if self.wanted.search(line):
            return True
        return self.team is not None and self.team.may_tell(line)

    @staticmethod
    @abstractmethod
    def is_recognised(event: Event) -> bool:
        """Tell whether only this agent prints such an event."""

    @staticmethod
    @abstractmethod
    def is_opening(event: Event) -> bool:
        """Tell whether a stream of this agent begins with such an event."""

    @abstractmethod
    def take(self, event: Event) -> None:
        """Read one more event."""

    @abstractmethod
    def ending(self) -> StreamEnd:
        """The end of the stream, when there are no more events."""

    @staticmethod
    def own_errors(errors: StderrEnd) -> list[str]:
        """The last lines of standard error that are the program's own."""
        return error_lines(errors.data)

    def remember_session(self, session: object) -> None:
        """Keep the session's id if it is a valid one: it becomes an argument of a command."""
        if isinstance(session, str) and is_id(session):
            self.session = session


def type_pattern(*types: str) -> re.Pattern[bytes]:
    """A pattern for lines that contain an object of one of these types."""
    return re.compile(rb'"type"\s*:\s*"(?:%s)"' % "|".join(types).encode())
