"""Keep the records of a run in a file while the server does not answer, and hand them in later, once.

A journal goes on where the log ended when this machine last saw it: its lines are those of a log, chained to that record. Other
machines may have recorded since, so the events get new numbers when they are handed in; their ids say which the log has.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from guard.core.log.events import BaseEvent
from guard.core.log.record import LogEntry, Position, encode
from guard.core.log.replay import feed_fold, touched_paths
from guard.core.log.view import Fold, ViewDocument, ViewKind
from guard.errors import ServerLost, StateProblem, StoreUnavailable
from guard.store.postgres.view_rows import decode_lines
from guard.system.private_files import Folder, close, sync_data, try_lock, write_all

if TYPE_CHECKING:
    from guard.store.postgres.store import PostgresStore

D = TypeVar("D", bound=ViewDocument)
F = TypeVar("F", bound=Fold[Any])
FOLDER = "journal.d"
_JOURNAL, _CHANGES = ".jsonl", ".changes"
KnownView = tuple[ViewKind[Any, Any], str, ViewDocument | None]


class WorktreeWatch:
    """Counts the changes that other guards of this machine make to the views of a work tree.

    They tell in a file, before they commit and while they hold the lock of the log. A run that goes on has the file locked.
    """

    def __init__(self, folder: Path, worktree: str) -> None:
        with _make(folder) as opened:
            self._file = opened.open_file(worktree + _CHANGES, os.O_RDWR | os.O_CREAT)
        fcntl.flock(self._file, fcntl.LOCK_EX)

    @property
    def count(self) -> int:
        return os.fstat(self._file).st_size

    def close(self) -> None:
        close(self._file)


def tell_of_change(folder: Path, worktree: str) -> None:
    """Tell a run that watches over the work tree that its views change."""
    opened = Folder.open(folder / FOLDER)
    if opened is None:
        return
    with opened:
        try:
            file = opened.open_file(worktree + _CHANGES, os.O_WRONLY | os.O_APPEND)
        except FileNotFoundError:
            return
        try:
            if not try_lock(file, fcntl.LOCK_SH):
                write_all(file, b".")
        finally:
            close(file)


class LocalRecords:
    """The views of a work tree as this machine last saw them, and what was recorded here since."""

    def __init__(
        self,
        folder: Path,
        worktree: str,
        known: Mapping[str, KnownView],
        head: Position,
        why: ServerLost,
    ) -> None:
        self.path = folder / FOLDER / (worktree + _JOURNAL)
        self._name = worktree + _JOURNAL
        self._folder = folder
        self._start = self._head = head
        self.why = why
        self._events: dict[str, BaseEvent] = {}
        self._lines: list[bytes] = []
        self._folds: dict[str, Fold[Any]] = {}
        for path, (kind, key, document) in known.items():
            fold = self._folds[path] = kind.fold(key)
            if document is not None:
                fold.restore(document)

    def expect(self, kind: ViewKind[Any, Any], key: str = "", part: str = "") -> None:
        """All that there is to see is at hand."""

    def expect_event(self, event_id: str) -> None:
        """The events of the journal are at hand."""

    def refuse_damage(self) -> None:
        """The journal has only what this process wrote."""

    def recovery_reason(self, kind: ViewKind[Any, Any], key: str = "") -> str | None:  # noqa: ARG002
        return None

    def view(self, kind: ViewKind[D, Any], key: str = "") -> D | None:
        fold = self.fold(kind, key)
        return cast(D, fold.document()) if fold.reached.seq else None

    def fold(self, kind: ViewKind[Any, F], key: str = "") -> F:
        """Return the state; what only the server knows is as unavailable as the server."""
        fold = self._folds.get(kind.path(key))
        if fold is None:
            raise self.why
        return cast(F, fold)

    def find_event(self, event_id: str) -> BaseEvent | None:
        if event_id not in self._events:
            raise self.why
        return self._events[event_id]

    def append(self, *events: BaseEvent) -> Sequence[LogEntry]:
        paths = [touched_paths(event) for event in events]
        if any(path not in self._folds for touched in paths for path in touched):
            raise self.why
        added, more = [], len(events)
        segment, offset, seq, prev = self._head
        for event, touched in zip(events, paths, strict=True):
            more -= 1
            seq += 1
            line, prev = encode(event, seq, prev, more)
            offset += len(line)
            entry = LogEntry(event, Position(segment, offset, seq, prev), more)
            for path in touched:
                feed_fold(self._folds[path], event, entry.position, path)
            self._lines.append(line)
            self._events[event.id] = event
            added.append(entry)
        self._head = Position(segment, offset, seq, prev)
        return added

    @property
    def count(self) -> int:
        return self._head.seq - self._start.seq

    def commit(self) -> None:
        """Write what was appended, so that it is there after a crash."""
        if not self._lines:
            return
        try:
            with _make(self._folder) as folder:
                is_new = not folder.exists(self._name)
                file = folder.open_file(self._name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
                try:
                    first = json.dumps({"after": self._start}).encode() + b"\n" if is_new else b""
                    write_all(file, first + b"".join(self._lines))
                    sync_data(file)
                finally:
                    close(file)
                if is_new:
                    folder.sync()
        except OSError as error:
            raise StoreUnavailable(
                f"cannot write {self.path}: {error.strerror}", "free some space on the disk"
            ) from None
        self._lines.clear()


def find_journals(folder: Path) -> list[str]:
    """Return the paths of the journals that wait in the local half of a workspace."""
    opened = Folder.open(folder / FOLDER)
    if opened is None:
        return []
    with opened:
        return [opened.path_of(name) for name in opened.names() if name.endswith(_JOURNAL)]


def hand_in(store: "PostgresStore", folder: Path, own: str | None = None) -> int:
    """Record what the journals hold, and delete them; return how many records that were.

    A run that still writes its journal hands it in itself: `own` is its work tree.
    """
    opened, count = Folder.open(folder / FOLDER), 0
    if opened is None:
        return 0
    with opened:
        for name in opened.names():
            worktree = name.removesuffix(_JOURNAL)
            if name == worktree:
                continue
            with _alone(opened, worktree, is_own=worktree == own) as is_alone:
                if is_alone:
                    count += _hand_in(store, opened, name)
    return count


def _hand_in(store: "PostgresStore", folder: Folder, name: str) -> int:
    data = folder.read(name)
    if data is None:
        return 0
    start, events = _read(data, folder.path_of(name))
    missing: list[BaseEvent] = []
    with store.change() as change:
        change.refuse_damage()  # Takes the lock, under which the log is asked what it has.
        if not store.has_record(start.seq, start.hash):
            raise StateProblem(
                f"{folder.path_of(name)} goes on with another log than the one of this workspace",
                "name the server and the workspace that it was written for, or move the file away",
            )
        known = store.recorded_ids([event.id for event in events])
        missing = [event for event in events if event.id not in known]
        change.append(*missing)
    folder.remove(name)
    folder.sync()
    return len(missing)


def _read(data: bytes, path: str) -> tuple[Position, list[BaseEvent]]:
    # What follows the last newline, and a change that is not there as a whole, was never acknowledged.
    first, *lines = data[: data.rfind(b"\n") + 1].splitlines() or [b""]
    try:
        start = Position(*json.loads(first)["after"])
        entries = list(decode_lines(lines, start))
    except (StateProblem, ValueError, TypeError, LookupError) as error:
        raise StateProblem(
            f"{path} is damaged: {error}", "move it away; `guard check` judges the iteration again"
        ) from None
    while entries and entries[-1].more:
        entries.pop()
    return start, [entry.event for entry in entries]


@contextmanager
def _alone(folder: Folder, worktree: str, *, is_own: bool) -> Iterator[bool]:
    """Tell whether no run writes the journal now, and keep it so."""
    if is_own:
        yield True
        return
    file = folder.open_file(worktree + _CHANGES, os.O_RDWR | os.O_CREAT)
    try:
        yield try_lock(file)
    finally:
        close(file)


@contextmanager
def _make(folder: Path) -> Iterator[Folder]:
    with Folder.make(folder) as workspace:
        opened = workspace.child(FOLDER, create=True)
        assert opened is not None
        with opened:
            yield opened
