"""Keep the store in a folder of files.

A change takes the lock, catches up from the log, appends with one synced write (the commit point), and then replaces the
views by rename. Views are never synced: their hash shows what a power loss has left of them, and they are folded again. When
another process already waits for the lock, the views are left to it, so that contention costs appends and not files; the
mark in the lock file says up to where all views on disk are known to be current.
"""

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import datetime
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from guard.core.log.events import LogRestarted
from guard.core.log.record import START, LogEntry, Position
from guard.core.log.replay import touched_paths
from guard.core.log.settings import StoreSettings
from guard.core.log.view import ViewDocument, ViewKind
from guard.core.snapshots.snapshot import Anchor
from guard.errors import GuardError, StoreUnavailable
from guard.store.change import FileChange, StoreMemory
from guard.store.leases import FileLeases
from guard.store.lock import LOCK, Lock, hold_lock, read_mark
from guard.store.log import LIVE, Log, LogGone
from guard.store.segments import BrokenLog, ReplacedLog
from guard.store.views import Recent, ViewFiles
from guard.system.private_files import Folder

if TYPE_CHECKING:
    from guard.core.log.reports import RebuildReport, VerifyReport
    from guard.store.survey import Survey
    from guard.store.transfer import LogLine
    from guard.system.file_events import LogBell

D = TypeVar("D", bound=ViewDocument)
T = TypeVar("T")
_DEFAULTS = StoreSettings.model_construct()
_READ_ATTEMPTS, _READ_PAUSE = 4, 0.02


