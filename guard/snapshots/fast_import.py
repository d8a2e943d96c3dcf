"""Write one snapshot as a stream for `git fast-import`, as changes against the snapshot before.

The id of every object is worked out on guard's side as well.
"""

import hashlib
import os
from collections.abc import Callable
from dataclasses import field
from typing import NamedTuple

from guard.core.base.first_use import dataclass, late_pattern
from guard.core.snapshots.paths import folders_above, tree_path
from guard.snapshots.read_file import Content, Large, git_mode, is_unchanged, read_pieces
from guard.snapshots.stat_cache import CachedFiles, Records, is_same_file, kept_file, stat_record
from guard.system.processes import FedProcess

_WHO = b"guard <guard@localhost> now"
_PLAIN = frozenset(range(0x20, 0x7F)) - frozenset(b'"\\')
_SPELLED = [bytes([byte]) if byte in _PLAIN else b"\\%03o" % byte for byte in range(256)]
_PLAIN_PATH = late_pattern(rb"[!#-\[\]-~]+")
_ZEROS = bytes(1024**2)

Listing = dict[bytes, tuple[bytes, str]]
"""Paths in a tree, each with its mode and object id."""


def parse_tree(listed: bytes) -> Listing:
    """Parse what `git ls-tree -z` prints."""
    found: Listing = {}
    for line in listed.split(b"\0")[:-1]:
        about, _, path = line.partition(b"\t")
        mode, _kind, oid = about.split()
        found[path] = (mode, oid.decode())
    return found


class TreeChanges(NamedTuple):
    """What a snapshot has beyond the trees that it starts from, and what it has no longer."""

    written: Listing
    deleted: set[bytes]


@dataclass
class ImportStream:
    """Writes files into the commit; `written` and `deleted` are what must show when it is read back."""

    program: FedProcess
    object_format: str
    written: Listing = field(default_factory=dict)
    deleted: set[bytes] = field(default_factory=set)

    @property
    def changes(self) -> TreeChanges:
        return TreeChanges(self.written, self.deleted)

    def begin(self, ref: str) -> None:
        self.program.write(b"commit %s\ncommitter %s\ndata 9\nsnapshot\n\n" % (ref.encode(), _WHO))

    def start_from(self, path: bytes, tree: str) -> None:
        self.program.write(b"M 040000 %s %s\n" % (tree.encode(), _path_word(path)))

    def put(self, path: bytes, mode: bytes, data: bytes) -> str:
        """Write one file, or one link with its text; return the id of its blob."""
        oid = self.oid_of(data)
        self.write(path, mode, data, oid)
        return oid

    def oid_of(self, data: bytes) -> str:
        hashed = hashlib.sha1 if self.object_format == "sha1" else hashlib.sha256
        return hashed(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()

    def write(self, path: bytes, mode: bytes, data: bytes, oid: str) -> None:
        self.program.write(
            b"M %s inline %s\ndata %d\n%s\n" % (mode, _path_word(path), len(data), data)
        )
        self.written[path] = (mode, oid)

    def put_large(self, path: bytes, large: Large, tell: Callable[[int], None]) -> tuple[str, bool]:
        """Write a file from its descriptor; return its id, and whether it kept still. `tell` is called with the bytes done.

        Its length is announced before its bytes, so a file that shrinks meanwhile has to be filled up.
        """
        before, size = os.fstat(large.descriptor), large.status.st_size
        mode, missing = git_mode(large.status.st_mode), size
        self.program.write(b"M %s inline %s\ndata %d\n" % (mode, _path_word(path), size))
        digest = hashlib.new(self.object_format, b"blob %d\0" % size, usedforsecurity=False)
        for piece in read_pieces(large.descriptor, size):
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
        """Put a blob that the repository has already under this path as well."""
        self.program.write(b"M %s %s %s\n" % (mode, oid.encode(), _path_word(path)))
        self.written[path] = (mode, oid)

    def name_too(self, ref: str, commit: str) -> None:
        self.program.write(b"reset %s\nfrom %s\n\n" % (ref.encode(), commit.encode()))

    def delete(self, path: bytes) -> None:
        self.program.write(b"D %s\n" % _path_word(path))
        self.deleted.add(path)


def _path_word(path: bytes) -> bytes:
    return path if _PLAIN_PATH.fullmatch(path) else quote_path(path)


def quote_path(path: bytes) -> bytes:
    """A path as git reads it in a line of its own, whatever bytes it has."""
    return b'"%s"' % b"".join([_SPELLED[byte] for byte in path])


class FolderDelta:
    """The files in one folder of a snapshot; a file that is not handed in again was deleted."""

    def __init__(self, stream: ImportStream, top: bytes, before: Records, looked_ns: int) -> None:
        self._stream, self._top, self._looked_ns = stream, top, looked_ns
        self.before = before
        self.now: Records = {}

    @property
    def files(self) -> CachedFiles:
        return CachedFiles(self.now)

    def place(self, path: bytes) -> bytes:
        return self._top + tree_path(path)

    def knows(self, path: bytes, status: os.stat_result) -> bool:
        """Tell whether the file is as it was; then it is in the snapshot already."""
        known = self.before.get(path)
        if known is None or not is_same_file(known, status):
            return False
        self.now[path] = known
        return True

    def put(self, path: bytes, found: Content) -> None:
        oid, mode = self._stream.oid_of(found.data), git_mode(found.status.st_mode)
        known = self.before.get(path)
        if known is None or kept_file(known)[:2] != (mode, oid):
            self._stream.write(self.place(path), mode, found.data, oid)
        self._note(path, found.status, len(found.data), oid, found.steady)

    def put_large(self, path: bytes, found: Large, tell: Callable[[int], None]) -> bool:
        """Write a file that is read while it is written; return whether it kept still. `tell` is called with the bytes done."""
        place = self.place(path)
        oid, steady = self._stream.put_large(place, found, tell)
        known = self.before.get(path)
        if known is not None and kept_file(known)[:2] == self._stream.written[place]:
            del self._stream.written[place]
        self._note(path, found.status, found.status.st_size, oid, steady)
        return steady

    def _note(self, path: bytes, status: os.stat_result, size: int, oid: str, steady: bool) -> None:
        self.now[path] = stat_record(status, size, oid, steady, self._looked_ns)

    def sweep(self) -> None:
        """Delete what is no longer there; a file that has become a folder is replaced by what is in it already."""
        gone = self.before.keys() - self.now.keys()
        folders = {folder for path in self.now for folder in folders_above(path)} if gone else set()
        for path in sorted(gone):
            if path in folders:
                self._stream.deleted.add(self.place(path))
            else:
                self._stream.delete(self.place(path))
