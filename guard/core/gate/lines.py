"""Cut a byte stream after newlines, in bounded memory; nothing is added or left out."""

from collections.abc import Iterator
from dataclasses import dataclass

from guard.core.base.lines import LONGEST_LINE


@dataclass(frozen=True)
class StreamPiece:
    """A part of the stream."""

    data: bytes
    readable: bool
    """Whether these are whole lines, not a part of a line that is too long to be kept."""


class Cutter:
    """Keeps back the bytes after the last newline, unless they are too long: then it passes them on in pieces."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self.too_long = 0
        self.in_line = False
        """Whether a line that is too long has begun to go out."""
        self._longest = longest
        self._pending = bytearray()

    def feed(self, data: bytes) -> Iterator[StreamPiece]:
        if self.in_line:
            end = data.find(b"\n") + 1
            self.in_line = not end
            yield StreamPiece(data[: end or None], readable=False)
            data = data[end:] if end else b""
        end = data.rfind(b"\n") + 1
        if end:
            whole = bytes(self._pending) + data[:end] if self._pending else data[:end]
            self._pending = bytearray(data[end:])
            yield StreamPiece(whole, readable=True)
        else:
            self._pending += data
        if len(self._pending) > self._longest:
            self.in_line = True
            self.too_long += 1
            yield StreamPiece(self._take_pending(), readable=False)

    def end(self) -> bytes:
        return self._take_pending()

    def _take_pending(self) -> bytes:
        data = bytes(self._pending)
        self._pending.clear()
        return data
