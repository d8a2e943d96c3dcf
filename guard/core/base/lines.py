"""Cut a byte stream into lines, or into the parts of one large JSON document, in bounded memory."""

import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

from guard.core.base.json_text import loads, refuse_constant

LONGEST_LINE = 8 * 1024 * 1024
_MOST_DOCUMENTS = 20
_OPENS = re.compile(rb"\s*(?:\[\s*\{|[\[{]\s*\n)")
_OPENERS = (b"[", b"{")
_OUTSIDE = re.compile(rb'["\[\]{}]')
_INSIDE = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_SURROGATES = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.",
    re.DOTALL,
)


def object_in(data: bytes) -> dict[str, Any] | None:
    """Return the JSON object in these bytes, or None.

    Half an emoji, which JavaScript leaves when it shortens a text, and bytes that are not UTF-8 are replaced, so that a
    result is not lost because of them.
    """
    text = data.decode(errors="replace").encode()
    if b"\\u" in text:
        text = _SURROGATES.sub(lambda found: b"\\ufffd" if found[1] else found[0], text)
    try:
        value = loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


_scan: Callable[[str, int], tuple[Any, int]] = vars(
    json.JSONDecoder(parse_constant=refuse_constant)
)["scan_once"]
_HALF = re.compile(rb"\\u[dD]")
_SPACE = " \t\r\n"


def event_in(line: bytes) -> dict[str, Any] | None:
    """Return the JSON object in a line of an event stream, or None.

    This is the fast way to read a hundred megabytes of events: of a key that stands twice the last one counts. Where much
    depends on one line, `object_in` refuses it. The depth is only what the parser can bear: nothing may recurse into the value
    without a limit of its own.
    """
    if b"\\u" in line and _HALF.search(line):
        return object_in(line)
    try:
        text = line.decode()
        value, end = _scan(text, 0)
    except UnicodeDecodeError:
        return object_in(line)
    except (ValueError, StopIteration, RecursionError):
        return None
    if end != len(text) and text[end:].strip(_SPACE):
        return None
    return value if isinstance(value, dict) else None


# Agents print one JSON object per line, or a single document at the end: an array on one line, or an object over many lines.
# Each element of such an array, and such an object as a whole, is returned as if it were a line.
class Lines:
    """Cuts a byte stream at newlines; a line that is too long is skipped and counted."""

    def __init__(self, longest: int = LONGEST_LINE, *, documents: bool = True) -> None:
        self.passed_over = 0
        self._longest = longest
        self._documents = _MOST_DOCUMENTS if documents else 0
        """How many more documents may begin; none after the first line that is a whole object."""
        self._document: _Document | None = None
        self._pending = bytearray()
        self._too_long = False

    def feed(self, data: bytes) -> Iterable[bytes]:
        if self._documents or self._document or self._too_long or not self._fits(data):
            return self._feed_any(data)
        # Nearly all of a stream comes this way: whole lines, cut out at once.
        *lines, last = data.split(b"\n")
        if lines and self._pending:
            lines[0] = bytes(self._pending) + lines[0]
            self._pending.clear()
        self._pending += last
        return filter(None, lines)

    def _fits(self, data: bytes) -> bool:
        return len(self._pending) + len(data) <= self._longest

    def _feed_any(self, data: bytes) -> Iterator[bytes]:
        while data:
            data = yield from (self._in_document if self._document else self._in_lines)(data)

    def end(self) -> Iterator[bytes]:
        if self._document:
            yield from self._abandon_document(self._document)
        yield from self._complete()

    def _in_lines(self, data: bytes) -> Generator[bytes, None, bytes]:
        *whole, last = data.split(b"\n")
        for number, piece in enumerate(whole, 1):
            may_open = self._documents and piece.startswith(_OPENERS)
            if not (self._pending or self._too_long or may_open or len(piece) > self._longest):
                if piece:
                    yield piece
                continue
            self._append(piece)
            if opening := self._open_document(b"\n"):
                return opening + b"\n".join([*whole[number:], last])
            yield from self._complete()
        self._append(last)
        return self._open_document(b"")

    def _append(self, piece: bytes) -> None:
        self._too_long = self._too_long or len(self._pending) + len(piece) > self._longest
        if self._too_long:
            self._pending.clear()
        else:
            self._pending += piece

    def _complete(self) -> Iterator[bytes]:
        if self._too_long:
            self._too_long = False
            self.passed_over += 1
        elif self._pending:
            whole = bytes(self._pending)
            self._pending.clear()
            if whole.startswith(b"{"):
                self._documents = 0
            yield whole

    def _open_document(self, end: bytes) -> bytes:
        # If the pending bytes begin a document, they are read again as a document.
        if not self._documents or not self._pending.startswith(_OPENERS):
            return b""
        if not _OPENS.match(bytes(self._pending[:64]) + end):
            return b""
        self._document = _Document(self._longest, is_array=self._pending.startswith(b"["))
        self._documents -= 1
        opening = bytes(self._pending) + end
        self._pending.clear()
        return opening

    def _in_document(self, data: bytes) -> Generator[bytes, None, bytes]:
        document = self._document
        assert document is not None
        parts, rest = document.feed(data)
        yield from parts
        if document.closed:
            self.passed_over += document.passed_over
            self._document = None
        elif document.is_hopeless:
            yield from self._abandon_document(document)
        return rest

    def _abandon_document(self, document: "_Document") -> Iterator[bytes]:
        self._document = None
        self.passed_over += document.passed_over
        self._documents = 0
        yield from bytes(document.pending).split(b"\n")


