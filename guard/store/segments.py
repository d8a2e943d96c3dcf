"""Parse the bytes of one segment of the log into records, each checked against the one before."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from guard.core.base.first_use import late_pattern
from guard.core.log.events import SegmentOpened
from guard.core.log.record import (
    BadRecord,
    LogEntry,
    NewerRecord,
    Position,
    check_link,
    decode,
)
from guard.errors import StateProblem
from guard.system.private_files import read_from

_SEALED = late_pattern(r"events\.([0-9]{6})\.jsonl", re.ASCII)


class BrokenLog(StateProblem):
    """A place in the log where the chain breaks, or where a newer guard has written.

    `sound` is how many bytes of the file are whole changes before that place.
    """

    def __init__(
        self,
        file: str,
        offset: int,
        seq: int,
        why: str,
        *,
        sound: int | None = None,
        newer: bool = False,
    ) -> None:
        salvage = "run `guard verify`; `guard rebuild --salvage` continues with what is sound"
        hint = "upgrade guard; this guard changed nothing" if newer else salvage
        super().__init__(f"{file}: record {seq} at byte {offset}: {why}", hint)
        self.file, self.offset, self.seq, self.why, self.newer = file, offset, seq, why, newer
        self.sound = offset if sound is None else sound


class ReplacedLog(BrokenLog):
    """The log is whole, and yet it is not the one that was there before."""


def sealed_name(segment: int) -> str:
    return f"events.{segment:06d}.jsonl"


def segment_number(name: str) -> int | None:
    found = _SEALED.fullmatch(name)
    return int(found[1]) if found else None


class Chunk(NamedTuple):
    """Whole lines of one segment; `tail` is what follows the last newline at its end."""

    name: str
    sealed: bool
    lines: list[bytes]
    tail: bytes
    ends: bool


def read_chunk(descriptor: int, at: Position, size: int, name: str, *, sealed: bool) -> Chunk:
    # The record before this place must still end in the hash by which the place was remembered.
    seal = b'"%s"}\n' % at.hash.encode() if at.offset else b""
    data, ends = read_from(descriptor, at.offset - len(seal), size)
    if len(data) < len(seal):
        why = "the file ends before it: records were cut off"
        raise BrokenLog(name, at.offset, at.seq, why)
    if not data.startswith(seal):
        raise BrokenLog(name, at.offset, at.seq, "it is not the record that was there before")
    *lines, tail = data[len(seal) :].split(b"\n")
    return Chunk(name, sealed, lines, tail if ends else b"", ends)


def parse_chunk(chunk: Chunk, at: Position) -> Iterator[LogEntry]:
    # Only the records of whole changes; those of a change that is not whole yet are left for the next chunk, or are a
    # torn tail.
    segment, offset, seq, prev = at
    name, more, sound = chunk.name, 0, offset
    unfinished: list[LogEntry] = []
    for line in chunk.lines:
        seq += 1
        expected = more - 1
        try:
            event, prev, more = decode(line, seq, prev)
            if unfinished and more != expected:
                raise BadRecord("it belongs to another change than the record before it")
            if offset == 0 and (type(event) is not SegmentOpened or event.segment != segment):
                raise BadRecord(f"it should open segment {segment}")
        except BadRecord as error:
            raise BrokenLog(name, offset, seq, str(error), sound=sound) from None
        except NewerRecord as error:
            why = f"{error}; a newer guard wrote it"
            raise BrokenLog(name, offset, seq, why, newer=True) from None
        offset += len(line) + 1
        entry = LogEntry(event, Position(segment, offset, seq, prev), more)
        if more:
            unfinished.append(entry)
            continue
        if unfinished:
            yield from unfinished
            unfinished.clear()
        yield entry
        sound = offset
    if chunk.ends and chunk.sealed and offset == 0 and not chunk.tail:
        raise BrokenLog(name, 0, seq + 1, "a sealed segment has no record")
    if chunk.ends and chunk.sealed and (chunk.tail or unfinished):
        raise BrokenLog(
            name, offset, seq + 1, "a sealed segment ends in a torn record", sound=sound
        )


def link_chunk(chunk: Chunk, at: Position) -> Iterator[Position]:
    """Yield the place after each record, from its hashes alone: much faster than to parse it."""
    segment, offset, seq, prev = at
    for line in chunk.lines:
        seq += 1
        try:
            prev = check_link(line, prev)
        except BadRecord as error:
            raise BrokenLog(chunk.name, offset, seq, str(error)) from None
        offset += len(line) + 1
        yield Position(segment, offset, seq, prev)
    if chunk.ends and chunk.sealed and (chunk.tail or not offset):
        why = (
            "a sealed segment ends in a torn record" if offset else "a sealed segment has no record"
        )
        raise BrokenLog(chunk.name, offset, seq + 1, why)
