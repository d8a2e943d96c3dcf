"""Read and write the log on disk: one live segment that grows, and numbered ones that never change again.

`events.jsonl` is the live segment; `events.000001.jsonl` and so on are the sealed ones before it. What follows the last
whole change of the live segment was never acknowledged: readers pass over it, the next writer cuts it off. Anything else
that does not fit the chain is corruption, and reading stops there with the place.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar, cast

from guard import __version__
from guard.core.log.events import BaseEvent, SegmentOpened
from guard.core.log.record import (
    START,
    BadRecord,
    LogEntry,
    Position,
    decode_alone,
    encode,
    unseal_line,
)
from guard.errors import StateProblem, StoreUnavailable
from guard.store.segments import (
    BrokenLog,
    Chunk,
    ReplacedLog,
    link_chunk,
    parse_chunk,
    read_chunk,
    sealed_name,
    segment_number,
)
from guard.store.transfer import LogLine
from guard.system.private_files import Folder, close, sync_data, write_all

R = TypeVar("R")
LIVE = "events.jsonl"
_CHUNK_BYTES = 32 * 1024 * 1024
_TAIL_BYTES = 1 << 16


class LogGone(StateProblem):
    """The log is not there any more, though something remembers it."""

    def __init__(self, workspace: Path, why: str) -> None:
        super().__init__(
            f"the log {workspace / LIVE} is gone: {why}",
            "put the workspace back if it was moved; `guard snapshots` lists what was saved; "
            "`guard init --fresh` begins a new log, without the old history and with a closed breaker",
        )


class Log:
    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._writer: int | None = None
        self._size = -1
        """Of the live segment, as far as we know it; -1 if we do not."""

    def is_empty(self) -> bool:
        """Tell whether there is no record at all, whole or damaged."""
        try:
            return self._first_record() is None and not self._numbers()
        except BrokenLog:
            return False

    def live_start(self) -> Position:
        # By the word of the first record; `verify` checks that word.
        fields = self._first_record()
        if fields is None:
            last = self.last_sealed()
            return self.end_of_segment(last) if last else START
        return Position(fields["segment"], 0, fields["seq"] - 1, fields["prev"])

    def read_end(self) -> tuple[int, int] | None:
        """Return the number of the last record, by its own word, and where it ends; None if the tail does not tell."""
        with self._folder.open_if_any(LIVE) as descriptor:
            if descriptor is None:
                return None
            begin = max(0, os.fstat(descriptor).st_size - _TAIL_BYTES)
            tail = os.pread(descriptor, _TAIL_BYTES, begin)
        end = tail.rfind(b"\n") + 1
        if not end:
            return None if begin else (self.live_start().seq, 0)
        try:
            fields = unseal_line(tail[: end - 1].rpartition(b"\n")[2])
            return int(fields["seq"]), begin + end
        except (BadRecord, KeyError, TypeError, ValueError):
            return None

    def last_sealed(self) -> int:
        """Return the number of the newest sealed segment, 0 if there is none: the one before the live one, if that can tell."""
        try:
            fields = self._first_record()
        except BrokenLog:
            fields = None
        return fields["segment"] - 1 if fields else max(self._numbers(), default=0)

    def strays(self) -> list[str]:
        """List files that are named like segments of this log and cannot be."""
        last = self.last_sealed()
        return [sealed_name(number) for number in self._numbers() if number > last]

    def check_sealed(self) -> None:
        """Raise `BrokenLog` if a sealed segment is missing or empty, without reading any."""
        for number in range(1, self.last_sealed() + 1):
            name = sealed_name(number)
            with self._folder.open_if_any(name) as descriptor:
                if descriptor is None:
                    raise BrokenLog(name, 0, 1, "the file is missing")
                if not os.fstat(descriptor).st_size:
                    raise BrokenLog(name, 0, 1, "a sealed segment has no record")

    def _numbers(self) -> list[int]:
        return [number for number in map(segment_number, self._folder.names()) if number]

    def _first_record(self) -> dict[str, Any] | None:
        with self._folder.open_if_any(LIVE) as descriptor:
            data = os.pread(descriptor, 1 << 16, 0) if descriptor is not None else b""
        line, newline, _ = data.partition(b"\n")
        if not newline:
            return None
        try:
            fields = unseal_line(line)
            if not isinstance(fields["segment"], int) or not isinstance(fields["seq"], int):
                raise BadRecord("it does not open a segment")
        except (BadRecord, KeyError):
            raise BrokenLog(LIVE, 0, 0, "the first record of the segment is damaged") from None
        return fields

    def end_of_segment(self, segment: int) -> Position:
        """Return where the segment after this sealed one begins."""
        name = sealed_name(segment)
        data = self._folder.read(name)
        line = data.rstrip(b"\n").rpartition(b"\n")[2] if data else b""
        try:
            fields = unseal_line(line)
            return Position(segment + 1, 0, int(fields["seq"]), str(fields["hash"]))
        except (BadRecord, KeyError, TypeError, ValueError):
            why = "the last record of the segment is damaged"
            raise BrokenLog(name, 0, 0, why) from None

    def entries(self, after: Position = START) -> Iterator[LogEntry]:
        """Yield every record after this place, checked; a torn tail is passed over."""
        return self._records(after, parse_chunk, lambda entry: entry.position)

    def records(self) -> Iterator[LogLine]:
        """Yield every record with its bytes, checked; a torn tail is passed over."""

        def read(chunk: Chunk, at: Position) -> Iterator[LogLine]:
            # Each line is one record, so that the two run side by side.
            return map(LogLine, chunk.lines, parse_chunk(chunk, at))

        return self._records(START, read, lambda record: record.entry.position)

    def check_links(self, after: Position, known: Position) -> None:
        """Raise `BrokenLog` if a record after this place was changed, or the one that is known is another one now."""
        found = after
        for found in self._records(after, link_chunk, lambda place: place):
            if found.seq == known.seq and found.hash != known.hash:
                name = LIVE if found.segment > self.last_sealed() else sealed_name(found.segment)
                why = "it is not the record that was there before"
                raise ReplacedLog(name, found.offset, found.seq, why)
        if found.seq < known.seq:
            why = f"the log ends before it, but guard remembers {known.seq}: records were cut off"
            raise BrokenLog(LIVE, found.offset, found.seq + 1, why)

    def _records(
        self,
        after: Position,
        read: Callable[[Chunk, Position], Iterator[R]],
        place: Callable[[R], Position],
    ) -> Iterator[R]:
        at, size = after, _CHUNK_BYTES
        while (chunk := self._chunk(at, size)) is not None:
            begun = at
            for record in read(chunk, at):
                yield record
                at = place(record)
            if chunk.ends and not chunk.sealed:
                return
            if chunk.ends:
                at = Position(at.segment + 1, 0, at.seq, at.hash)
            size = size * 2 if at == begun else _CHUNK_BYTES

    def _chunk(self, at: Position, size: int) -> Chunk | None:
        # The live segment is opened before the look for a sealed one of the same number, so that a rotation in
        # between leaves us with the right bytes either way.
        live = self._writer if self._writer is not None else self._open(LIVE)
        sealed = self._open(sealed_name(at.segment))
        try:
            if sealed is None and at.offset == 0 and at.segment <= self.last_sealed():
                raise BrokenLog(sealed_name(at.segment), 0, at.seq + 1, "the file is missing")
            if sealed is not None and (live is None or at.segment <= self.last_sealed()):
                return read_chunk(sealed, at, size, sealed_name(at.segment), sealed=True)
            if live is not None:
                return read_chunk(live, at, size, LIVE, sealed=False)
        finally:
            for descriptor in {live, sealed} - {None, self._writer}:
                close(cast(int, descriptor))
        if at.offset > 0:  # At 0 it is the very beginning, or a rotation that was cut short.
            raise BrokenLog(LIVE, at.offset, at.seq + 1, "the file is missing")
        return None

    def _open(self, name: str, flags: int = os.O_RDONLY) -> int | None:
        try:
            return self._folder.open_file(name, flags)
        except FileNotFoundError:
            return None

    def check_place(self, place: Position) -> None:
        # The record before this place must be the one that we remember; reading on checks that.
        for _entry in self.entries(place):
            return

    def after_sealed(self, at: Position) -> Position:
        """Return the place as the beginning of the next segment, if its own is sealed and read to the end."""
        if at.offset and self._folder.exists(sealed_name(at.segment)):
            return Position(at.segment + 1, 0, at.seq, at.hash)
        return at

    def mentions(
        self,
        needles: Iterable[bytes],
        after: Position | None = None,
        before: Position | None = None,
    ) -> bool:
        """Tell whether the live segment has any of these bytes, anywhere or between two places: faster than to parse it."""
        data = memoryview(self._folder.read(LIVE) or b"")
        part = bytes(data[after.offset if after else 0 : before.offset if before else None])
        return any(needle in part for needle in needles)

    def find_by_id(self, event_id: str) -> BaseEvent | None:
        # Found by its bytes: faster than to parse the whole log.
        needle = b'"id":"%s","run":' % event_id.encode()
        for name in [LIVE, *map(sealed_name, sorted(self._numbers(), reverse=True))]:
            data = self._folder.read(name) or b""
            data = data[: data.rfind(b"\n") + 1]
            found = data.find(needle)
            if found >= 0:
                line = data[data.rfind(b"\n", 0, found) + 1 : data.find(b"\n", found)]
                return decode_alone(line)
        return None

    def torn_bytes(self, head: Position) -> int:
        """Return how many bytes of a torn record follow the last good one."""
        with self._folder.open_if_any(LIVE) as descriptor:
            size = os.fstat(descriptor).st_size if descriptor is not None else 0
        return max(0, size - head.offset)

    def append(self, events: Sequence[BaseEvent], head: Position) -> list[LogEntry]:
        """Write the records after `head` with one write, and return when they are on the disk. The caller has the lock."""
        segment, offset, seq, prev = head
        if offset == 0:
            events = [_opening_event(segment, events[0].at), *events]
        lines, entries, more = [], [], len(events)
        for event in events:
            more -= 1
            seq += 1
            line, prev = encode(event, seq, prev, more)
            offset += len(line)
            lines.append(line)
            entries.append(LogEntry(event, Position(segment, offset, seq, prev), more))
        try:
            self._write(b"".join(lines), head)
        except OSError as error:
            raise StoreUnavailable(
                f"cannot write {self._folder.path_of(LIVE)}: {error.strerror}; nothing was recorded",
                "free some space or check the disk, then try again",
            ) from error
        return entries

    def _write(self, data: bytes, head: Position) -> None:
        offset = head.offset
        if self._writer is None:
            self._writer = self._folder.open_file(LIVE, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        descriptor = self._writer
        if self._size != offset:
            self._cut_to(head)
        self._size = -1
        try:
            write_all(descriptor, data)
            sync_data(descriptor)
            if offset == 0:
                self._folder.sync()
        except OSError:
            # Half a record would be cut by the next writer; a whole one that was not acknowledged would stay.
            with suppress(OSError):
                os.ftruncate(descriptor, offset)
            raise
        self._size = offset + len(data)

    def _cut_to(self, head: Position) -> None:
        # What follows the last whole change was never acknowledged. Whole changes there are another process's.
        assert self._writer is not None
        size = os.fstat(self._writer).st_size
        if size < head.offset:
            why = "the file became shorter while guard held its lock"
            raise BrokenLog(LIVE, size, head.seq, why)
        if size > head.offset:
            for _entry in self.entries(head):
                raise StoreUnavailable(
                    f"another process wrote to {self._folder.path_of(LIVE)} while guard held its lock",
                    "try again, and never delete the lock file",
                )
            os.ftruncate(self._writer, head.offset)

    def hold(self) -> None:
        """Open the live segment once for all that a change reads and writes. The caller has the lock."""
        self._writer = self._open(LIVE, os.O_RDWR | os.O_APPEND)

    def close(self) -> None:
        if self._writer is not None:
            close(self._writer)
            self._writer, self._size = None, -1

    def sync(self) -> None:
        # What another process wrote, and may have died before syncing, must be on the disk.
        if self._writer is None:
            return
        try:
            sync_data(self._writer)
        except OSError as error:
            raise StoreUnavailable(
                f"cannot sync {self._folder.path_of(LIVE)}: {error.strerror}",
                "check the disk",
            ) from error

    def seal(self, head: Position) -> Position:
        """Make the live segment a numbered one; the next append begins a new one. The caller has the lock."""
        name = sealed_name(head.segment)
        if self._folder.exists(name):
            raise BrokenLog(name, 0, head.seq, "this segment exists already")
        self.sync()
        self.close()
        try:
            self._folder.rename(LIVE, name)
            self._folder.sync()
        except OSError as error:
            raise StoreUnavailable(
                f"cannot seal {self._folder.path_of(LIVE)}: {error.strerror}", "try again"
            ) from error
        return Position(head.segment + 1, 0, head.seq, head.hash)


def _opening_event(segment: int, at: datetime) -> SegmentOpened:
    return SegmentOpened(at=at, id=f"segment-{segment}", segment=segment, guard_version=__version__)
