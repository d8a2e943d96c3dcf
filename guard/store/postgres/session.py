"""One connection to the server: made when it is first needed, given up when it breaks, and never shared with a child."""

import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from time import monotonic, sleep
from typing import Any, TypeVar

import psycopg
from psycopg import errors
from psycopg.conninfo import make_conninfo

from guard.errors import ConfigProblem, GuardError, ServerLost, StateProblem, StoreUnavailable
from guard.store.dsn import Dsn
from guard.store.postgres.schema import CREATE, FORMAT, STEPS

# A server that is cut off is noticed in bounded time. What the user's address says comes first.
_LIMITS = {
    "connect_timeout": "10",
    "keepalives_idle": "5",
    "keepalives_interval": "3",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
    "application_name": "guard",
}
_IDLE_SECONDS = 60
_RETURN_SECONDS, _PAUSE_SECONDS = 10.0, 0.2
_RESTARTS = frozenset({"57P01", "57P02", "57P03"})
"""The server shuts down, has crashed, or starts."""
_LOCK_OF_MIGRATIONS = 0x6775617264
# What the driver warns of when a connection is lost is an error of guard's already.
logging.getLogger("psycopg").setLevel(logging.CRITICAL)
Connection = psycopg.Connection[tuple[Any, ...]]
T = TypeVar("T")
Query = tuple[str, Sequence[Any]]
Rows = list[tuple[Any, ...]]
RemakeViews = Callable[[Connection, int], Iterator[Query]]


class ServerSession:
    """Runs queries; a broken connection is a `StoreUnavailable`, and the next query makes a new one."""

    def __init__(self, dsn: Dsn, name: str, lock_timeout: float, remake_views: RemakeViews) -> None:
        self.dsn = dsn
        self.name = name
        self.lock_timeout = lock_timeout
        self._remake_views = remake_views
        """Makes the views of a workspace again, for rows that had another form before."""
        self.guarded = threading.RLock()
        self._connection: Connection | None = None
        self._pid = os.getpid()
        self._has_answered = False
        self._workspace: int | None = None
        self._lost: list[object] = []
        """Connections of the parent process: to close them here would end them there."""

    def connect(self) -> Connection:
        if self._pid != os.getpid():
            self._lost.append(self._connection)
            self._connection, self._pid, self.guarded = None, os.getpid(), threading.RLock()
        if self._connection is None or self._connection.closed:
            self._connection = open_connection(self.dsn)
        return self._connection

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and self._pid == os.getpid():
            with suppress(psycopg.Error):
                connection.close()

    def __del__(self) -> None:
        # The driver warns of what is left open, and a command ends when it ends.
        self.close()

    @contextmanager
    def translate(self) -> Iterator[None]:
        """Raise what the driver raises as an error of guard's."""
        try:
            yield
        except psycopg.Error as error:
            self.close()
            raise explain(self.dsn, error, self.lock_timeout) from None

    def run(self, *queries: Query) -> list[Rows]:
        """Send the queries in one go, and return the rows of each."""
        with self.guarded, self.translate():
            return self.attempt(lambda connection: send(connection, queries))

    def attempt(self, act: Callable[[Connection], T]) -> T:
        """Do what may be done twice: again on a new connection if the old one was lost, and while the server restarts."""
        deadline = monotonic() + min(self.lock_timeout, _RETURN_SECONDS)
        while True:
            try:
                done = act(self.connect())
            except psycopg.OperationalError as error:
                self.close()
                if not self._may_return(error) or monotonic() >= deadline:
                    raise
                sleep(_PAUSE_SECONDS)
            else:
                self._has_answered = True
                return done

    def expect_nothing(self) -> None:
        """Wait no more for the server to come back: the next question asks once."""
        self._has_answered = False

    def _may_return(self, error: psycopg.OperationalError) -> bool:
        # A server that never answered is not there: then the caller hears of it at once.
        if error.sqlstate is not None:
            return error.sqlstate in _RESTARTS
        return self._has_answered

    def workspace(self, *, create: bool = False) -> int | None:
        """Return the number of the workspace; None if there is none in the database."""
        if self._workspace is None:
            self._workspace = self._find_workspace()
        if self._workspace is None and create:
            self._workspace = self._make_workspace()
        return self._workspace

    def has_tables(self) -> bool:
        ((found,),) = self.run(("SELECT to_regclass('guard.workspace') IS NOT NULL", ()))[0]
        return bool(found)

    def _find_workspace(self) -> int | None:
        query = "SELECT version, (SELECT id FROM guard.workspace WHERE name = %s) FROM guard.format"
        with self.guarded:
            try:
                (rows,) = self.attempt(lambda connection: send(connection, [(query, [self.name])]))
            except (errors.UndefinedTable, errors.InvalidSchemaName):
                return None
            except psycopg.Error as error:
                self.close()
                raise explain(self.dsn, error, self.lock_timeout) from None
        if not rows:
            return None
        version, found = rows[0]
        self.check_format(version)
        return None if version < FORMAT else found

    def check_format(self, version: int) -> None:
        if version > FORMAT:
            raise StateProblem(
                f"{self.dsn.shown} has the format {version}; this guard knows {FORMAT}",
                "upgrade guard; this guard changed nothing",
            )

    def _make_workspace(self) -> int:
        from guard.core.log.record import NO_HASH

        with self.guarded, self.translate():
            connection = self.connect()
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK_OF_MIGRATIONS])
                self._migrate(connection)
                connection.execute(
                    "INSERT INTO guard.workspace (name, head_hash) VALUES (%s, %s) ON CONFLICT DO NOTHING",
                    [self.name, NO_HASH],
                )
                row = connection.execute(
                    "SELECT id FROM guard.workspace WHERE name = %s", [self.name]
                ).fetchone()
        assert row is not None
        return int(row[0])

    def _migrate(self, connection: Connection) -> None:
        known = connection.execute("SELECT to_regclass('guard.format')").fetchone()
        if known is None or known[0] is None:
            for statement in CREATE:
                connection.execute(statement.encode())
        row = connection.execute("SELECT version FROM guard.format").fetchone()
        version = int(row[0]) if row is not None else 0
        self.check_format(version)
        for step in range(version + 1, FORMAT + 1):
            for statement in STEPS[step]:
                connection.execute(statement.encode())
        if 0 < version < FORMAT:
            for (number,) in connection.execute(
                "SELECT id FROM guard.workspace FOR UPDATE"
            ).fetchall():
                for text, values in self._remake_views(connection, number):
                    connection.execute(text.encode(), values)
        if row is None:
            connection.execute("INSERT INTO guard.format VALUES (%s)", [FORMAT])
        elif version < FORMAT:
            connection.execute("UPDATE guard.format SET version = %s", [FORMAT])


