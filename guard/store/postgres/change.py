"""Make a change in the database: one transaction, which holds the row of the workspace from its first look to its end.

Nothing is sent before the first question, which takes the lock, the head and what the change is expected to need in one round
trip. The second one has the events, the views and the commit. Views that belong together come together, and callers say
beforehand what else they will ask for, so that there is rarely a third.
"""

from collections.abc import Iterable, Iterator, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar, cast

from guard import __version__
from guard.core.agents.events import RetentionSet
from guard.core.agents.registry import AGENT_REGISTRY, GLOBAL_REGISTRY
from guard.core.log.events import BaseEvent, SegmentOpened
from guard.core.log.record import START, LogEntry, Position, decode_alone, encode
from guard.core.log.replay import feed_fold, touched_paths
from guard.core.log.view import Fold, ViewDocument, ViewKind, seal
from guard.errors import ServerLost, StateProblem
from guard.store.postgres.agent_rows import (
    AgentRows,
    Name,
    agent_of,
    is_registry,
    join_registry,
    seal_summary,
    select_agents,
    select_registry,
)
from guard.store.postgres.session import Connection, Query, Rows, ServerSession, begin, send
from guard.store.postgres.view_rows import (
    UnusableRow,
    insert_events,
    kind_of,
    read_row,
    select_views,
    set_head,
    upsert_views,
)

if TYPE_CHECKING:
    from guard.store.postgres.store import PostgresStore

D = TypeVar("D", bound=ViewDocument)
F = TypeVar("F", bound=Fold[Any])
_MOST_KEPT = 50
_NOTIFY_SECONDS = 1.0
_HEAD = (
    "SELECT head_segment, head_offset, head_seq, head_hash, (SELECT version FROM guard.format)"
    " FROM guard.workspace WHERE id = %s FOR UPDATE"
)
_SEAL_OF = (
    "SELECT right(encode(line, 'escape'), 66) FROM guard.event WHERE workspace = %s AND seq = %s"
)
_BY_ID = "SELECT line FROM guard.event WHERE workspace = %s AND id = %s ORDER BY seq LIMIT 1"


class StoreState:
    """What a store has read so far: a later change only reads what is new."""

    def __init__(self) -> None:
        self.head: Position | None = None
        self.folds: dict[str, Fold[Any]] = {}
        self.notified = 0.0

    def forget(self) -> None:
        self.head = None
        self.folds.clear()

    def known(self) -> dict[str, int]:
        """Return the record that each view has reached."""
        return {path: fold.reached.seq for path, fold in self.folds.items()}

    def trim(self) -> None:
        """Keep only few views, and no part of a registry: those are read anew, agent by agent."""
        for path in [path for path in self.folds if is_registry(path)]:
            del self.folds[path]
        for path in list(self.folds)[:-_MOST_KEPT]:
            del self.folds[path]


