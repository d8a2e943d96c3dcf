"""Define the interface of the stream readers: what one line of an agent's event stream means for its helpers and its turn."""

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, NamedTuple

from guard.core.base.agent_json import Event
from guard.core.base.text import is_id
from guard.core.team.change import Change


@dataclass(frozen=True)
class TurnUsage:
    """The tokens of a turn, as far as the agent CLI reports them."""

    input_tokens: int = 0
    """Input tokens, with those from a cache; 0 if the agent CLI does not say."""
    context_window: int | None = None


class LineMeaning(NamedTuple):
    """The meaning of a line; most lines mean nothing to the gate."""

    changes: tuple[Change, ...] = ()
    end_of_turn: bool = False
    """Whether the agent's own turn ends with this line, with success or not."""
    begins_turn: bool = False
    """Whether the line shows that the agent itself is at work."""
    usage: TurnUsage | None = None


NOTHING = LineMeaning()


class StreamReader(ABC):
    """Reads the events of one agent CLI, one after the other."""

    name: ClassVar[str]
    ending: ClassVar[tuple[bytes, ...]]
    """A line that ends a turn has one of these words, each with the quotation mark before it."""
    beginning: ClassVar[tuple[bytes, ...]]
    """A line that begins a turn has one of these words; they are looked for only between two turns."""
    kills_helpers: ClassVar[bool] = False
    """Whether the agent CLI ends its helpers silently when it ends itself."""

    def __init__(self) -> None:
        self.session: str | None = None

    @property
    @abstractmethod
    def words(self) -> tuple[bytes, ...]:
        """Return words that the next line must have one of; a line without any means nothing at this point of the stream."""

    @abstractmethod
    def read(self, event: Event) -> LineMeaning:
        """Return what the event of the next line means; the line has one of the words."""

    def note_session(self, session: object) -> None:
        if self.session is None and isinstance(session, str) and is_id(session):
            self.session = session


@cache
def any_of(words: tuple[bytes, ...]) -> re.Pattern[bytes]:
    """Return a pattern that finds any of these words; it is fast because all begin with a quotation mark."""
    return re.compile(b'"(?:' + b"|".join(re.escape(word[1:]) for word in words) + b")")
