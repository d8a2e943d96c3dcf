"""Keep the log and its views. One contract, `Store`; files are the default implementation."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from guard.core.log.events import BaseEvent
from guard.core.log.record import START, LogEntry, Position
from guard.core.log.view import Fold, ViewDocument, ViewKind

D = TypeVar("D", bound=ViewDocument)
F = TypeVar("F", bound=Fold[Any])


class Change(Protocol):
    """A change under way: the workspace is ours until it ends."""

    def view(self, kind: ViewKind[D, Any], key: str = "") -> D | None:
        """Return the view as of now, events of this change included; None if no event ever touched it."""
        ...

    def fold(self, kind: ViewKind[Any, F], key: str = "") -> F:
        """Return the state while it is being built, to ask it for a part without freezing the whole."""
        ...

    def recovery_reason(self, kind: ViewKind[Any, Any], key: str = "") -> str | None:
        """Return why the view had to be folded again from the log; None if it had not."""
        ...

    def find_event(self, event_id: str) -> BaseEvent | None:
        """Return the event that was recorded under this id, if one was."""
        ...

    def append(self, *events: BaseEvent) -> Sequence[LogEntry]:
        """Record the events, all or none; they are durable when this returns."""
        ...


class Store(Protocol):
    """Reads without a lock, changes under one."""

    def view(self, kind: ViewKind[D, Any], key: str = "") -> D | None:
        """Return the view as of now, without writing anything."""
        ...

    def views(self, kind: ViewKind[D, Any]) -> Mapping[str, D]:
        """Return every view of a kind, by its key."""
        ...

    def entries(self, after: Position = START) -> Iterator[LogEntry]:
        """Yield the records after a place, in order."""
        ...

    def recent(self) -> Sequence[LogEntry]:
        """Return the newest part of the log, in order."""
        ...

    def change(self) -> AbstractContextManager[Change]:
        """Take the lock; the views are brought up to date when the change ends."""
        ...