class LogWitness(Protocol):
    """What remembers a log outside of its workspace."""

    @property
    def known_seq(self) -> int:
        """Return a record number that the log must have reached; 0 if none is remembered."""
        ...

    def find_loss(self) -> str | None:
        """Say why a log must have been where none is; None if nothing speaks of one."""
        ...

    def note(self, head: Position) -> None:
        """Remember that the log has begun."""
        ...

    def renew(self, head: Position) -> None:
        """Remember the log up to this record, whatever was remembered before."""
        ...


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
        witness: LogWitness | None = None,
    ) -> None:
        self.path = path
        self._lock_timeout = lock_timeout_seconds
        self._segment_max = segment_max_bytes
        self._notice = notice
        self._witness = witness
        self._seen: Position | None = None
        """The newest record that this store has seen: the log must not become shorter than that."""
        self._survey: Survey | None = None
        self._memory = StoreMemory()
        self._threads = threading.Lock()

    def view(self, kind: ViewKind[D, Any], key: str = "", part: str | None = None) -> D | None:  # noqa: ARG002
        def load(folder: Folder) -> D | None:
            mark = read_mark(folder)
            fold = ViewFiles(folder, Log(folder), self._notice).load(kind, key, mark)
            return fold.document() if fold else None

        return self._read(load)

    def entries(self, after: Position = START) -> Iterator[LogEntry]:
        at, failures = after, 0
        with _open_folder(self.path) as folder:
            self._refuse_lost_log(folder)
            mark = read_mark(folder) if folder else None
            while folder is not None:
                try:
                    self._refuse_cut_log(folder)
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

    def bell(self) -> "LogBell":
        from guard.system.file_events import FileBell

        return FileBell(self.path / LIVE)

    def exists(self) -> bool:
        return os.path.lexists(self.path)

    def has_state_of(self, worktree: str) -> bool:
        return os.path.lexists(self.path / "worktrees.d" / worktree)

    def hold_lease(self, name: str, seconds: float) -> None:
        FileLeases(self.path).hold(name, seconds)

    def has_lease(self, name: str) -> bool:
        return FileLeases(self.path).is_held(name)

    def end_lease(self, name: str) -> None:
        FileLeases(self.path).end(name)

    def journal(self, worktree: str) -> AbstractContextManager[None]:  # noqa: ARG002
        return nullcontext()

    def refresh(self) -> None:
        """Files need no server."""

    def recent(self) -> list[LogEntry]:
        # The live segment is the newest part of the log, however long that is.

        def read(folder: Folder) -> list[LogEntry]:
            log = Log(folder)
            return list(log.entries(log.live_start()))

        return self._read(read) or []

    def views(self, kind: ViewKind[D, Any], keys: Iterable[str] | None = None) -> dict[str, D]:
        # One reading of the live segment for all.
        if keys is not None:
            found = {key: self.view(kind, key) for key in dict.fromkeys(keys)}
            return {key: view for key, view in found.items() if view is not None}

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
        from guard.core.log.reports import Finding, VerifyReport
        from guard.store.verify import verify

        try:
            known = self._least_seq()
            report = self._read(lambda folder: verify(folder, anchors, known), to_end=False)
            findings: tuple[Finding, ...] = ()
        except LogGone as error:
            report, findings = (
                None,
                (Finding(file=LIVE, place="", problem=error.message, hint=error.hint),),
            )
        return report or VerifyReport(
            ok=not findings,
            segments=0,
            records=0,
            head=START.hash,
            views=0,
            behind=(),
            torn_bytes=0,
            findings=findings,
        )

    def rebuild(self) -> "RebuildReport":
        from guard.store.rebuild import rebuild

        self.refuse_lost_log()
        with self._hold_locks() as (folder, lock):
            self._memory.forget()
            return rebuild(folder, lock, self._least_seq())

    def salvage(self, now: datetime, event_id: str) -> "RebuildReport":
        """Go on without the damaged parts; everything that is given up is kept under another name."""
        from guard.store.rebuild import salvage

        self.refuse_lost_log()
        with self._hold_locks() as (folder, lock):
            self._memory.forget()
            report = salvage(folder, lock, now, event_id)
            self._remember_anew(lock.mark())
        return report

    def records(self) -> "Iterator[LogLine]":
        with _open_folder(self.path) as folder:
            self._refuse_lost_log(folder)
            if folder is not None:
                self._refuse_cut_log(folder)
                yield from Log(folder).records()

    def import_lines(self, lines: Iterable[bytes]) -> int:
        from guard.store.import_log import import_lines
        from guard.store.rebuild import rebuild

        self.refuse_lost_log()
        with self._hold_locks() as (folder, lock):
            self._memory.forget()
            count = import_lines(folder, lines)
            rebuild(folder, lock)
            self._remember_anew(lock.mark())
        return count

    def restart(self, event: LogRestarted) -> tuple[str, ...]:
        """Begin a new log where the old one is gone; return the names under which what was left of it is kept."""
        from guard.store.rebuild import make_lockable, restart

        with Folder.make(self.path) as folder:
            make_lockable(folder)
        with self._hold_locks() as (folder, lock):
            self._memory.forget()
            aside = restart(folder, lock, event)
            self._remember_anew(lock.mark())
        return aside

    def _remember_anew(self, head: Position | None) -> None:
        self._seen = head
        if self._witness is not None and head is not None:
            self._witness.renew(head)

    def anchor(self) -> None:
        """Have the witness remember the log up to the newest record that this store has seen."""
        if self._witness is not None and self._seen is not None:
            self._witness.renew(self._seen)

    def refuse_lost_log(self) -> None:
        """Raise `LogGone` if there is no log here, and this store or its witness remembers one."""
        with _open_folder(self.path) as folder:
            self._refuse_lost_log(folder)

    def _refuse_lost_log(self, folder: Folder | None) -> None:
        if folder is not None and not Log(folder).is_empty():
            self._refuse_lost_segment(folder)
            return
        if self._seen is not None and self._seen.seq:
            raise LogGone(self.path, f"it had {self._seen.seq} records when this guard last looked")
        why = self._witness.find_loss() if self._witness is not None else None
        if why is not None:
            raise LogGone(self.path, why)

    def _refuse_lost_segment(self, folder: Folder) -> None:
        # After a rotation there is no live segment until the next record, and none may be missed that came after.
        if folder.exists(LIVE):
            return
        least, end = self._least_seq(), Log(folder).live_start().seq
        if end < least and not folder.exists(LIVE):
            raise LogGone(
                self.path, f"the segments before it end at record {end}, but it had {least}"
            )

    def survey(self) -> None:
        """Look at every state file before an agent runs, to compare with later."""
        from guard.store.survey import survey

        self._survey = self._read(survey)

    def compare_survey(self) -> None:
        """Raise if a state file became one that guard does not trust; have lost views made again by the next change."""
        from guard.store.survey import find_lost_views

        before = self._survey
        if before is None:
            return
        with _open_folder(self.path) as folder:
            self._refuse_lost_log(folder)
            lost = find_lost_views(folder, before) if folder is not None else []
        if lost:
            self._notice(f"{lost[0]} is missing or damaged; guard makes it again from the log")
            with self._hold_locks() as (_, lock):
                lock.clear_mark()
                self._memory.forget()

    def refuse_changed_log(self) -> None:
        """Raise if a record of the log is another one than at the survey; without a survey, nothing is read."""
        from guard.store.survey import refuse_changed_log

        before, known = self._survey, self._seen
        if before is None or known is None:
            return
        try:
            self._read(lambda folder: refuse_changed_log(folder, before, known))
        except BrokenLog as error:
            if error.file == LIVE and not isinstance(error, ReplacedLog):
                self._clear_mark()
            raise

    def _clear_mark(self) -> None:
        # Without the mark every later change reads the live segment from its beginning, and refuses it too. A log that is
        # whole would pass then; there the mark is what tells.
        with suppress(GuardError, OSError), self._hold_locks() as (_, lock):
            lock.clear_mark()
            self._memory.forget()

    def refuse_lost_segments(self) -> None:
        """Raise if a sealed segment is not there as a file with records in it."""

        def check(folder: Folder) -> None:
            Log(folder).check_sealed()

        self._read(check)

    def _least_seq(self) -> int:
        known = self._witness.known_seq if self._witness is not None else 0
        return max(known, self._seen.seq if self._seen is not None else 0)

    def _refuse_cut_log(self, folder: Folder) -> None:
        """Raise if the log ends before a record that is remembered: without its views, it would be read as a younger one."""
        least = self._least_seq()
        end = Log(folder).read_end() if least else None
        if end is not None and end[0] < least:
            why = f"the log ends before it, but guard remembers {least}: records were cut off"
            raise BrokenLog(LIVE, end[1], end[0] + 1, why)

    def _read(self, read: Callable[[Folder], T], *, to_end: bool = True) -> T | None:
        # Without the lock a writer may be seen half-way: what looks broken is read again before it is believed.
        with _open_folder(self.path) as folder:
            self._refuse_lost_log(folder)
            if folder is None:
                return None
            for attempt in range(_READ_ATTEMPTS):
                try:
                    if to_end:
                        self._refuse_cut_log(folder)
                    return read(folder)
                except BrokenLog:
                    if attempt == _READ_ATTEMPTS - 1:
                        raise
                    sleep(_READ_PAUSE)
        raise AssertionError("unreachable")

    @contextmanager
    def change(self, timeout: float | None = None) -> Iterator[FileChange]:
        # When the change ends the views are written, unless another process waits that will write them.
        if not os.path.lexists(self.path):
            self.refuse_lost_log()
        least = self._least_seq()  # Read before the log, which may grow meanwhile.
        with self._hold_locks(timeout) as (folder, lock):
            if self._memory.head is None or not folder.exists(LIVE):
                self._refuse_lost_log(folder)
            change = FileChange(folder, lock, self._memory, self._segment_max, self._notice, least)
            with change:
                begins = change.head == START
                yield change
            self._remember(self._memory.head, begins=begins)

    def _remember(self, head: Position | None, *, begins: bool) -> None:
        if head is None or not head.seq:
            return
        self._seen = head
        if self._witness is not None:
            (self._witness.renew if begins else self._witness.note)(head)

    @contextmanager
    def _hold_locks(self, timeout: float | None = None) -> Iterator[tuple[Folder, Lock]]:
        # Threads that share a store wait for each other here: what it remembers is not theirs to change at once.
        timeout = self._lock_timeout if timeout is None else timeout
        if not self._threads.acquire(timeout=timeout):
            raise StoreUnavailable(
                f"another thread of this process has held {self.path} for {timeout:g} s",
                "wait until its change has ended",
            )
        try:
            with Folder.make(self.path) as folder, hold_lock(folder, timeout) as lock:
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
