"""The team that the events of one session tell of: who counts, what was lost with the session, and what is to be recorded."""

from guard.core.base.event_values import Event
from guard.core.gate.line_meaning import StreamReader, any_of
from guard.core.gate.members import Members
from guard.core.team.change import Change

_MOST_NEWS = 1000


class StreamTeam:
    """Takes the events of a session, one after the other, in bounded memory whether or not anybody asks for the news."""

    def __init__(self, reader: StreamReader) -> None:
        self._reader = reader
        self._members = Members()
        self._news: list[Change] = []

    def is_told_in(self, line: bytes) -> bool:
        """Whether a line may tell something; most do not, and need not be parsed for it."""
        return any_of(self._reader.telling).search(line) is not None

    def take(self, event: Event) -> None:
        """One more event."""
        changes = self._reader.read(event).changes
        for change in changes:
            self._members.take(change, self._reader.session)
        self._news += changes
        if len(self._news) > _MOST_NEWS:
            self._news = [self._members.listed()]

    def spoke(self) -> None:
        """The agent went on, and so knows what was killed before."""
        self._members.forget_killed()

    def news(self) -> tuple[Change, ...]:
        """What became known since this was last asked for."""
        news, self._news = tuple(self._news), []
        return news

    @property
    def members(self) -> tuple[str, ...]:
        """Those who count."""
        return self._members.ids

    @property
    def lost(self) -> tuple[str, ...]:
        """The work that is lost if the session is over: what was killed, and what has not ended.

        An idle teammate cannot be told from one that works, and stays until it is shut down: it is no lost work.
        """
        return (*self._members.killed, *self._members.names_but("teammate"))
