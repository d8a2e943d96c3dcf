"""Keep the log and its views. One contract, `Store`; files are the default implementation."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from datetime import datetime

    from guard.core.log.events import BaseEvent, LogRestarted
    from guard.core.log.record import LogEntry, Position
    from guard.core.log.reports import RebuildReport, VerifyReport
    from guard.core.log.view import Fold, ViewDocument, ViewKind
    from guard.core.snapshots.snapshot import Anchor
    from guard.store.transfer import LogLine
    from guard.system.file_events import LogBell

D = TypeVar("D", bound="ViewDocument")
F = TypeVar("F", bound="Fold[Any]")


class Change(Protocol):
    """A change under way: the workspace is ours until it ends."""

    def expect(self, kind: "ViewKind[Any, Any]", key: str = "", part: str = "") -> None:
        """Say which view will be asked for soon, or which agent of a registry: nothing is read yet.

        A server is asked for all of it with the next question; what was not said is asked for when it is needed.
        """
        ...

    def expect_event(self, event_id: str) -> None:
        """Say before the first question that an event will be looked for by its id."""
        ...

    def refuse_damage(self) -> None:
        """Raise StateProblem if a record in the part of the log that is written to is damaged; looked at once."""
        ...

    def view(self, kind: "ViewKind[D, Any]", key: str = "") -> D | None:
        """Return the view as of now, events of this change included; None if no event ever touched it."""
        ...

    def fold(self, kind: "ViewKind[Any, F]", key: str = "") -> F:
        """Return the state while it is being built, to ask it for a part without freezing the whole."""
        ...

    def recovery_reason(self, kind: "ViewKind[Any, Any]", key: str = "") -> str | None:
        """Return why the view had to be folded again from the log; None if it had not.

        `temp_file_exists` if a killed process left half of it behind, which is removed; the view itself is sound then.
        """
        ...

    def find_event(self, event_id: str) -> "BaseEvent | None":
        """Return the event that was recorded under this id, if one was."""
        ...

    def append(self, *events: "BaseEvent") -> "Sequence[LogEntry]":
        """LogLine the events, all or none; they are durable when this returns."""
        ...


class Store(Protocol):
    """Reads without a lock, changes under one."""

    def view(self, kind: "ViewKind[D, Any]", key: str = "", part: str | None = None) -> D | None:
        """Return the view as of now, without writing anything.

        `part` is the id of the one agent that the caller looks for in a registry: the store may leave out the others.
        """
        ...

    def views(self, kind: "ViewKind[D, Any]", keys: Iterable[str] | None = None) -> Mapping[str, D]:
        """Return every view of a kind, by its key, or those with the given keys."""
        ...

    def entries(self, after: "Position" = ...) -> "Iterator[LogEntry]":
        """Yield the records after a place, in order."""
        ...

    def recent(self) -> "Sequence[LogEntry]":
        """Return the newest part of the log, in order."""
        ...

    def change(self, timeout: float | None = None) -> AbstractContextManager[Change]:
        """Take the lock, waiting for so many seconds; the views are brought up to date when the change ends."""
        ...

    def bell(self) -> "LogBell":
        """Return what tells that the log has grown."""
        ...

    def exists(self) -> bool:
        """Tell whether anything was ever kept here."""
        ...

    def refuse_lost_log(self) -> None:
        """Raise if there is no log here, and something remembers one."""
        ...

    def has_state_of(self, worktree: str) -> bool:
        """Tell whether there is a view of the work tree with this key."""
        ...

    def hold_lease(self, name: str, seconds: float) -> None:
        """Hold the lease for so many seconds from now on, by a clock that all who share the store go by."""
        ...

    def has_lease(self, name: str) -> bool:
        """Tell whether the lease is held now."""
        ...

    def end_lease(self, name: str) -> None:
        """Give the lease back; without one nothing happens."""
        ...

    def journal(self, worktree: str) -> AbstractContextManager[None]:
        """Go on with the work tree while the block runs, also without the server that the store may need."""
        ...

    def refresh(self) -> None:
        """Go back to a server that answers again, if the block of `journal` is without it."""
        ...


class Upkeep(Protocol):
    """Look after a store: check it, make its views again, move its log, and notice what an agent does to it."""

    def verify(self, anchors: "Sequence[Anchor]" = ()) -> "VerifyReport":
        """Check the whole log and every view, also against what snapshots remember of the log."""
        ...

    def rebuild(self) -> "RebuildReport":
        """Make every view again from the log."""
        ...

    def salvage(self, now: "datetime", event_id: str) -> "RebuildReport":
        """Go on without the damaged parts; everything that is given up is kept."""
        ...

    def restart(self, event: "LogRestarted") -> tuple[str, ...]:
        """Begin a new log where the old one is gone; return the names under which what was left of it is kept."""
        ...

    def records(self) -> "Iterator[LogLine]":
        """Yield every record of the log with its bytes, checked."""
        ...

    def import_lines(self, lines: Iterable[bytes]) -> int:
        """Take a whole log over, all or nothing, where none is yet; return how many records it has."""
        ...

    def anchor(self) -> None:
        """Have the witness remember the log up to the newest record that this store has seen."""
        ...

    def survey(self) -> None:
        """Look at the state before an agent runs, to compare with later."""
        ...

    def compare_survey(self) -> None:
        """Raise if state became such that guard does not trust it; have lost views made again."""
        ...

    def refuse_changed_log(self) -> None:
        """Raise if a record of the log is another one than at the survey."""
        ...

    def refuse_lost_segments(self) -> None:
        """Raise if a part of the log is missing."""
        ...


class WorkspaceStore(Store, Upkeep, Protocol):
    """What a workspace keeps its records in."""
