"""One snapshot as a stream for `git fast-import`, with the object id of everything worked out on our side as well."""

import hashlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from guard.snapshots.read_file import Large, is_unchanged, mode_of, pieces
from guard.system.processes import Fed

_WHO = b"guard <guard@localhost> now"
_PLAIN = frozenset(range(0x20, 0x7F)) - frozenset(b'"\\')
_SPELLED = [bytes([byte]) if byte in _PLAIN else b"\\%03o" % byte for byte in range(256)]
_PLAIN_PATH = re.compile(rb"[!#-\[\]-~]+")
_ZEROS = bytes(1024**2)

Listing = dict[bytes, tuple[bytes, str]]
"""Paths in a tree, each with its mode and object id."""


class TreeChanges(NamedTuple):
    """What a snapshot has beyond the trees that it starts from, and what it has no longer."""

    written: Listing
    deleted: set[bytes]


@dataclass
class Stream:
    """Writes files into the commit; `written` and `deleted` are what must show when it is read back."""

    program: Fed
    object_format: str
    written: Listing = field(default_factory=dict)
    deleted: set[bytes] = field(default_factory=set)

    @property
    def changes(self) -> TreeChanges:
        """Both together."""
        return TreeChanges(self.written, self.deleted)

    def begin(self, ref: str) -> None:
        """Start the commit."""
        self.program.write(b"commit %s\ncommitter %s\ndata 9\nsnapshot\n\n" % (ref.encode(), _WHO))

    def start_from(self, path: bytes, tree: str) -> None:
        """Begin with a folder of an earlier snapshot."""
        self.program.write(b"M 040000 %s %s\n" % (tree.encode(), _named(path)))

    def put(self, path: bytes, mode: bytes, data: bytes) -> str:
        """One file, or one link with its text; the id of its blob."""
        oid = self.oid_of(data)
        self.write(path, mode, data, oid)
        return oid

    def oid_of(self, data: bytes) -> str:
        """The id that the blob with these bytes has."""
        hashed = hashlib.sha1 if self.object_format == "sha1" else hashlib.sha256
        return hashed(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()

    def write(self, path: bytes, mode: bytes, data: bytes, oid: str) -> None:
        """The same for an id that is known."""
        self.program.write(b"M %s inline %s\ndata %d\n%s\n" % (mode, _named(path), len(data), data))
        self.written[path] = (mode, oid)

    def put_large(self, path: bytes, large: Large, tell: Callable[[int], None]) -> tuple[str, bool]:
        """The same from an open file; whether it kept still. It is told the bytes done.

        Its length is announced before its bytes, so a file that shrinks meanwhile has to be filled up.
        """
        before, size = os.fstat(large.descriptor), large.status.st_size
        mode, missing = mode_of(large.status.st_mode), size
        self.program.write(b"M %s inline %s\ndata %d\n" % (mode, _named(path), size))
        digest = hashlib.new(self.object_format, b"blob %d\0" % size, usedforsecurity=False)
        for piece in pieces(large.descriptor, size):
            digest.update(piece)
            self.program.write(piece)
            missing -= len(piece)
            tell(size - missing)
        steady = not missing and is_unchanged(before, os.fstat(large.descriptor))
        while missing:
            piece = _ZEROS[:missing]
            digest.update(piece)
            self.program.write(piece)
            missing -= len(piece)
        self.program.write(b"\n")
        self.written[path] = (mode, digest.hexdigest())
        return digest.hexdigest(), steady

    def refer(self, path: bytes, mode: bytes, oid: str) -> None:
        """A blob that the repository has already, under this path as well."""
        self.program.write(b"M %s %s %s\n" % (mode, oid.encode(), _named(path)))
        self.written[path] = (mode, oid)

    def name_too(self, ref: str, commit: str) -> None:
        """One more name for the snapshot, which is there as soon as the first."""
        self.program.write(b"reset %s\nfrom %s\n\n" % (ref.encode(), commit.encode()))

    def delete(self, path: bytes) -> None:
        """A file that the earlier snapshot had."""
        self.program.write(b"D %s\n" % _named(path))
        self.deleted.add(path)


def _named(path: bytes) -> bytes:
    return path if _PLAIN_PATH.fullmatch(path) else quoted(path)


def quoted(path: bytes) -> bytes:
    """A path as git reads it in a line of its own, whatever bytes it has."""
    return b'"%s"' % b"".join([_SPELLED[byte] for byte in path])
