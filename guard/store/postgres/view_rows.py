"""Read and write the rows of views, events and the head of a workspace."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from guard.core.log.events import SegmentOpened
from guard.core.log.record import NO_HASH, BadRecord, LogEntry, NewerRecord, Position, decode
from guard.core.log.table import kind_at
from guard.core.log.view import DamagedView, NewerView, OlderView, ViewDocument, ViewKind, unseal
from guard.errors import StateProblem
from guard.store.postgres.session import Query

D = TypeVar("D", bound=ViewDocument)
T = TypeVar("T")


class UnusableRow(ValueError):
    """The row is damaged or of an older format: its view has to be folded again from the log."""


def kind_of(path: str) -> ViewKind[Any, Any]:
    return kind_at(path)


def read_row(kind: ViewKind[D, Any], data: bytes, path: str) -> D:
    """Return the document of a row; raise UnusableRow if it has to be folded again from the log."""
    try:
        return unseal(bytes(data), kind.document).model_copy(update={"hash": NO_HASH})
    except NewerView as error:
        raise StateProblem(f"{path}: {error}; a newer guard wrote it", "upgrade guard") from None
    except (OlderView, DamagedView) as error:
        raise UnusableRow(str(error)) from None


def decode_lines(lines: Iterable[bytes], after: Position) -> Iterator[LogEntry]:
    """Yield the entries of lines that follow a place, checked as the records of a file are."""
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


def select_views(
    workspace: int, paths: Iterable[str], prefix: str, known: Mapping[str, int]
) -> list[Query]:
    """Ask for the views at these paths and below the prefix, but not for those that are known as they are.

    Of the other known views that have changed, the paths come without a document.
    """
    wanted = {path: known.get(path, -1) for path in paths}
    others = {path: seq for path, seq in known.items() if path not in wanted}
    below = {path: seq for path, seq in others.items() if prefix and path.startswith(prefix)}
    asked: list[Query] = []
    if wanted:
        asked.append((_CHANGED.format("v.document"), [*_columns(wanted), workspace]))
    if prefix:
        range_ = [workspace, *path_range(prefix)]
        asked.append((_BELOW, [*_columns({**wanted, **below}), *range_]))
    if others:
        asked.append((_CHANGED.format("NULL::bytea"), [*_columns(others), workspace]))
    return asked


_CHANGED = (
    "SELECT v.path, {} FROM unnest(%s::text[], %s::bigint[]) AS known (path, seq)"
    " JOIN guard.view v ON v.path = known.path AND v.workspace = %s WHERE v.seq <> known.seq"
)
_BELOW = (
    "SELECT v.path, v.document FROM guard.view v"
    " LEFT JOIN unnest(%s::text[], %s::bigint[]) AS known (path, seq) ON known.path = v.path"
    " WHERE v.workspace = %s AND v.path >= %s AND v.path < %s AND v.seq IS DISTINCT FROM known.seq"
)


def _columns(seqs: Mapping[str, int]) -> tuple[list[str], list[int]]:
    return list(seqs), list(seqs.values())


def path_range(prefix: str) -> tuple[str, str]:
    """Return the least path below a folder, and the least that comes after all of them."""
    # An index serves a comparison in any version of the server.
    return prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1)


def in_batches(found: Iterable[T], size: int) -> Iterator[list[T]]:
    batch: list[T] = []
    for each in found:
        batch.append(each)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
