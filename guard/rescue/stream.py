"""One snapshot as a stream for `git fast-import`, with the object id of everything worked out on our side as well."""

import hashlib
import os
from dataclasses import dataclass, field

from guard.processes import Fed
from guard.rescue.reading import Large, is_unchanged, pieces

_WHO = b"guard <guard@localhost> now"
_PLAIN = frozenset(range(0x20, 0x7F)) - frozenset(b'"\\')
_SPELLED = [bytes([byte]) if byte in _PLAIN else b"\\%03o" % byte for byte in range(256)]
_ZEROS = bytes(1024**2)

Listing = dict[bytes, tuple[bytes, str]]
"""Paths in a tree, each with its mode and object id."""


@dataclass
class Stream:
    """Writes files into the commit; `written` is what the tree must show when it is read back."""

    program: Fed
    object_format: str
    written: Listing = field(default_factory=dict)

    def begin(self, ref: str) -> None:
        """Start the commit."""
        self.program.write(b"commit %s\ncommitter %s\ndata 9\nsnapshot\n\n" % (ref.encode(), _WHO))

    def put(self, path: bytes, mode: bytes, data: bytes) -> str:
        """One file, or one link with its text; the id of its blob."""
        self._announce(path, mode, len(data))
        self.program.write(data)
        self.program.write(b"\n")
        digest = self._digest(len(data))
        digest.update(data)
        return self._note(path, mode, digest.hexdigest())

    def put_large(self, path: bytes, large: Large) -> tuple[str, bool]:
        """The same from an open file; whether it kept still.

        Its length is announced before its bytes, so a file that shrinks meanwhile has to be filled up.
        """
        before, missing = os.fstat(large.descriptor), large.size
        self._announce(path, large.mode, large.size)
        digest = self._digest(large.size)
        for piece in pieces(large.descriptor, large.size):
            digest.update(piece)
            self.program.write(piece)
            missing -= len(piece)
        steady = not missing and is_unchanged(before, os.fstat(large.descriptor))
        while missing:
            piece = _ZEROS[:missing]
            digest.update(piece)
            self.program.write(piece)
            missing -= len(piece)
        self.program.write(b"\n")
        return self._note(path, large.mode, digest.hexdigest()), steady

    def refer(self, path: bytes, mode: bytes, oid: str) -> None:
        """A blob that is in this snapshot already, under another path as well."""
        self.program.write(b"M %s %s %s\n" % (mode, oid.encode(), quoted(path)))
        self._note(path, mode, oid)

    def _digest(self, size: int) -> "hashlib._Hash":
        return hashlib.new(self.object_format, b"blob %d\0" % size, usedforsecurity=False)

    def _announce(self, path: bytes, mode: bytes, size: int) -> None:
        self.program.write(b"M %s inline %s\ndata %d\n" % (mode, quoted(path), size))

    def _note(self, path: bytes, mode: bytes, oid: str) -> str:
        self.written[path] = (mode, oid)
        return oid


def quoted(path: bytes) -> bytes:
    """A path as git reads it in a line of its own, whatever bytes it has."""
    return b'"%s"' % b"".join([_SPELLED[byte] for byte in path])
