"""Make all views of a workspace again from its log, and tell how the rows that are there differ."""

from collections.abc import Iterator
from typing import Any

from guard.core.log.record import START
from guard.core.log.view import seal
from guard.store.postgres.agent_rows import (
    RegistryReplay,
    is_registry,
    join_registry,
    seal_summary,
    select_registry,
)
from guard.store.postgres.session import Connection, Query
from guard.store.postgres.view_rows import (
    UnusableRow,
    decode_lines,
    in_batches,
    kind_of,
    upsert_views,
)

_LINES = "SELECT line FROM guard.event WHERE workspace = %s ORDER BY seq"
_BATCH = 2000


def replay_log(connection: Connection, workspace: int) -> RegistryReplay:
    """Fold the whole log, without having all of it in memory."""
    replay = RegistryReplay()
    for entry in decode_lines(read_lines(connection, workspace), START):
        replay.feed(entry)
    return replay


def read_lines(connection: Connection, workspace: int) -> Iterator[bytes]:
    with connection.cursor("guard_replay") as cursor:
        cursor.itersize = _BATCH
        cursor.execute(_LINES.encode(), [workspace])
        for (line,) in cursor:
            yield bytes(line)


def remake_views(connection: Connection, workspace: int) -> Iterator[Query]:
    """Yield the queries that replace all views by those that the log makes; the connection is in a transaction."""
    yield from write_replay(workspace, replay_log(connection, workspace))


def write_replay(workspace: int, replay: RegistryReplay) -> Iterator[Query]:
    yield (
        "DELETE FROM guard.view WHERE workspace = %s AND NOT path = ANY(%s)",
        [workspace, list(replay.folds)],
    )
    views = (
        (
            path,
            fold.reached.seq,
            seal_summary(fold) if is_registry(path) else seal(fold.document()),
        )
        for path, fold in replay.folds.items()
    )
    for batch in in_batches(views, _BATCH):
        yield upsert_views(workspace, batch)
    yield from replay.writes(workspace)


def read_documents(connection: Connection, workspace: int) -> dict[str, bytes]:
    """Return the bytes of every view, registries with their agents; of one that cannot be put together, what is there."""
    rows = connection.execute(
        "SELECT path, document FROM guard.view WHERE workspace = %s", [workspace]
    ).fetchall()
    found = {path: bytes(data) for path, data in rows}
    tasks = connection.execute(
        "SELECT DISTINCT task || '/AGENT_REGISTRY.json' FROM guard.agent WHERE workspace = %s",
        [workspace],
    ).fetchall()
    registries = {path for path in found if is_registry(path)} | {path for (path,) in tasks}
    for path in registries:
        found[path] = _registry_bytes(connection, workspace, path)
    return found


def _registry_bytes(connection: Connection, workspace: int, path: str) -> bytes:
    text, values = select_registry(workspace, path)
    rows: list[tuple[Any, ...]] = connection.execute(text.encode(), values).fetchall()
    try:
        document = join_registry(kind_of(path), path, rows)
    except UnusableRow:
        return b""
    return seal(document) if document is not None else b""