class PostgresChange:
    def __init__(self, store: "PostgresStore", session: ServerSession, state: StoreState) -> None:
        self._store = store
        self._session = session
        self._state = state
        self._workspace = 0
        self._connection: Connection | None = None
        self._entries: list[tuple[bytes, LogEntry]] = []
        self._touched: dict[str, ViewKind[Any, Any]] = {}
        self._agents = AgentRows(0, self._ask)
        self._prefixes: set[str] = set()
        self._expected: dict[str, None] = {}
        self._expected_agents: dict[Name, None] = {}
        self._expected_events: dict[str, BaseEvent | None] = {}

    @property
    def head(self) -> Position:
        assert self._state.head is not None
        return self._state.head

    def expect(self, kind: ViewKind[Any, Any], key: str = "", part: str = "") -> None:
        self._expected[kind.path(key)] = None
        if part:
            self._expected_agents[key, part] = None

    def expect_event(self, event_id: str) -> None:
        self._expected_events[event_id] = None

    def refuse_damage(self) -> None:
        # The server keeps pages whole by checksums of its own, and `guard verify` reads the chain.
        self._need(())

    def view(self, kind: ViewKind[D, Any], key: str = "") -> D | None:
        path = kind.path(key)
        fold = self._whole_registry(kind, key) if is_registry(path) else self.fold(kind, key)
        return fold.document() if fold.reached.seq else None

    def _whole_registry(self, kind: ViewKind[D, Any], key: str) -> Fold[D]:
        """Return a registry with all its agents, as of now."""
        path = kind.path(key)
        self._need((path,))
        rows = self._ask(select_registry(self._workspace, path))
        fold: Fold[D] = kind.fold(key)
        document = join_registry(kind, path, rows)
        if document is not None:
            fold.restore(document)
        for _, entry in self._entries:
            if path in touched_paths(entry.event):
                feed_fold(fold, entry.event, entry.position, path)
        return fold

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
        if self._connection is None:
            self.expect_event(event_id)
            self._need(())
        if event_id in self._expected_events:
            return self._expected_events[event_id]
        rows = self._ask((_BY_ID, [self._workspace, event_id]))
        return decode_alone(rows[0][0]) if rows else None

    def append(self, *events: BaseEvent) -> Sequence[LogEntry]:
        if not events:
            return ()
        touched = [(event, touched_paths(event)) for event in events]
        names = (agent_of(event, paths) for event, paths in touched)
        self._need(
            [path for _, paths in touched for path in paths],
            [name for name in names if name is not None],
        )
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
        event, position, _ = entry
        paths = touched_paths(event)
        name = agent_of(event, paths)
        before = self._agent(name) if name is not None else None
        for path in paths:
            feed_fold(self._state.folds[path], event, position, path)
            self._touched[path] = kind_of(path)
        if name is not None:
            overall = self._state.folds[GLOBAL_REGISTRY.path("")]
            self._agents.note(entry, name, before, self._agent(name), cast(Any, overall))
        elif isinstance(event, RetentionSet):
            self._agents.keep(event)

    def _agent(self, name: Name) -> Any:
        fold: Any = self._state.folds[AGENT_REGISTRY.path(name[0])]
        return fold.agent(name[1])

    def _need(self, paths: Sequence[str], names: Sequence[Name] = ()) -> None:
        """Have these views and agents at hand, and the lock."""
        if self._connection is None:
            paths = [*paths, *self._expected]
            names = [*names, *self._expected_agents]
            self._begin(*_group(paths), names)
        elif self._missing(paths) or self._agents.missing(names):
            wanted, prefix = _group(self._missing([*paths, *self._expected]))
            unread = self._agents.missing([*names, *self._expected_agents])
            queries = select_views(self._workspace, wanted, prefix, {})
            answers = self._run(*queries, select_agents(self._workspace, unread))
            self._prefixes.add(prefix)
            self._take(answers, wanted, unread)

    def _missing(self, paths: Iterable[str]) -> list[str]:
        folds = self._state.folds
        missing = [path for path in dict.fromkeys(paths) if path not in folds]
        for path in missing:
            if _prefix_of(path) in self._prefixes:  # All that is there was read.
                self._begin_fold(path)
        return [path for path in missing if path not in folds]

    def _begin(self, wanted: list[str], prefix: str, names: Iterable[Name]) -> None:
        state, names = self._state, list(dict.fromkeys(names))
        self._workspace = self._store.number()
        self._agents = AgentRows(self._workspace, self._ask)
        known = state.head
        ids = list(self._expected_events)
        queries = [
            *begin(self._session.lock_timeout),
            (_HEAD, [self._workspace]),
            (_SEAL_OF, [self._workspace, known.seq if known else 0]),
            *((_BY_ID, [self._workspace, event_id]) for event_id in ids),
            *select_views(self._workspace, wanted, prefix, state.known()),
            select_agents(self._workspace, names),
        ]

        def take_lock(connection: Connection) -> list[Rows]:
            self._connection = connection
            return send(connection, queries)

        with self._session.translate():
            heads, seals, *answers = self._session.attempt(take_lock)[len(begin(0)) :]
        state.head = head = self._check_head(heads, seals)
        for event_id, rows in zip(ids, answers, strict=False):
            self._expected_events[event_id] = decode_alone(rows[0][0]) if rows else None
        answers = answers[len(ids) :]
        if known is not None and head.seq < known.seq:
            # The server went back to an earlier state: nothing that was read before holds.
            state.folds.clear()
            views = select_views(self._workspace, wanted, prefix, {})
            answers = self._run(*views, select_agents(self._workspace, names))
        self._prefixes.add(prefix)
        stale = [path for rows in answers[:-1] for path, _ in rows]
        for path in stale:
            state.folds.pop(path, None)
        self._take(answers, wanted, names)

    def _check_head(self, heads: Rows, seals: Rows) -> Position:
        shown, known = self._session.dsn.shown, self._state.head
        if not heads:
            raise StateProblem(
                f"{shown} has no workspace {self._session.name!r} any more",
                "run the command again to begin a new one",
            )
        *place, version = heads[0]
        self._session.check_format(version)
        head = Position(*place)
        is_ahead = known is not None and 0 < known.seq <= head.seq
        if is_ahead and known and (not seals or seals[0][0] != f'{known.hash}"}}'):
            raise StateProblem(
                f"record {known.seq} of the log in {shown} is another one than before",
                "find out which program changed it; `guard verify` says more",
            )
        return head

    def _take(self, answers: Sequence[Rows], wanted: Iterable[str], names: Iterable[Name]) -> None:
        *views, agents = answers
        folds = self._state.folds
        found = {path: data for rows in views for path, data in rows if data and path not in folds}
        try:
            self._agents.take(names, agents)
            folds.update({path: self._restore(path, data) for path, data in found.items()})
        except UnusableRow:
            folds.update(self._fold_again(found))
            self._agents.take(names, self._ask(select_agents(self._workspace, names)))
        for path in wanted:
            if path not in folds:
                self._begin_fold(path)

    def _begin_fold(self, path: str) -> None:
        kind = kind_of(path)
        self._state.folds[path] = kind.fold(kind.key_in(path) or "")

    def _restore(self, path: str, data: bytes) -> Fold[Any]:
        kind = kind_of(path)
        fold: Any = kind.fold(kind.key_in(path) or "")
        document = read_row(kind, data, path)
        if is_registry(path):
            fold.restore_part(document, self._agents.find)
        else:
            fold.restore(document)
        return cast(Fold[Any], fold)

    def _fold_again(self, found: Iterable[str]) -> dict[str, Fold[Any]]:
        """Make all views again from the log, within this change, because one row cannot be used."""
        self._run(*self._store.remake(self._workspace))
        queries = select_views(self._workspace, found, "", {})
        rows = [row for answer in self._run(*queries) for row in answer]
        return {path: self._restore(path, data) for path, data in rows}

    def _ask(self, query: Query) -> Rows:
        (rows,) = self._run(query)
        return rows

    def _run(self, *queries: Query) -> list[Rows]:
        # Only ever on the connection that has the lock: on another one, what others have recorded since would be overwritten.
        connection = self._connection
        assert connection is not None
        try:
            if connection.closed:
                raise ServerLost(
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
        try:
            if self._connection is not None and (self._entries or not self._connection.closed):
                writes = self._writes() if self._entries else ()
                self._run(*writes, ("COMMIT", ()))
        finally:
            # What refers to this change is let go, so that the connection is closed with its store and not some time later.
            self._state.trim()
            self._agents.end()

    def _writes(self) -> Iterator[Query]:
        folds = self._state.folds
        events = [(e.position.seq, e.event.id, e.event.type, line) for line, e in self._entries]
        views = [
            (
                path,
                fold.reached.seq,
                seal_summary(fold) if is_registry(path) else seal(fold.document()),
            )
            for path in self._touched
            for fold in (folds[path],)
        ]
        yield insert_events(self._workspace, events)
        if views:
            yield upsert_views(self._workspace, views)
        yield from self._agents.writes(folds)
        yield set_head(self._workspace, self.head)
        if monotonic() - self._state.notified > _NOTIFY_SECONDS:
            self._state.notified = monotonic()
            yield ("SELECT pg_notify(%s, '')", [channel(self._workspace)])


def channel(workspace: int) -> str:
    return f"guard_{workspace}"


def _group(paths: Iterable[str]) -> tuple[list[str], str]:
    """Return the paths to read with these, and a beginning of paths that are all read."""
    wanted, prefix = dict.fromkeys(paths), ""
    for path in list(wanted):
        prefix = _prefix_of(path) or prefix
        if AGENT_REGISTRY.key_in(path) is not None:
            wanted[GLOBAL_REGISTRY.path("")] = None
    return list(wanted), prefix


def _prefix_of(path: str) -> str | None:
    """Return the folder whose views are read together."""
    return path[: path.rindex("/") + 1] if path.startswith("worktrees.d/") else None


def _opening_event(first: BaseEvent) -> SegmentOpened:
    segment = START.segment
    return SegmentOpened(
        at=first.at, id=f"segment-{segment}", segment=segment, guard_version=__version__
    )
