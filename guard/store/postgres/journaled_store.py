"""A store whose runs go on while the server does not answer.

A run writes views of its own work tree alone, which no other machine writes. So what it last saw of them is still true while no
other guard of this machine has changed them, and what it decides by them can be handed in later. Everything else, such as the
registries and the plan, is as unavailable as the server.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from guard.core.log.events import BaseEvent
from guard.core.log.record import START, LogEntry, Position
from guard.core.log.table import view_kinds
from guard.core.log.view import Fold, ViewDocument, ViewKind
from guard.core.team.state import TEAM, team_key
from guard.errors import GuardError, ServerLost, StoreUnavailable
from guard.store.postgres.journal import (
    KnownView,
    LocalRecords,
    WorktreeWatch,
    hand_in,
    tell_of_change,
)
from guard.store.postgres.store import PostgresStore

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from guard.store import Change
    from guard.store.dsn import Dsn

D = TypeVar("D", bound=ViewDocument)
F = TypeVar("F", bound=Fold[Any])
T = TypeVar("T")
_WORKTREES = "worktrees.d/"
_REFRESH_SECONDS = 2.0


@dataclass
class _OwnRun:
    """What the run of this process knows of its work tree."""

    worktree: str
    watch: WorktreeWatch
    known: dict[str, KnownView] = field(default_factory=dict)
    head: Position = START
    count: int = -1
    """The changes of other guards that `known` has."""
    local: LocalRecords | None = None
    """What is recorded here while the server is away."""
    lost_at: float = 0.0
    refreshed: float = 0.0

    def has(self, path: str) -> bool:
        """Tell whether only guards of this machine write the view."""
        return path.startswith((f"{_WORKTREES}{self.worktree}/", TEAM.folder))


class JournaledStore(PostgresStore):
    def __init__(
        self,
        dsn: "Dsn",
        name: str,
        *,
        lock_timeout_seconds: float,
        folder: Path,
        notice: Callable[[str], None],
    ) -> None:
        super().__init__(dsn, name, lock_timeout_seconds=lock_timeout_seconds)
        self._folder = folder
        self._notice = notice
        self._run: _OwnRun | None = None
        self._changes = 0
        self._answered = self._lost = 0.0
        """When the server last renewed a lease, and when a run last lost it."""

    @contextmanager
    def journal(self, worktree: str) -> Iterator[None]:
        """Record what happens in the work tree here while the server does not answer, and hand it in when it does."""
        run = self._run = _OwnRun(worktree, WorktreeWatch(self._folder, worktree))
        try:
            with suppress(ServerLost):
                self._look_first(run)
            yield
        finally:
            self._run = None
            try:
                self._end(run)
            finally:
                run.watch.close()

    def _look_first(self, run: _OwnRun) -> None:
        wanted = [
            *((kind, run.worktree) for kind in view_kinds() if kind.folder == _WORKTREES),
            (TEAM, team_key(run.worktree, None)),
        ]
        with self.change() as change:
            for kind, key in wanted:
                change.expect(kind, key)
            for kind, key in wanted:
                change.view(kind, key)

    def _end(self, run: _OwnRun) -> None:
        if run.local is None:
            return
        try:
            hand_in(self, self._folder, run.worktree)
        except GuardError as error:
            self._notice(
                f"{error.message}; {run.local.path} has the records of this run, and the next command hands them in"
            )

    def hand_in(self) -> int:
        """Record what earlier runs of this machine could not."""
        return hand_in(self, self._folder)

    def refresh(self) -> None:
        """Go back to the server if it answers again; else see what other guards have changed since."""
        run = self._run
        if run is None or time.monotonic() - run.refreshed < _REFRESH_SECONDS:
            return
        if run.local is not None and self._answered > run.lost_at:
            self._return(run)
        elif run.local is None and run.watch.count != run.count:
            with suppress(StoreUnavailable), self.change() as change:
                change.refuse_damage()  # Takes the lock; the end of the change looks at all that is known.
        run.refreshed = time.monotonic()

    def _return(self, run: _OwnRun) -> None:
        self._run = None  # What is handed in is no news to this run.
        try:
            hand_in(self, self._folder, run.worktree)
            run.local, run.count = None, -1
        except ServerLost:
            run.lost_at = time.monotonic()
        finally:
            self._run = run

    # Reading

    def _read(self, text: str, *values: Any) -> list[tuple[Any, ...]]:
        if self._run is not None and self._run.local is not None:
            raise self._run.local.why
        return super()._read(text, *values)

    def view(self, kind: ViewKind[D, Any], key: str = "", part: str | None = None) -> D | None:
        run = self._run
        if run is None or not run.has(kind.path(key)):
            return super().view(kind, key, part)
        if run.local is None and not self._changes and kind.path(key) not in run.known:
            with self.change() as change:
                return change.view(kind, key)
        if run.local is None:
            try:
                return super().view(kind, key)
            except ServerLost as error:
                self.go_local(error)
        assert run.local is not None
        return run.local.view(kind, key)

    def refuse_changed_log(self) -> None:
        run = self._run
        try:
            if run is None or run.local is None:
                super().refuse_changed_log()
        except ServerLost as error:
            # The hand-in compares the log with what this run has seen of it.
            self.go_local(error)

    # Writing

    @contextmanager
    def change(self, timeout: float | None = None) -> "Iterator[Change]":
        change = JournaledChange(self, super().change(timeout))
        self._changes += 1
        try:
            try:
                yield change
            finally:
                change.finish()
        finally:
            self._changes -= 1

    def hold_lease(self, name: str, seconds: float) -> None:
        super().hold_lease(name, seconds)
        self._answered = time.monotonic()

    def end_lease(self, name: str) -> None:
        if self._lost <= self._answered:  # Without its server a lease ends by itself.
            super().end_lease(name)

    @property
    def newest(self) -> Position:
        """Return the place after the newest record that this store has seen."""
        return self._state.head or START

    @property
    def run(self) -> _OwnRun | None:
        return self._run

    @property
    def local(self) -> LocalRecords | None:
        return self._run.local if self._run is not None else None

    def go_local(self, error: ServerLost) -> LocalRecords:
        """Go on without the server; raise if another guard of this machine may know more of the work tree."""
        run = self._run
        if run is not None and run.local is not None:
            return run.local
        if run is None or run.count != run.watch.count:
            raise error
        run.local = LocalRecords(self._folder, run.worktree, run.known, run.head, error)
        self._lost = run.lost_at = time.monotonic()
        self._session.expect_nothing()
        self._notice(f"{error.message}: this run goes on, and records in {run.local.path}")
        return run.local

    def tell(self, events: Sequence[BaseEvent]) -> None:
        """Tell the runs of this machine whose work trees the events are about."""
        own = self._run.worktree if self._run is not None else None
        for worktree in {str(event.worktree) for event in events if hasattr(event, "worktree")}:
            if worktree != own:
                with suppress(OSError):
                    tell_of_change(self._folder, worktree)


class JournaledChange:
    """A change on the server, and after its loss one in the journal: what was decided by then goes there, too."""

    def __init__(self, store: JournaledStore, opened: "AbstractContextManager[Change]") -> None:
        self._store = store
        self._run = store.run
        self._stack = ExitStack()
        self._online: Change | None = None
        self._local = store.local
        self._appended: list[tuple[BaseEvent, ...]] = []
        self._viewed: dict[str, tuple[ViewKind[Any, Any], str]] = {}
        self._count: int | None = None
        if self._local is None:
            self._enter(opened)

    def _enter(self, opened: "AbstractContextManager[Change]") -> None:
        try:
            self._online = self._stack.enter_context(opened)
            for kind, key, _ in self._run.known.values() if self._run is not None else ():
                self._online.expect(kind, key)  # The end of the change looks at them.
        except StoreUnavailable as error:
            if self._run is None:
                raise
            # The thread that renews the lease waits for the server.
            self._local = self._store.go_local(ServerLost(error.message, error.hint))

    def expect(self, kind: ViewKind[Any, Any], key: str = "", part: str = "") -> None:
        if self._online is not None:
            self._online.expect(kind, key, part)

    def expect_event(self, event_id: str) -> None:
        if self._online is not None:
            self._online.expect_event(event_id)

    def refuse_damage(self) -> None:
        self._act(lambda change: change.refuse_damage())

    def view(self, kind: ViewKind[D, Any], key: str = "") -> D | None:
        self._note(kind, key)
        return self._act(lambda change: change.view(kind, key))

    def fold(self, kind: ViewKind[Any, F], key: str = "") -> F:
        self._note(kind, key)
        return self._act(lambda change: change.fold(kind, key))

    def recovery_reason(self, kind: ViewKind[Any, Any], key: str = "") -> str | None:
        return self._act(lambda change: change.recovery_reason(kind, key))

    def find_event(self, event_id: str) -> BaseEvent | None:
        return self._act(lambda change: change.find_event(event_id))

    def append(self, *events: BaseEvent) -> Sequence[LogEntry]:
        if not events:
            return ()
        added = self._act(lambda change: change.append(*events))
        self._appended.append(events)
        self._store.tell(events)
        return added

    def _note(self, kind: ViewKind[Any, Any], key: str) -> None:
        path = kind.path(key)
        if self._run is not None and self._run.has(path):
            self._viewed[path] = (kind, key)

    def _act(self, act: "Callable[[Change], T]") -> T:
        if self._online is not None:
            try:
                done = act(self._online)
            except ServerLost as error:
                self._go_local(error)
            else:
                if self._run is not None and self._count is None:
                    self._count = self._run.watch.count  # While it holds the lock.
                return done
        assert self._local is not None
        return act(self._local)

    def _go_local(self, error: ServerLost) -> None:
        if self._run is None:
            raise error
        self._local = self._store.go_local(error)
        self._online = None
        with suppress(ServerLost):
            self._stack.close()
        for events in self._appended:
            self._local.append(*events)

    def finish(self) -> None:
        """Commit what was appended, on the server or in the journal."""
        if self._online is not None:
            try:
                known = self._look_again()
                self._stack.close()
            except ServerLost as error:
                if self._appended:
                    self._go_local(error)
                else:
                    with suppress(ServerLost):
                        self._stack.close()
            else:
                self._keep(known)
        if self._local is not None:
            self._local.commit()

    def _look_again(self) -> dict[str, KnownView]:
        """Return the views of the work tree as they are at the end of this change."""
        if self._run is None or self._count is None:
            return {}
        assert self._online is not None
        views = {path: (kind, key) for path, (kind, key, _) in self._run.known.items()}
        online = self._online
        return {
            path: (kind, key, online.view(kind, key))
            for path, (kind, key) in {**views, **self._viewed}.items()
        }

    def _keep(self, known: dict[str, KnownView]) -> None:
        if self._run is not None and self._count is not None:
            self._run.known = known
            self._run.count = self._count
            self._run.head = self._store.newest
