"""The files of one folder of a snapshot, written as changes against the snapshot before."""

import os
from collections.abc import Callable, Iterator

from guard.core.snapshots.paths import tree_path
from guard.snapshots.fast_import import Stream
from guard.snapshots.read_file import Content, Large, mode_of
from guard.snapshots.stat_cache import CachedFiles, Records, is_same, kept, record


class Table:
    """What is in the folder now; what is not handed in again was deleted."""

    def __init__(self, stream: Stream, top: bytes, before: Records, looked_ns: int) -> None:
        self._stream, self._top, self._looked_ns = stream, top, looked_ns
        self.before = before
        self.now: Records = {}

    @property
    def files(self) -> CachedFiles:
        """What is in it, by path."""
        return CachedFiles(self.now)

    def place(self, path: bytes) -> bytes:
        """Where a file stands in the snapshot."""
        return self._top + tree_path(path)

    def knows(self, path: bytes, status: os.stat_result) -> bool:
        """Whether the file is as it was; then it is in the snapshot already."""
        known = self.before.get(path)
        if known is None or not is_same(known, status):
            return False
        self.now[path] = known
        return True

    def put(self, path: bytes, found: Content) -> None:
        """A file that may have changed."""
        oid, mode = self._stream.oid_of(found.data), mode_of(found.status.st_mode)
        known = self.before.get(path)
        if known is None or kept(known)[:2] != (mode, oid):
            self._stream.write(self.place(path), mode, found.data, oid)
        self._note(path, found.status, len(found.data), oid, found.steady)

    def put_large(self, path: bytes, found: Large, tell: Callable[[int], None]) -> bool:
        """The same for a file that is read while it is written; whether it kept still. It is told the bytes done."""
        place = self.place(path)
        oid, steady = self._stream.put_large(place, found, tell)
        known = self.before.get(path)
        if known is not None and kept(known)[:2] == self._stream.written[place]:
            del self._stream.written[place]
        self._note(path, found.status, found.status.st_size, oid, steady)
        return steady

    def _note(self, path: bytes, status: os.stat_result, size: int, oid: str, steady: bool) -> None:
        self.now[path] = record(status, size, oid, steady, self._looked_ns)

    def sweep(self) -> None:
        """Take out what is no longer there: what has become a folder is replaced by what is in it already."""
        gone = self.before.keys() - self.now.keys()
        folders = {folder for path in self.now for folder in above(path)} if gone else set()
        for path in sorted(gone):
            if path in folders:
                self._stream.deleted.add(self.place(path))
            else:
                self._stream.delete(self.place(path))


def above(path: bytes) -> Iterator[bytes]:
    """The folders that a path lies in."""
    at = path.find(b"/")
    while at >= 0:
        yield path[:at]
        at = path.find(b"/", at + 1)
