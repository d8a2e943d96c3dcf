"""Make a change in the database: one transaction, which holds the row of the workspace from its first look to its end.

Nothing is sent before the first question, which takes the lock, the head and the views asked for in one round trip. The second
one has the events, the views and the commit. Views that belong together come together, so that there is rarely a third.
"""

from collections.abc import Iterable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar, cast

from guard import __version__
from guard.core.agents.registry import AGENT_REGISTRY, GLOBAL_REGISTRY
from guard.core.log.events import BaseEvent, SegmentOpened
from guard.core.log.record import START, LogEntry, Position, decode_alone, encode
from guard.core.log.replay import feed_fold, touched_paths
from guard.core.log.table import view_kinds
from guard.core.log.view import (
    DamagedView,
    Fold,
    NewerView,
    OlderView,
    ViewDocument,
    ViewKind,
    seal,
    unseal,
)
from guard.errors import StateProblem, StoreUnavailable
from guard.store.postgres.session import Connection, Query, Rows, ServerSession, begin, send

if TYPE_CHECKING:
    from guard.store.postgres.store import PostgresStore

D = TypeVar("D", bound=ViewDocument)
F = TypeVar("F", bound=Fold[Any])
_MOST_MISSED = 2000
_NOTIFY_SECONDS = 1.0
_HEAD = "SELECT head_segment, head_offset, head_seq, head_hash FROM guard.workspace WHERE id = %s"
_VIEWS = "SELECT path, document FROM guard.view WHERE workspace = %s AND (path = ANY(%s) OR starts_with(path, %s))"


class StoreState:
    """What a store has read so far: it goes on from there."""

    def __init__(self) -> None:
        self.head: Position | None = None
        self.folds: dict[str, Fold[Any]] = {}
        self.notified = 0.0

    def forget(self) -> None:
        self.head = None
        self.folds.clear()


class PostgresChange:
    def __init__(self, store: "PostgresStore", session: ServerSession, state: StoreState) -> None:
        self._store = store
        self._session = session
        self._state = state
        self._workspace = 0
        self._connection: Connection | None = None
        self._entries: list[tuple[bytes, LogEntry]] = []
        self._touched: dict[str, ViewKind[Any, Any]] = {}

    @property
    def head(self) -> Position:
        assert self._state.head is not None
        return self._state.head

    def refuse_damage(self) -> None:
        # The server keeps pages whole by checksums of its own, and `guard verify` reads the chain.
        self._need(())

    def view(self, kind: ViewKind[D, Any], key: str = "") -> D | None:
        fold = self.fold(kind, key)
        return fold.document() if fold.reached.seq else None

    def fold(self, kind: ViewKind[Any, F], key: str = "") -> F:
        path = kind.path(key)
        self._need((path,))
        return cast(F, self._state.folds[path])

    def recovery_reason(self, kind: ViewKind[Any, Any], key: str = "") -> str | None:  # noqa: ARG002
        # Views are rows of the transaction that their events are in.
        return None

    def find_event(self, event_id: str) -> BaseEvent | None:
        for _, entry in self._entries:
            if entry.event.id == event_id:
                return entry.event
        self._need(())
        query = "SELECT line FROM guard.event WHERE workspace = %s AND id = %s ORDER BY seq LIMIT 1"
        (rows,) = self._run((query, [self._workspace, event_id]))
        return decode_alone(rows[0][0]) if rows else None

    def append(self, *events: BaseEvent) -> Sequence[LogEntry]:
        if not events:
            return ()
        paths = list(dict.fromkeys(path for event in events for path in touched_paths(event)))
        self._need(paths)
        segment, offset, seq, prev = self.head
        if seq == 0:
            events = (_opening_event(events[0]), *events)
        added, more = [], len(events)
        for event in events:
            more -= 1
            seq += 1
            line, prev = encode(event, seq, prev, more)
            offset += len(line)
            entry = LogEntry(event, Position(segment, offset, seq, prev), more)
            added.append((line[:-1], entry))
        for _, entry in added:
            self._feed(entry)
        self._entries += added
        self._state.head = added[-1][1].position
        return [entry for _, entry in added]

    def _feed(self, entry: LogEntry) -> None:
        for path in touched_paths(entry.event):
            fold = self._state.folds.get(path)
            if fold is not None:
                feed_fold(fold, entry.event, entry.position, path)
                self._touched[path] = kind_of(path)

    def _need(self, paths: Iterable[str]) -> None:
        """Have these views at hand, and the lock."""
        missing = [path for path in paths if path not in self._state.folds]
        if self._connection is not None and not missing:
            return
        wanted, prefix = _group(missing)
        self._workspace = self._store.number()
        views: Query = (_VIEWS, [self._workspace, wanted, prefix])
        if self._connection is not None:
            (rows,) = self._run(views)
        else:
            rows = self._begin(views)
            missing = [path for path in missing if path not in self._state.folds]
        self._take(rows, missing)

    def _begin(self, views: Query) -> Rows:
        state, since = self._state, self._state.head.seq if self._state.head else -1
        missed: Query = (
            "SELECT seq, line FROM guard.event WHERE workspace = %s AND seq > %s AND %s >= 0 ORDER BY seq LIMIT %s",
            [self._workspace, since, since, _MOST_MISSED + 1],
        )
        opened = begin(self._session.lock_timeout)
        head_row: Query = (f"{_HEAD} FOR UPDATE", [self._workspace])

        def take_lock(connection: Connection) -> list[Rows]:
            self._connection = connection
            return send(connection, [*opened, head_row, missed, views])

        with self._session.translate():
            *_, heads, lines, rows = self._session.attempt(take_lock)
        if not heads:
            raise StateProblem(
                f"{self._session.dsn.shown} has no workspace {self._session.name!r} any more",
                "run the command again to begin a new one",
            )
        head = Position(*heads[0])
        if state.head is not None and (len(lines) > _MOST_MISSED or head.seq < state.head.seq):
            state.forget()
        elif state.head is not None:
            for entry in decode_lines((line for _, line in lines), state.head):
                for path in touched_paths(entry.event):
                    if path in state.folds:
                        feed_fold(state.folds[path], entry.event, entry.position, path)
        state.head = head
        return rows

    def _take(self, rows: Rows, missing: Iterable[str]) -> None:
        folds = self._state.folds
        found: dict[str, bytes] = dict(rows)
        for path in (*found, *missing):
            if path not in folds:
                kind = kind_of(path)
                folds[path] = self._store.restore(kind, path, found.get(path))

    def _run(self, *queries: Query) -> list[Rows]:
        # Only ever on the connection that has the lock: on another one, what others have recorded since would be overwritten.
        connection = self._connection
        assert connection is not None
        try:
            if connection.closed:
                raise StoreUnavailable(
                    f"the connection to {self._session.dsn.shown} was lost; nothing was recorded",
                    "try again",
                )
            with self._session.translate():
                return send(connection, queries)
        except BaseException:
            self._session.close()
            self._state.forget()
            raise

    def finish(self) -> None:
        """Commit what was appended; also if the caller has failed since, because it was told that it is recorded."""
        if self._connection is None:
            return
        writes = self._writes() if self._entries else ()
        if self._entries or not self._connection.closed:
            self._run(*writes, ("COMMIT", ()))

    def _writes(self) -> Iterable[Query]:
        events = [(e.position.seq, e.event.id, e.event.type, line) for line, e in self._entries]
        views = [
            (path, fold.reached.seq, seal(fold.document()))
            for path in self._touched
            for fold in (self._state.folds[path],)
        ]
        yield insert_events(self._workspace, events)
        if views:
            yield upsert_views(self._workspace, views)
        yield set_head(self._workspace, self.head)
        if monotonic() - self._state.notified > _NOTIFY_SECONDS:
            self._state.notified = monotonic()
            yield ("SELECT pg_notify(%s, '')", [channel(self._workspace)])


