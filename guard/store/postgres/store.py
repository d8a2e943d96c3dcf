"""Keep the store of a workspace in PostgreSQL: the bytes of the log line by line, the views and the leases as rows."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from itertools import groupby
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg

from guard.core.agents.registry import AGENT_REGISTRY
from guard.core.log.events import LogRestarted
from guard.core.log.record import START, LogEntry, Position, unseal_line
from guard.core.log.replay import Replay
from guard.core.log.reports import Finding, RebuildReport, VerifyReport
from guard.core.log.view import ViewDocument, ViewKind, seal
from guard.core.snapshots.snapshot import Anchor
from guard.errors import Refused, StateProblem, StoreUnavailable
from guard.store.postgres.agent_rows import (
    RegistryReplay,
    is_registry,
    join_registry,
    select_registry,
    select_task_registries,
)
from guard.store.postgres.change import PostgresChange, StoreState, channel
from guard.store.postgres.remake import (
    read_documents,
    read_lines,
    remake_views,
    replay_log,
    write_replay,
)
from guard.store.postgres.session import Query, ServerSession, open_connection
from guard.store.postgres.view_rows import (
    UnusableRow,
    decode_lines,
    in_batches,
    insert_events,
    kind_of,
    path_range,
    read_row,
    set_head,
)
from guard.store.transfer import LogLine, check_lines

if TYPE_CHECKING:
    from pathlib import Path

    from guard.store import Change
    from guard.store.dsn import Dsn

D = TypeVar("D", bound=ViewDocument)
_BATCH, _RECENT = 2000, 5000
_LINES = "SELECT line FROM guard.event WHERE workspace = %s AND seq > %s ORDER BY seq LIMIT %s"
_AT = "SELECT path, document FROM guard.view WHERE workspace = %s AND path = ANY(%s)"
_BELOW = "SELECT path, document FROM guard.view WHERE workspace = %s AND path >= %s AND path < %s"
_NAMED = (
    "SELECT path, document FROM guard.view WHERE workspace = %s AND right(path, length(%s)) = %s"
)
_BACKUP = "restore the database from its backup"


class PostgresStore:
    """A workspace in a database. It remembers what it has read, so that a long-lived process only reads what is new."""

    def __init__(self, dsn: "Dsn", name: str, *, lock_timeout_seconds: float) -> None:
        self._session = ServerSession(dsn, name, lock_timeout_seconds, remake_views)
        self._state = StoreState()
        self._known: Position | None = None

    def number(self) -> int:
        """Return the number of the workspace; make it where there is none."""
        found = self._session.workspace(create=True)
        assert found is not None
        return found

    def _read(self, text: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run one query whose first value is the workspace; nothing is there where there is no workspace yet."""
        with self._session.guarded:
            found = self._session.workspace()
            if found is None:
                return []
            (rows,) = self._session.run((text, [found, *values]))
        return rows

    def view(self, kind: ViewKind[D, Any], key: str = "", part: str | None = None) -> D | None:
        path = kind.path(key)
        if is_registry(path):
            return self._registry(kind, path, part)
        rows = self._read(
            "SELECT document FROM guard.view WHERE workspace = %s AND path = %s", path
        )
        return self._document(kind, path, rows[0][0]) if rows else None

    def _registry(self, kind: ViewKind[D, Any], path: str, part: str | None) -> D | None:
        with self._session.guarded:
            found = self._session.workspace()
            if found is None:
                return None
            (rows,) = self._session.run(select_registry(found, path, part))
        try:
            document: D | None = join_registry(kind, path, rows)
        except UnusableRow:
            return self._from_log(kind, path)
        return document

    def views(self, kind: ViewKind[D, Any], keys: Iterable[str] | None = None) -> dict[str, D]:
        if kind.path("") == AGENT_REGISTRY.path(""):
            every = self._task_registries(kind)
            wanted = every if keys is None else set(keys)
            return {key: view for key, view in every.items() if key in wanted}
        if keys is not None:
            return self._parse(kind, self._read(_AT, [kind.path(key) for key in keys]))
        query = (_BELOW, *path_range(kind.folder)) if kind.folder else (_NAMED, *[kind.file] * 2)
        return self._parse(kind, self._read(*query))

    def _parse(self, kind: ViewKind[D, Any], rows: list[tuple[Any, ...]]) -> dict[str, D]:
        found: dict[str, D] = {}
        for path, data in rows:
            key = kind.key_in(path)
            document = self._document(kind, path, data) if key is not None else None
            if key is not None and document is not None:
                found[key] = document
        return dict(sorted(found.items()))

    def _task_registries(self, kind: ViewKind[D, Any]) -> dict[str, D]:
        with self._session.guarded:
            workspace = self._session.workspace()
            if workspace is None:
                return {}
            (rows,) = self._session.run(select_task_registries(workspace))
        found: dict[str, D] = {}
        for path, group in groupby(rows, key=lambda row: row[0]):
            try:
                document = join_registry(kind, path, [row[1:] for row in group])
            except UnusableRow:
                document = self._from_log(kind, path)
            if document is not None:
                found[kind.key_in(path) or ""] = document
        return dict(sorted(found.items()))

    def _document(self, kind: ViewKind[D, Any], path: str, data: bytes) -> D | None:
        try:
            return read_row(kind, data, path)
        except UnusableRow:
            return self._from_log(kind, path)

    def _from_log(self, kind: ViewKind[D, Any], path: str) -> D | None:
        """Fold a view whose row cannot be used from the whole log."""
        replay = Replay(only={path})
        for entry in self.entries():
            replay.feed(entry)
        fold = replay.folds.get(path, kind.fold(kind.key_in(path) or ""))
        return fold.document() if fold.reached.seq else None

    def remake(self, workspace: int) -> Iterator[Query]:
        """Yield what replaces all views by those that the log makes; a transaction is open."""
        with self._session.translate():
            yield from remake_views(self._session.connect(), workspace)

    def entries(self, after: Position = START) -> Iterator[LogEntry]:
        at = after
        while True:
            lines = [line for (line,) in self._read(_LINES, at.seq, _BATCH)]
            for entry in decode_lines(lines, at):
                yield entry
                at = entry.position
            if len(lines) < _BATCH:
                return

    def recent(self) -> Sequence[LogEntry]:
        head = self._head()
        if head.seq <= _RECENT:
            return list(self.entries())
        first = head.seq - _RECENT
        lines = [bytes(line) for (line,) in self._read(_LINES, first, _RECENT)]
        begun = unseal_line(lines[0])["prev"] if lines else head.hash
        return list(decode_lines(lines, Position(head.segment, 0, first, begun)))

    def _head(self) -> Position:
        rows = self._read(
            "SELECT head_segment, head_offset, head_seq, head_hash FROM guard.workspace WHERE id = %s"
        )
        return Position(*rows[0]) if rows else START

    @contextmanager
    def change(self, timeout: float | None = None) -> "Iterator[Change]":
        session = self._session
        limit = session.lock_timeout if timeout is None else timeout
        if not session.guarded.acquire(timeout=limit):
            raise StoreUnavailable(
                f"another thread of this process has held {session.dsn.shown} for {limit:g} s",
                "wait until its change has ended",
            )
        kept, session.lock_timeout = session.lock_timeout, limit
        change = PostgresChange(self, session, self._state)
        try:
            try:
                yield change
            finally:
                change.finish()
            self._known = self._state.head or self._known
        finally:
            session.lock_timeout = kept
            session.guarded.release()

    def bell(self) -> "PostgresBell":
        return PostgresBell(self)

    def exists(self) -> bool:
        return self._session.workspace() is not None

    def refuse_lost_log(self) -> None:
        """The server answers for its log; what it has lost, its backup has."""

    def has_state_of(self, worktree: str) -> bool:
        return bool(
            self._read(
                "SELECT 1 FROM guard.view WHERE workspace = %s AND path >= %s AND path < %s LIMIT 1",
                *path_range(f"worktrees.d/{worktree}/"),
            )
        )

    def hold_lease(self, name: str, seconds: float) -> None:
        text = (
            "INSERT INTO guard.lease (workspace, name, until)"
            " VALUES (%s, %s, clock_timestamp() + make_interval(secs => %s))"
            " ON CONFLICT (workspace, name) DO UPDATE SET until = greatest(guard.lease.until, excluded.until)"
        )
        old = "DELETE FROM guard.lease WHERE workspace = %s AND until < clock_timestamp() - interval '1 day'"
        self._session.run((text, [self.number(), name, seconds]), (old, [self.number()]))

    def has_lease(self, name: str) -> bool:
        return bool(
            self._read(
                "SELECT 1 FROM guard.lease WHERE workspace = %s AND name = %s AND until > clock_timestamp()",
                name,
            )
        )

    def seconds_of_lease(self, name: str) -> float:
        """Return for how long any workspace of the database holds the lease yet; 0 if none does."""
        if self._session.workspace() is None and not self._session.has_tables():
            return 0.0
        text = "SELECT extract(epoch FROM max(until) - clock_timestamp())::float8 FROM guard.lease WHERE name = %s"
        ((left,),) = self._session.run((text, [name]))[0]
        return max(0.0, left or 0.0)

    def end_lease(self, name: str) -> None:
        self._read(
            "WITH ended AS (DELETE FROM guard.lease WHERE workspace = %s AND name = %s) SELECT 1",
            name,
        )

    def journal(self, worktree: str) -> AbstractContextManager[None]:  # noqa: ARG002
        return nullcontext()

    def refresh(self) -> None:
        """There is no journal to come back from."""

    # Upkeep

    def verify(self, anchors: Sequence[Anchor] = ()) -> VerifyReport:
        found = self._session.workspace()
        findings: list[Finding] = []
        replay, documents, head = Replay(), dict[str, bytes](), START
        if found is not None:
            with self._session.guarded, self._session.translate():
                connection = self._session.connect()
                with connection.transaction():
                    connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                    documents = read_documents(connection, found)
                    head = self._head()
                    findings = list(self._replay(connection, found, replay, anchors))
        if not findings and head != replay.position:
            problem = f"says record {head.seq}, but the log ends at {replay.position.seq}"
            findings.append(Finding(file="workspace", place="", problem=problem, hint=_BACKUP))
        if not findings:
            findings = list(_compare_views(replay, documents))
        return VerifyReport(
            ok=not findings,
            segments=replay.position.segment if replay.position.seq else 0,
            records=replay.position.seq,
            head=replay.position.hash,
            views=len(documents),
            behind=(),
            torn_bytes=0,
            findings=tuple(findings),
        )

    def _replay(
        self,
        connection: psycopg.Connection[tuple[Any, ...]],
        workspace: int,
        replay: Replay,
        anchors: Sequence[Anchor],
    ) -> Iterator[Finding]:
        remembered = {anchor.seq: anchor for anchor in anchors}
        try:
            for entry in decode_lines(read_lines(connection, workspace), START):
                replay.feed(entry)
                anchor = remembered.pop(entry.position.seq, None)
                if anchor is not None and anchor.hash != entry.position.hash:
                    yield _contradiction(anchor, "another history")
        except StateProblem as error:
            yield Finding(file="event", place="", problem=error.message, hint=error.hint)
            return
        for anchor in remembered.values():
            yield _contradiction(anchor, "a record that is gone")

    def rebuild(self) -> RebuildReport:
        workspace, session = self.number(), self._session
        with session.guarded, session.translate():
            self._state.forget()
            connection = session.connect()
            with connection.transaction():
                _execute(connection, _lock(workspace))
                before = read_documents(connection, workspace)
                replay = replay_log(connection, workspace)
                made = {path: seal(fold.document()) for path, fold in replay.folds.items()}
                written = sorted(path for path in made if before.get(path) != made[path])
                if written or before.keys() - made.keys():
                    for query in write_replay(workspace, replay):
                        _execute(connection, query)
        return RebuildReport(
            records=replay.position.seq,
            unchanged=tuple(sorted(made.keys() - set(written))),
            written=tuple(written),
            set_aside=(),
        )

    def salvage(self, now: datetime, event_id: str) -> RebuildReport:  # noqa: ARG002
        raise Refused("a log in PostgreSQL is not salvaged by guard", _BACKUP)

    def restart(self, event: LogRestarted) -> tuple[str, ...]:  # noqa: ARG002
        raise Refused(
            "a log in PostgreSQL is not begun anew",
            f"name another workspace in the database (?guard_workspace=NAME), or {_BACKUP}",
        )

    def records(self) -> Iterator[LogLine]:
        at = START
        while True:
            lines = [bytes(line) for (line,) in self._read(_LINES, at.seq, _BATCH)]
            for line, entry in zip(lines, decode_lines(lines, at), strict=True):
                yield LogLine(line, entry)
                at = entry.position
            if len(lines) < _BATCH:
                return

    def import_lines(self, lines: Iterable[bytes]) -> int:
        workspace, session = self.number(), self._session
        replay = RegistryReplay()
        with session.guarded, session.translate():
            self._state.forget()
            connection = session.connect()
            with connection.transaction():
                row = _execute(connection, _lock(workspace)).fetchone()
                if row is None or row[0]:
                    raise Refused(
                        f"{session.dsn.shown} has a log already",
                        "import into a workspace without history: ?guard_workspace=NAME names another",
                    )
                for batch in in_batches(check_lines(lines), _BATCH):
                    events = [(e.position.seq, e.event.id, e.event.type, line) for line, e in batch]
                    for _, entry in batch:
                        replay.feed(entry)
                    _execute(connection, insert_events(workspace, events))
                for query in write_replay(workspace, replay):
                    _execute(connection, query)
                if replay.position.seq:
                    _execute(connection, set_head(workspace, replay.position))
        return replay.position.seq

    def anchor(self) -> None:
        """An agent has no way to the server's files: nothing has to be remembered against it."""

    def survey(self) -> None:
        """Nothing lies open to the agent but rows, which the chain covers."""
        self._known = self._head()

    def compare_survey(self) -> None:
        """The views are rows of the same transaction as the events."""

    def refuse_changed_log(self) -> None:
        known = self._known
        if known is None or not known.seq:
            return
        if not self.has_record(known.seq, known.hash):
            raise StateProblem(
                f"record {known.seq} of the log in {self._session.dsn.shown} is another one than before",
                "find out which program changed it; `guard verify` says more",
            )

    def refuse_lost_segments(self) -> None:
        """There are no parts that could be lost."""

    def recorded_ids(self, ids: Sequence[str]) -> frozenset[str]:
        """Return those of the ids under which an event is recorded."""
        text = "SELECT id FROM guard.event WHERE workspace = %s AND id = ANY(%s)"
        return frozenset(name for (name,) in self._read(text, list(ids)))

    def has_record(self, seq: int, digest: str) -> bool:
        """Tell whether the record with this number has this hash."""
        rows = self._read(_LINES, seq - 1, 1)
        return bool(rows) and bytes(rows[0][0]).endswith(f'"hash":"{digest}"}}'.encode())

    def listen(self) -> "psycopg.Connection[tuple[Any, ...]]":
        """Return a connection of its own that hears of changes."""
        with self._session.translate():
            connection = open_connection(self._session.dsn)
            connection.execute(f"LISTEN {channel(self.number())}".encode())
        return connection

    def fleet(self) -> "Iterator[tuple[str, int, PostgresStore]]":
        """Yield every workspace of the database: its name, how many records it has, and its store while it is looked at."""
        if self._session.workspace() is None and not self._session.has_tables():
            return
        rows = self._session.run(("SELECT name, head_seq FROM guard.workspace ORDER BY name", ()))
        for name, records in rows[0]:
            store = PostgresStore(
                self._session.dsn, name, lock_timeout_seconds=self._session.lock_timeout
            )
            try:
                yield name, records, store
            finally:
                store.close()

    def head_seq(self) -> int:
        return self._head().seq

    def close(self) -> None:
        self._session.close()


