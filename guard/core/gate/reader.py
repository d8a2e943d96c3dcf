"""What one line of an agent's event stream means for its helpers and for its turn."""

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, NamedTuple

from guard.core.base.event_values import Event, number_in, text_of
from guard.core.base.fields import is_id
from guard.core.team.change import Change

_LONGEST_NAME = 200


@dataclass(frozen=True)
class TurnUsage:
    """What a turn took, as far as the agent's program tells it."""

    input_tokens: int = 0
    """Tokens that were read, those from a cache among them; 0 if the program does not say."""
    context_window: int | None = None


class LineMeaning(NamedTuple):
    """What a line means; most lines mean nothing here."""

    changes: tuple[Change, ...] = ()
    end_of_turn: bool = False
    """Whether the agent's own turn ends with this line, well or badly."""
    begins_turn: bool = False
    """Whether the line shows that the agent itself is at work."""
    usage: TurnUsage | None = None


NOTHING = LineMeaning()


class StreamReader(ABC):
    """Reads the events of one agent's program, one after the other."""

    name: ClassVar[str]
    ending: ClassVar[tuple[bytes, ...]]
    """A line that ends a turn has one of these words, each with the quotation mark before it."""
    beginning: ClassVar[tuple[bytes, ...]]
    """A line that begins a turn has one of these; they are looked for only between two turns."""
    kills_helpers: ClassVar[bool] = False
    """Whether the program ends its helpers, without a word, when it ends itself."""

    def __init__(self) -> None:
        self.session: str | None = None

    @property
    @abstractmethod
    def telling(self) -> tuple[bytes, ...]:
        """A line without any of these words means nothing at this place of the stream."""

    @abstractmethod
    def read(self, event: Event) -> LineMeaning:
        """What the next line means that has a telling word."""

    def know(self, session: object) -> None:
        """Remember the session's id, the first that is one."""
        if self.session is None and isinstance(session, str) and is_id(session):
            self.session = session


@cache
def any_of(words: tuple[bytes, ...]) -> re.Pattern[bytes]:
    """Finds any of these words, all of which begin with a quotation mark: that is what makes it fast."""
    return re.compile(b'"(?:' + b"|".join(re.escape(word[1:]) for word in words) + b")")


def name_in(value: object) -> str:
    """What something is called, on one line and not too long; nothing if it has no name."""
    words = text_of(value).encode(errors="replace").decode().split()
    return " ".join(words)[:_LONGEST_NAME]


def member_in(value: object) -> str | None:
    """The id of a helper, if it is one."""
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_NAME:
        return None
    return value.encode(errors="replace").decode()


def count_in(value: object) -> int:
    """A number of tokens; 0 for anything else."""
    number = number_in(value)
    return int(number) if number is not None and number > 0 else 0