class _Document:
    """One JSON array or object, whose end is found by counting brackets."""

    def __init__(self, longest: int, *, is_array: bool) -> None:
        self.closed = False
        self.passed_over = 0
        self.pending = bytearray()
        self._is_array = is_array
        self._longest = longest
        self._floor = 1 if is_array else 0
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._too_long = False

    @property
    def is_hopeless(self) -> bool:
        return self._too_long and not self._is_array

    def feed(self, data: bytes) -> tuple[list[bytes], bytes]:
        """Return the parts that these bytes complete, and the bytes after the document."""
        parts: list[bytes] = []
        position, begin = 0, 0
        while not self.closed and (found := self._bracket(data, position)):
            position, opens = found.end(), found[0] in b"[{"
            self._depth = depth = self._depth + (1 if opens else -1)
            if opens and depth == self._floor + 1:
                begin = found.start()
            elif not opens and depth == self._floor:
                self._keep(data[begin:position])
                parts += self._part()
            self.closed = depth == 0
        if self.closed:
            return parts, data[position:]
        if self._depth > self._floor:
            self._keep(data[begin:])
        return parts, data[begin:] if self.is_hopeless else b""

    def _bracket(self, data: bytes, position: int) -> re.Match[bytes] | None:
        while position < len(data):
            if self._in_string:
                position = self._after_string(data, position)
                continue
            found = _OUTSIDE.search(data, position)
            if found is None or found[0] != b'"':
                return found
            self._in_string = True
            position = found.end()
        return None

    def _after_string(self, data: bytes, position: int) -> int:
        inside = _INSIDE.match(data, position + self._escaped)
        end = inside.end() if inside else len(data)
        self._in_string = data[end : end + 1] != b'"'
        self._escaped = data[end : end + 1] == b"\\"
        return len(data) if self._in_string else end + 1

    def _keep(self, piece: bytes) -> None:
        self._too_long = self._too_long or len(self.pending) + len(piece) > self._longest
        if not self._too_long:
            self.pending += piece

    def _part(self) -> list[bytes]:
        part = bytes(self.pending)
        self.pending.clear()
        if self._too_long:
            self._too_long = False
            self.passed_over += 1
            return []
        return [part]
