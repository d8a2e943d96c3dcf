"""Move a log between stores, line by line: the same bytes, with the chain checked on the way."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from guard.core.log.events import SegmentOpened
from guard.core.log.record import START, BadRecord, LogEntry, NewerRecord, Position, decode
from guard.errors import StateProblem


class LogLine(NamedTuple):
    """One record as it stands in the log, without its newline, and what it means."""

    line: bytes
    entry: LogEntry


def check_lines(lines: Iterable[bytes]) -> Iterator[LogLine]:
    """Yield the records of a whole log; raise StateProblem at the first line that may not stand where it does."""
    at, more = START, 0
    for number, line in enumerate(lines, 1):
        try:
            event, digest, follow = decode(line, at.seq + 1, at.hash)
            _check_segment(event, at)
            if more and follow != more - 1:
                raise BadRecord("it belongs to another change than the record before it")
        except NewerRecord as error:
            raise StateProblem(f"line {number}: {error}", "upgrade guard") from None
        except BadRecord as error:
            raise _refusal(number, str(error)) from None
        if isinstance(event, SegmentOpened) and at.seq:
            at = Position(at.segment + 1, 0, at.seq, at.hash)
        at = Position(at.segment, at.offset + len(line) + 1, at.seq + 1, digest)
        more = follow
        yield LogLine(line, LogEntry(event, at, more))
    if more:
        raise _refusal(at.seq + 1, "the last change is not there as a whole")


def _check_segment(event: object, at: Position) -> None:
    if isinstance(event, SegmentOpened):
        if event.segment != at.segment + (at.seq > 0):
            raise BadRecord("it opens another segment than the next one")
    elif not at.seq:
        raise BadRecord("it should open segment 1")


def _refusal(number: int, why: str) -> StateProblem:
    return StateProblem(
        f"line {number} of the log to import: {why}", "export the log again, and import it whole"
    )
