"""The base class of the readers of agents' JSON events."""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from guard.core.base.agent_json import Event, parts_of, text_of
from guard.core.base.text import is_id
from guard.core.classify.errors import ErrorMeaning, ReportedError
from guard.core.classify.plain import error_lines
from guard.core.cost.meters import Meter
from guard.core.gate.members import StreamTeam

_TYPED = b'{"type":"'


@dataclass(frozen=True)
class StreamEnd:
    """How a stream of events ended."""

    finished: bool
    """Whether the last turn ended, well or badly."""
    trouble: ReportedError | None = None
    message: str = ""
    """The agent's last message."""
    asked: bool = False
    """Whether the agent's last action was to ask a person a question."""
    question: str = ""
    """The words of that question, if the event has them."""
    helpless: bool = False
    """Whether every tool that the agent tried was denied."""
    killed: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    cost: float | None = None


@dataclass(frozen=True)
class StderrEnd:
    """The end of standard error, and the exit code."""

    data: bytes
    exit_code: int | None
    announced: bool
    """Whether standard error names a session."""
    latest: bytes
    """The part of `data` that came after the last standard output."""


class Format(ABC):
    """Reads the events of one agent in their order."""

    name: ClassVar[str]
    wanted: ClassVar[re.Pattern[bytes] | None]
    """Lines that match this are parsed; others only if they may report helpers. None if nearly all lines tell something."""
    noise: ClassVar[tuple[bytes, ...]] = ()
    """Lines that begin with one of these tell nothing; there may be very many of them."""
    deciding: ClassVar[tuple[object, ...]] = ("result",)
    """The types of the events that end a turn: they are read strictly."""
    opening: ClassVar[str]
    """The type of the event with which a stream begins."""
    question_tools: ClassVar[tuple[str, ...]] = ()
    """The tools with which the agent asks a person."""
    exit_codes: ClassVar[Mapping[int, ErrorMeaning]] = {}
    """The meaning of exit codes that this agent defines."""
    announced: ClassVar[re.Pattern[bytes] | None] = None
    """The line at the beginning of standard error that names the session, if the program prints one."""
    signed: ClassVar[re.Pattern[bytes] | None] = None
    """The line at the end of standard error that names the session, if the program prints one."""
    last_words: ClassVar[Mapping[str, ErrorMeaning]] = {}
    """Last lines of plain text that report a failure, whatever the exit code is."""
    meter_class: ClassVar[type[Meter]]
    """Reads what the session used."""
    fails_on_stderr: ClassVar[bool] = False
    """Whether the program reports a failure as a JSON document at the end of standard error."""

    def __init__(self) -> None:
        self.session: str | None = None
        self.meter = self.meter_class()
        self.team: StreamTeam | None = None
        """The agent's helpers, if the events report them."""
        self._is_asking = False
        self._question = ""
        """The words of the question, if the agent's last tool call asked one."""
        self._is_over = False
        self._trouble: ReportedError | None = None
        self._message = ""

    def is_wanted(self, line: bytes) -> bool:
        wanted = self.wanted
        # Nearly all lines begin with their type. Then no other place has to be searched for it.
        if wanted is None or wanted.match(line, 1):
            return True
        if not line.startswith(_TYPED) and wanted.search(line):
            return True
        return self.team is not None and self.team.may_tell(line)

    @staticmethod
    @abstractmethod
    def is_recognised(event: Event) -> bool:
        """Tell whether only this agent prints such an event."""

    @classmethod
    def is_opening(cls, event: Event) -> bool:
        """Tell whether a stream of this agent begins with such an event."""
        return event.get("type") == cls.opening

    @abstractmethod
    def take(self, event: Event) -> None:
        """Read one more event."""

    @abstractmethod
    def ending(self) -> StreamEnd:
        """Return how the stream ended; called after the last event."""

    @staticmethod
    def own_errors(errors: StderrEnd) -> list[str]:
        """Return the last lines of standard error that the program itself wrote, not a command that it ran."""
        return error_lines(errors.data)

    def note_tool(self, name: str, arguments: Event) -> None:
        """Keep the question that a tool call asks a person; any other call says that the agent has gone on."""
        self._is_asking = name in self.question_tools
        if not self._is_asking:
            self._question = ""
            return
        asked = [arguments, *parts_of(arguments, "questions")[:5]]
        words = [text_of(one.get("question")).strip() for one in asked]
        self._question = " ".join(word for word in words if word)

    def remember_session(self, session: object) -> None:
        """Keep a valid session id; others are dropped, because the id becomes an argument of a command."""
        if isinstance(session, str) and is_id(session):
            self.session = session


def type_pattern(*types: str) -> re.Pattern[bytes]:
    return re.compile(rb'"type"\s*:\s*"(?:%s)"' % "|".join(types).encode())