def open_connection(dsn: Dsn) -> Connection:
    limits = {key: value for key, value in _LIMITS.items() if f"{key}=" not in dsn.text}
    address = make_conninfo(dsn.text, **limits)
    return psycopg.connect(address, autocommit=True, prepare_threshold=None)


def send(connection: Connection, queries: Sequence[Query]) -> list[Rows]:
    """Send all queries before waiting for any answer: one round trip."""
    with connection.pipeline():
        cursors = [connection.execute(text.encode(), values) for text, values in queries]
    return [cursor.fetchall() if cursor.description else [] for cursor in cursors]


def begin(lock_timeout: float) -> list[Query]:
    """The statements that open a change: one that hangs is ended by the server, and the lock is free."""
    milliseconds = max(1, int(lock_timeout * 1000))
    return [
        ("BEGIN", ()),
        (f"SET LOCAL lock_timeout = {milliseconds}", ()),
        (f"SET LOCAL idle_in_transaction_session_timeout = {_IDLE_SECONDS * 1000}", ()),
    ]


def explain(dsn: Dsn, error: psycopg.Error, lock_timeout: float) -> GuardError:
    text = dsn.hide(str(error)) or type(error).__name__
    if isinstance(error, errors.LockNotAvailable):
        return StoreUnavailable(
            f"guard waited {lock_timeout:g} s for another change in {dsn.shown}",
            "try again; the server ends a change that hangs after a minute",
        )
    if isinstance(error, errors.InsufficientPrivilege):
        return ConfigProblem(
            f"{dsn.shown}: {text}", "the page about fleets says what the role has to be allowed"
        )
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return ServerLost(
            f"cannot reach {dsn.shown}: {text}",
            "check the address, the network and the password (PGPASSWORD, ~/.pgpass), then try again",
        )
    return StateProblem(f"{dsn.shown}: {text}", "`guard verify` checks the store")
