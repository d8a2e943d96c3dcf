"""A byte stream cut after newlines, nothing added and nothing left out, in bounded memory."""

from collections.abc import Iterator
from dataclasses import dataclass

from guard.core.base.lines import LONGEST_LINE


@dataclass(frozen=True)
class StreamPiece:
    """Some of the stream."""

    data: bytes
    readable: bool
    """Whether these are whole lines, and not a part of one that is too long to be kept."""


class Cutter:
    """Keeps back what follows the last newline, unless it is too long: then it goes on in pieces."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self.too_long = 0
        self.in_line = False
        """Whether a line that is too long has begun to go out."""
        self._longest = longest
        self._pending = bytearray()

    def feed(self, data: bytes) -> Iterator[StreamPiece]:
        """What these bytes complete."""
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
            yield StreamPiece(self._taken(), readable=False)

    def end(self) -> bytes:
        """What stood after the last newline."""
        return self._taken()

    def _taken(self) -> bytes:
        data = bytes(self._pending)
        self._pending.clear()
        return data
