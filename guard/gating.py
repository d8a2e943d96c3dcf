"""The gate's part in the accounting of teams: what a stream tells of helpers is recorded, and who else counts is asked.

A store that does not answer must not hold up or end a session's stream: then the gate goes by the stream alone, and says so.
"""

from collections.abc import Callable
from functools import cached_property
from typing import TypeVar

from guard import teams
from guard.core.gate import Held, LetGo
from guard.core.team.changes import Alive, Change, Joined, Left, Running
from guard.core.team.state import Scope
from guard.errors import GuardError
from guard.invocation import Invocation
from guard.iteration import team_scope
from guard.store.files import FileStore

T = TypeVar("T")
_LOCK_SECONDS = 1.0
_ALIVE_EVERY_SECONDS = 60.0


class Accounts:
    """The team of the stream's session, as the workspace has it."""

    def __init__(self, guard: Invocation, session: Callable[[], str | None]) -> None:
        self._guard = guard
        self._session = session
        self._answers = True
        self._told: set[str] = set()
        """Members that the stream itself knows: it knows better when they end."""
        self._signs: dict[str, float] = {}

    def record(self, changes: tuple[Change, ...]) -> None:
        """What became known; signs of life only now and then."""
        self._told.update(name for change in changes for name in _named(change))
        news = [one for one in changes if not isinstance(one, Alive) or self._is_due(one)]
        if news:
            lease = self._guard.users_config.settings.team.lease_seconds
            moment = teams.moment_of(self._guard.clock)
            self._asked(
                lambda: teams.record(self._store, self._scope, moment, news, lease_seconds=lease),
                None,
            )

    def others(self) -> tuple[str, int] | None:
        """The team of the session and how many of it count that the stream does not know."""
        moment = teams.moment_of(self._guard.clock)
        state = self._asked(lambda: teams.current(self._store, self._scope, moment), None)
        if state is None or state.active_team_name is None:
            return None
        unknown = [one for one in state.members if one.counts and one.member not in self._told]
        return (state.active_team_name, len(unknown)) if unknown else None

    def log(self, news: Held | LetGo) -> None:
        """A completion was held back, or let go."""
        held = isinstance(news, Held)
        reason = "team_active" if isinstance(news, Held) else news.why
        moment = teams.moment_of(self._guard.clock)
        self._asked(
            lambda: teams.completion(self._store, self._scope, moment, held=held, reason=reason),
            None,
        )

    @cached_property
    def _store(self) -> FileStore:
        path = self._guard.writable_store.path
        return FileStore(path, lock_timeout_seconds=_LOCK_SECONDS, notice=self._guard.output.warn)

    @property
    def _scope(self) -> Scope:
        return team_scope(self._guard, self._session())

    def _is_due(self, sign: Alive) -> bool:
        now = self._guard.clock.boot()
        due = now >= self._signs.get(sign.member, 0.0) + _ALIVE_EVERY_SECONDS
        if due:
            self._signs[sign.member] = now
        return due

    def _asked(self, question: Callable[[], T], otherwise: T) -> T:
        if not self._answers:
            return otherwise
        try:
            return question()
        except (GuardError, OSError) as error:
            self._answers = False
            why = error.message if isinstance(error, GuardError) else str(error)
            self._guard.output.warn(f"the gate goes by the stream alone: {why}")
            return otherwise


def _named(change: Change) -> list[str]:
    match change:
        case Running(members):
            return [one.member for one in members]
        case Joined(member) | Left(member) | Alive(member):
            return [member]