def insert_events(workspace: int, events: Sequence[tuple[int, str, str, bytes]]) -> Query:
    seqs, ids, types, lines = (list(column) for column in zip(*events, strict=True))
    text = (
        "INSERT INTO guard.event (workspace, seq, id, type, line)"
        " SELECT %s, * FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::bytea[])"
    )
    return text, [workspace, seqs, ids, types, lines]


def upsert_views(workspace: int, views: Sequence[tuple[str, int, bytes]]) -> Query:
    paths, seqs, documents = (list(column) for column in zip(*views, strict=True))
    text = (
        "INSERT INTO guard.view (workspace, path, seq, document)"
        " SELECT %s, * FROM unnest(%s::text[], %s::bigint[], %s::bytea[])"
        " ON CONFLICT (workspace, path) DO UPDATE SET seq = excluded.seq, document = excluded.document"
    )
    return text, [workspace, paths, seqs, documents]


def set_head(workspace: int, head: Position) -> Query:
    text = (
        "UPDATE guard.workspace SET head_segment = %s, head_offset = %s, head_seq = %s, head_hash = %s"
        " WHERE id = %s"
    )
    return text, [*head, workspace]


def channel(workspace: int) -> str:
    return f"guard_{workspace}"


def _group(paths: Sequence[str]) -> tuple[list[str], str]:
    """Return the paths to read with these, and a beginning of paths that are all read."""
    wanted, prefix = list(paths), "\x01"  # No path begins with that.
    for path in paths:
        if path.startswith("worktrees.d/"):
            prefix = path[: path.rindex("/") + 1]
        elif AGENT_REGISTRY.key_in(path) is not None:
            wanted.append(GLOBAL_REGISTRY.path(""))
    return wanted, prefix


def kind_of(path: str) -> ViewKind[Any, Any]:
    return next(kind for kind in view_kinds() if kind.key_in(path) is not None)


def read_document(kind: ViewKind[D, Any], data: bytes, path: str) -> D | None:
    """Return the document of a row; None if it has to be folded again from the log."""
    try:
        return unseal(bytes(data), kind.document)
    except NewerView as error:
        raise StateProblem(f"{path}: {error}; a newer guard wrote it", "upgrade guard") from None
    except (OlderView, DamagedView):
        return None


def decode_lines(lines: Iterable[bytes], after: Position) -> Iterable[LogEntry]:
    """Yield the entries of lines that follow a place, checked as the records of a file are."""
    from guard.core.log.record import BadRecord, NewerRecord, decode

    at = after
    for line in lines:
        seq = at.seq + 1
        try:
            event, digest, more = decode(bytes(line), seq, at.hash)
        except NewerRecord as error:
            raise StateProblem(f"record {seq}: {error}", "upgrade guard") from None
        except BadRecord as error:
            raise StateProblem(
                f"record {seq} of the log: {error}",
                "restore the database from its backup; `guard verify` says more",
            ) from None
        segment, offset = at.segment, at.offset
        if isinstance(event, SegmentOpened) and at.seq:
            segment, offset = segment + 1, 0
        at = Position(segment, offset + len(line) + 1, seq, digest)
        yield LogEntry(event, at, more)


def _opening_event(first: BaseEvent) -> SegmentOpened:
    segment = START.segment
    return SegmentOpened(
        at=first.at, id=f"segment-{segment}", segment=segment, guard_version=__version__
    )
