"""Record what a stream reports about helpers in the accounting of teams, and ask there which other helpers count.

A store that does not answer must not hold up or end a session's stream: the gate goes on without it, and warns.
"""

from collections.abc import Callable
from functools import cached_property
from typing import TypeVar

from guard import team as teams
from guard.context.ids import new_id
from guard.context.invalid_fields import refuse_invalid_fields
from guard.context.invocation import Invocation
from guard.core.base.moment import Moment
from guard.core.gate.gate import LetGo, StreamHeld
from guard.core.team.change import Alive, Change, Joined, MemberLeft, Running
from guard.core.team.count import TeamTerms, completion_event
from guard.core.team.state import Scope
from guard.errors import GuardError, StoreUnavailable
from guard.hooks.ingest import ingest_hooks
from guard.iteration.current import note_session, team_scope
from guard.store import Store

T = TypeVar("T")
_LOCK_SECONDS = 0.2
_MOST_UNSENT = 1000
_ALIVE_EVERY_SECONDS = 60.0


class Accounts:
    """The team of the stream's session, as the workspace has it."""

    def __init__(
        self,
        guard: Invocation,
        scope: Callable[[], Scope],
        otherwise: str = "the gate goes by the stream alone",
        store: Store | None = None,
    ) -> None:
        self._guard = guard
        self._given = store
        """What to record in; by default a store that waits only briefly for its lock."""
        self._current = scope
        """Returns the scope of the team, as far as it is known by now."""
        self._otherwise = otherwise
        """The words of a warning for what happens while the store cannot be used."""
        self._answers = True
        self._is_late = False
        """Whether the store did not answer the last time."""
        self._stream_members: set[str] = set()
        """Members that the stream itself reports: it knows better when they end."""
        self._calls: set[str] = set()
        """Members that the stream knows only by the call that starts them."""
        self._signs: dict[str, float] = {}
        self._unsent: list[Change] = []
        self._scope: Scope | None = None
        """The scope in which the first change was recorded; the members end there, too, if the session becomes known later."""

    def record(self, changes: tuple[Change, ...]) -> None:
        """Record changes, signs of life only now and then; changes that cannot be recorded now are kept for the next time."""
        self._stream_members.update(name for change in changes for name in _member_names(change))
        for change in changes:
            self._note_calls(change)
        news = [
            change for change in changes if not isinstance(change, Alive) or self._is_due(change)
        ]
        if news:
            self._unsent = [*self._unsent, *news][-_MOST_UNSENT:]
            self.send()

    @property
    def is_behind(self) -> bool:
        return bool(self._unsent)

    def send(self) -> None:
        if self._unsent:
            self._ask(self._send, None)

    def end_host(self, changes: tuple[Change, ...], members: tuple[str, ...]) -> None:
        """Record the last changes, and that these members, and all that the agent CLI reported, ended with it."""
        self._unsent += changes
        if self._unsent or members or self._ask(self._has_host_members, False):
            self._ask(lambda: self._end(members), None)

    def _has_host_members(self) -> bool:
        # Members that the agent CLI reported otherwise than by its stream.
        _, counting = teams.counting_members(self._store, self._current(), self._moment())
        return any(member.told_by != "command" for member in counting)

    def others(self) -> tuple[str, int] | None:
        """Return the session's team, and how many of its members count that the stream does not know."""
        return self._ask(self._others, None)

    def log(self, news: StreamHeld | LetGo) -> None:
        held = isinstance(news, StreamHeld)
        reason = "team_active" if isinstance(news, StreamHeld) else news.why

        def record() -> None:
            terms = TeamTerms(self._own_scope(), self._moment(), new_id(), 0)
            with (
                self._store.change() as change,
                refuse_invalid_fields("the name of a team is one line"),
            ):
                change.append(
                    completion_event(news.team, news.count, held=held, reason=reason, terms=terms)
                )

        self._ask(record, None)

    def _send(self) -> None:
        lease = self._guard.users_config.settings.team.lease_seconds
        scope, moment = self._own_scope(), self._moment()
        teams.record(self._store, scope, moment, self._unsent, lease_seconds=lease)
        self._scope = scope
        self._unsent = []

    def _end(self, members: tuple[str, ...]) -> None:
        # With the lock time of every other command: no stream is held up any more.
        self._store = self._guard.writable_store
        if self._unsent:
            self._send()
        teams.record_host_end(self._store, self._own_scope(), self._moment(), members)

    def _others(self) -> tuple[str, int] | None:
        ingest_hooks(self._guard, self._store)
        name, members = teams.counting_members(self._store, self._current(), self._moment())
        unknown = [member for member in members if member.member not in self._stream_members]
        # Of a helper whose call the stream has shown, a hook may tell the id first: it is one helper.
        hooked = [member for member in unknown if member.told_by != "command"]
        number = len(unknown) - min(len(hooked), len(self._calls))
        return (name, number) if name and number else None

    def _note_calls(self, change: Change) -> None:
        match change:
            case Joined(member, told_by="call"):
                self._calls.add(member)
            case MemberLeft(member):
                self._calls.discard(member)
            case Running(members):
                self._calls = {joined.member for joined in members if joined.told_by == "call"}

    def _own_scope(self) -> Scope:
        return self._scope or self._current()

    def _moment(self) -> Moment:
        return self._guard.clock.moment()

    @cached_property
    def _store(self) -> Store:
        self._guard.prepare_workspace()
        return self._given or self._guard.open_store(_LOCK_SECONDS)

    def _is_due(self, sign: Alive) -> bool:
        now = self._guard.clock.boot()
        due = now >= self._signs.get(sign.member, 0.0) + _ALIVE_EVERY_SECONDS
        if due:
            self._signs[sign.member] = now
        return due

    def _ask(self, question: Callable[[], T], otherwise: T) -> T:
        if not self._answers:
            return otherwise
        try:
            answer = question()
            self._is_late = False
            return answer
        except StoreUnavailable as error:
            if not self._is_late:
                self._guard.output.warn(f"{self._otherwise} for now: {error.message}")
            self._is_late = True
        except (GuardError, OSError) as error:
            self._answers = False
            why = error.message if isinstance(error, GuardError) else str(error)
            self._guard.output.warn(f"{self._otherwise}: {why}")
        return otherwise


def stream_scope(guard: Invocation, agent: str, session: str | None) -> Scope:
    """Return the scope of a stream's session in this work tree; the session is noted in the open iteration."""
    scope = team_scope(guard, session)
    if session is not None and scope.run is not None:
        note_session(guard, agent, session)
    return scope


def _member_names(change: Change) -> list[str]:
    match change:
        case Running(members):
            return [running.member for running in members]
        case Joined(member) | MemberLeft(member) | Alive(member):
            return [member]
