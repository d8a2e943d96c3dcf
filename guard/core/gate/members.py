"""Track the team that one event stream reports: which helpers count, under which name, and which were killed."""

from dataclasses import dataclass
from typing import assert_never, get_args

from guard.core.base.agent_json import Event
from guard.core.gate.reader import StreamReader, any_of
from guard.core.team.change import Alive, Change, Joined, Kind, MemberLeft, Running

_MOST = 10_000


@dataclass
class _Member:
    kind: Kind
    name: str
    incarnation: int


class Members:
    """The members of a team, named after the first of them; the team holds a completion back while a member counts."""

    def __init__(self, team: str | None = None) -> None:
        self.team = team
        self._members: dict[str, _Member] = {}
        self._lives: dict[str, int] = {}
        """How often each member has joined; the newest are kept."""
        self._killed: dict[str, str] = {}
        self._surplus = 0
        """Members beyond the most that are kept: they count until a list says who runs."""

    @property
    def count(self) -> int:
        return len(self._members) + self._surplus

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(member.name for member in self._members.values())

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(self._members)

    def names_except(self, kind: Kind) -> tuple[str, ...]:
        return tuple(member.name for member in self._members.values() if member.kind != kind)

    def running_members(self) -> Running:
        """Return all members that count, as if the agent CLI had listed them."""
        members = tuple(
            Joined(name, member.kind, member.name, self.team)
            for name, member in self._members.items()
        )
        return Running(members, frozenset(get_args(Kind)) - {"scheduled_wakeup"})

    @property
    def killed_names(self) -> tuple[str, ...]:
        """Return the names of the members that were killed since the agent last ended a turn."""
        return tuple(self._killed.values())

    @property
    def holder(self) -> tuple[str, int] | None:
        """Return the team that holds a completion back, and how many of its members count."""
        return (self.team, self.count) if self.team and self.count else None

    def apply(self, change: Change, session: str | None) -> None:
        match change:
            case Joined():
                self._join(change, session)
            case MemberLeft():
                self._leave(change)
            case Running():
                self._run(change, session)
            case Alive():
                pass
            case _:
                assert_never(change)

    def forget_killed(self) -> None:
        """Forget the killed members: the agent has ended a turn since, and so knows of them."""
        self._killed.clear()

    def clear(self) -> None:
        self.team, self._surplus = None, 0
        self._members.clear()

    def give_up(self) -> None:
        """Count the present members no longer, whatever becomes of them."""
        self._surplus = 0
        self._members.clear()

    def _join(self, joined: Joined, session: str | None) -> None:
        self.team = self.team or joined.team or f"session:{session or 'unknown'}"
        if joined.member in self._members:
            return
        if len(self._members) >= _MOST:
            self._surplus += 1
            return
        life = self._lives.pop(joined.member, 0) + 1
        self._lives[joined.member] = life
        if len(self._lives) > 2 * _MOST:
            del self._lives[next(iter(self._lives))]
        name = joined.description or joined.member
        self._members[joined.member] = _Member(joined.kind, name, life)

    def _leave(self, left: MemberLeft) -> None:
        member = self._members.get(left.member)
        if member and left.incarnation not in (None, member.incarnation):
            return
        self._members.pop(left.member, None)
        is_news = member is not None or left.member not in self._lives
        if left.because == "killed" and is_news and len(self._killed) < _MOST:
            self._killed[left.member] = member.name if member else left.member

    def _run(self, running: Running, session: str | None) -> None:
        self._surplus = 0
        listed = {joined.member for joined in running.members}
        ended = [
            name
            for name, member in self._members.items()
            if member.kind in running.kinds and name not in listed
        ]
        for name in ended:
            del self._members[name]
        for joined in running.members:
            self._join(joined, session)


_MOST_NEWS = 1000


class StreamTeam:
    """Reads the events of a session one after the other, in bounded memory even if the caller never takes the news."""

    def __init__(self, reader: StreamReader) -> None:
        self._reader = reader
        self._members = Members()
        self._news: list[Change] = []

    def may_tell(self, line: bytes) -> bool:
        """Tell whether a line may report on the team; most do not, and need not be parsed for it."""
        return any_of(self._reader.words).search(line) is not None

    def take(self, event: Event) -> None:
        changes = self._reader.read(event).changes
        if not changes:
            return
        for change in changes:
            self._members.apply(change, self._reader.session)
        self._news += changes
        if len(self._news) > _MOST_NEWS:
            self._news = [self._members.running_members()]

    def note_turn(self) -> None:
        """Note that the agent went on, and so knows which helpers were killed before."""
        self._members.forget_killed()

    def take_news(self) -> tuple[Change, ...]:
        """Return the changes since the last call."""
        news, self._news = tuple(self._news), []
        return news

    @property
    def members(self) -> tuple[str, ...]:
        return self._members.ids

    @property
    def lost_helpers(self) -> tuple[str, ...]:
        """Return the helpers whose work is lost if the session is over: those killed, and those that have not ended."""
        # An idle teammate looks like one that works, and stays until it is shut down: it is no lost work.
        return (*self._members.killed_names, *self._members.names_except("teammate"))
