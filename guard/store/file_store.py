"""Keep the store in a folder of files.

A change takes the lock, catches up from the log, appends with one synced write (the commit point), and then replaces the
views by rename. Views are never synced: their hash shows what a power loss has left of them, and they are folded again. When
another process already waits for the lock, the views are left to it, so that contention costs appends and not files; the
mark in the lock file says up to where all views on disk are known to be current.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Any, TypeVar

from guard.core.log.record import START, LogEntry, Position
from guard.core.log.replay import touched_paths
from guard.core.log.settings import StoreSettings
from guard.core.log.view import ViewDocument, ViewKind
from guard.core.snapshots.snapshot import Anchor
from guard.errors import StoreUnavailable
from guard.store.change import FileChange, StoreMemory
from guard.store.lock import LOCK, Lock, hold_lock, read_mark
from guard.store.log import LIVE, Log
from guard.store.segments import BrokenLog
from guard.store.views import Recent, ViewFiles
from guard.system.private_files import Folder

if TYPE_CHECKING:
    from guard.core.log.reports import RebuildReport, VerifyReport

D = TypeVar("D", bound=ViewDocument)
T = TypeVar("T")
_DEFAULTS = StoreSettings.model_construct()
_READ_ATTEMPTS, _READ_PAUSE = 4, 0.02


def _ignore_message(_message: str) -> None:
    return


class FileStore:
    """A workspace folder. It remembers what it has read, so that a long-lived process only reads what is new."""

    def __init__(
        self,
        path: Path,
        *,
        lock_timeout_seconds: float = _DEFAULTS.lock_timeout_seconds,
        segment_max_bytes: int = _DEFAULTS.segment_max_bytes,
        notice: Callable[[str], None] = _ignore_message,
    ) -> None:
        self.path = path
        self._lock_timeout = lock_timeout_seconds
        self._segment_max = segment_max_bytes
        self._notice = notice
        self._memory = StoreMemory()
        self._threads = threading.Lock()

    def view(self, kind: ViewKind[D, Any], key: str = "") -> D | None:
        def load(folder: Folder) -> D | None:
            mark = read_mark(folder)
            fold = ViewFiles(folder, Log(folder), self._notice).load(kind, key, mark)
            return fold.document() if fold else None

        return self._read(load)

    def entries(self, after: Position = START) -> Iterator[LogEntry]:
        at, failures = after, 0
        with _open_folder(self.path) as folder:
            mark = read_mark(folder) if folder else None
            while folder is not None:
                try:
                    for entry in Log(folder).entries(at):
                        yield entry
                        at, failures = entry.position, 0
                    if mark and mark.seq > at.seq:
                        why = f"the log ends before it, but {LOCK} remembers {mark.seq}"
                        raise BrokenLog(LIVE, at.offset, at.seq + 1, f"{why}: records were cut off")
                except BrokenLog:
                    failures += 1
                    if failures == _READ_ATTEMPTS:
                        raise
                    sleep(_READ_PAUSE)
                else:
                    return

    def recent(self) -> list[LogEntry]:
        # The live segment is the newest part of the log, however long that is.

        def read(folder: Folder) -> list[LogEntry]:
            log = Log(folder)
            return list(log.entries(log.live_start()))

        return self._read(read) or []

    def views(self, kind: ViewKind[D, Any]) -> dict[str, D]:
        # One reading of the live segment for all.

        def load(folder: Folder) -> dict[str, D]:
            log, mark = Log(folder), read_mark(folder)
            files, base = ViewFiles(folder, log, self._notice), log.live_start()
            touched = _entries_by_view(log, base)
            folds = {
                key: files.load(kind, key, mark, Recent(base, touched.get(kind.path(key), [])))
                for key in files.keys(kind, touched)
            }
            return {key: fold.document() for key, fold in folds.items() if fold is not None}

        return self._read(load) or {}

    def verify(self, anchors: Sequence[Anchor] = ()) -> "VerifyReport":
        """Check the whole log and every view, also against what snapshots remember of the log."""
        from guard.core.log.reports import VerifyReport
        from guard.store.verify import verify

        report = self._read(lambda folder: verify(folder, anchors))
        return report or VerifyReport(
            ok=True,
            segments=0,
            records=0,
            head=START.hash,
            views=0,
            behind=(),
            torn_bytes=0,
            findings=(),
        )

    def rebuild(self) -> "RebuildReport":
        from guard.store.rebuild import rebuild

        with self._hold_locks() as (folder, lock):
            self._memory.forget()
            return rebuild(folder, lock)

    def salvage(self, now: datetime, event_id: str) -> "RebuildReport":
        """Go on without the damaged parts; everything that is given up is kept under another name."""
        from guard.store.rebuild import salvage

        with self._hold_locks() as (folder, lock):
            self._memory.forget()
            return salvage(folder, lock, now, event_id)

    def _read(self, read: Callable[[Folder], T]) -> T | None:
        # Without the lock a writer may be seen half-way: what looks broken is read again before it is believed.
        with _open_folder(self.path) as folder:
            if folder is None:
                return None
            for attempt in range(_READ_ATTEMPTS):
                try:
                    return read(folder)
                except BrokenLog:
                    if attempt == _READ_ATTEMPTS - 1:
                        raise
                    sleep(_READ_PAUSE)
        raise AssertionError("unreachable")

    @contextmanager
    def change(self) -> Iterator[FileChange]:
        # When the change ends the views are written, unless another process waits that will write them.
        with self._hold_locks() as (folder, lock):
            change = FileChange(folder, lock, self._memory, self._segment_max, self._notice)
            with change:
                yield change

    @contextmanager
    def _hold_locks(self) -> Iterator[tuple[Folder, Lock]]:
        # Threads that share a store wait for each other here: what it remembers is not theirs to change at once.
        if not self._threads.acquire(timeout=self._lock_timeout):
            raise StoreUnavailable(
                f"another thread of this process has held {self.path} for {self._lock_timeout:g} s",
                "wait until its change has ended",
            )
        try:
            with Folder.make(self.path) as folder, hold_lock(folder, self._lock_timeout) as lock:
                yield folder, lock
        finally:
            self._threads.release()


def _entries_by_view(log: Log, base: Position) -> dict[str, list[LogEntry]]:
    found: dict[str, list[LogEntry]] = {}
    for entry in log.entries(base):
        for path in touched_paths(entry.event):
            found.setdefault(path, []).append(entry)
    return found


@contextmanager
def _open_folder(path: Path) -> Iterator[Folder | None]:
    folder = Folder.open(path)
    with folder or nullcontext():
        yield folder