class PostgresBell:
    """Hears of changes by notifications, and looks for itself now and then: the number of the last record is the truth."""

    files: "tuple[Path, ...]" = ()
    patience = 0.5
    _LOOK_SECONDS = 5.0

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._seq = -1
        self._looked = 0.0

    def stamp(self) -> object:
        try:
            if self._is_due():
                self._seq, self._looked = self._store.head_seq(), monotonic()
        except StoreUnavailable:
            self.close()  # No news is not the news that nothing happened: the next look tries again.
        return self._seq

    def _is_due(self) -> bool:
        if self._connection is None:
            self._connection = self._store.listen()
            return True
        try:
            heard = list(self._connection.notifies(timeout=0))
        except psycopg.Error:
            self.close()
            return True
        return bool(heard) or monotonic() - self._looked > self._LOOK_SECONDS

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _lock(workspace: int) -> Query:
    return "SELECT head_seq FROM guard.workspace WHERE id = %s FOR UPDATE", [workspace]


def _execute(
    connection: "psycopg.Connection[tuple[Any, ...]]", query: Query
) -> "psycopg.Cursor[tuple[Any, ...]]":
    text, values = query
    return connection.execute(text.encode(), values)


def _contradiction(anchor: Anchor, what: str) -> Finding:
    return Finding(
        file="event",
        place=f"record {anchor.seq}",
        problem=f"snapshot {anchor.snapshot} remembers {what}",
        hint="find out which program changed the log; guard says this until that snapshot is pruned",
    )


def _compare_views(replay: Replay, rows: dict[str, bytes]) -> Iterator[Finding]:
    hint = "run `guard rebuild` to make it again from the log"
    for path in sorted(rows.keys() | replay.folds.keys()):
        fold, data = replay.folds.get(path), rows.get(path)
        if fold is None:
            problem = "is there, but the log knows nothing of it"
        elif data is None:
            problem = "is missing"
        elif not _is_readable(path, data):
            problem = "cannot be read, or has an older format"
        elif data != seal(fold.document()):
            problem = "is not what the log says"
        else:
            continue
        yield Finding(file=path, place="", problem=problem, hint=hint)


def _is_readable(path: str, data: bytes) -> bool:
    try:
        read_row(kind_of(path), data, path)
    except UnusableRow:
        return False
    return True
