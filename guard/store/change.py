"""Make a change in a folder of files, from taking the lock to letting it go."""

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, TypeVar, cast

from guard.core.base.first_use import dataclass
from guard.core.log.events import BaseEvent
from guard.core.log.record import START, LogEntry, Position
from guard.core.log.replay import CHECKPOINT_PATH, make_checkpoint, touched_paths
from guard.core.log.table import kind_at, view_kinds
from guard.core.log.view import Fold, ViewDocument, ViewKind
from guard.errors import GuardError
from guard.store.lock import LOCK, Lock
from guard.store.log import LIVE, Log
from guard.store.segments import BrokenLog
from guard.store.views import Recent, ViewFiles, apply_to
from guard.system.private_files import Folder, UntrustedFolder

D = TypeVar("D", bound=ViewDocument)
F = TypeVar("F", bound=Fold[Any])
_MOST_EVENTS_LEFT_BEHIND = 200


@dataclass
class StoreMemory:
    """What a store has read so far."""

    head: Position | None = None
    folds: dict[str, Fold[Any]] = field(default_factory=dict)
    unwritten: dict[str, int] = field(default_factory=dict)
    """Views that lag on disk, with the last record that touched each."""
    is_checked: bool = False
    """Whether the segment that is written to was found whole, record by record."""
    _pending: list[LogEntry] = field(default_factory=list)
    """Read or written, and not folded yet: the next reader of the view folds it."""

    def forget(self) -> None:
        self.head = None
        self.folds.clear()
        self.unwritten.clear()
        self._pending.clear()

    def add(self, entries: list[LogEntry]) -> None:
        if entries:
            self._pending += entries
            self.head = entries[-1].position

    def settle(self) -> None:
        """Fold the pending entries."""
        for entry in self._pending:
            for path in touched_paths(entry.event):
                self.unwritten[path] = entry.position.seq
                if path in self.folds:
                    apply_to(self.folds[path], entry, path)
        self._pending.clear()


class FileChange:
    def __init__(
        self,
        folder: Folder,
        lock: Lock,
        memory: StoreMemory,
        segment_max: int,
        notice: Callable[[str], None],
        least_seq: int = 0,
    ) -> None:
        self._lock = lock
        self._least_seq = least_seq
        self._memory = memory
        self._segment_max = segment_max
        self._notice = notice
        self._log = Log(folder)
        self._files = ViewFiles(folder, self._log, notice)
        self._mark: Position | None = None
        self._recent = Recent(START, [])
        self._unsynced = False

    @property
    def head(self) -> Position:
        assert self._memory.head is not None
        return self._memory.head

    def __enter__(self) -> "FileChange":
        # Reads what others have recorded since. A refusal here changes nothing, so that the next one refuses too.
        self._log.hold()
        self._mark = self._lock.mark()
        try:
            self._catch_up()
        except BaseException:
            self._memory.forget()
            self._log.close()
            raise
        return self

    def _catch_up(self) -> None:
        memory = self._memory
        self._skip_what_views_have()
        base = memory.head = memory.head or self._mark or self._log.live_start()
        entries = list(self._log.entries(base))
        memory.add(entries)
        self._recent = Recent(base, entries)
        self._unsynced = bool(entries)
        memory.head = self._log.after_sealed(self.head)
        written = self._mark.seq if self._mark else 0
        if self.head.seq < written:
            why = f"the log ends before it, but {LOCK} remembers {written}: records were cut off"
            raise BrokenLog(LIVE, self.head.offset, self.head.seq + 1, why)
        if 0 < self.head.seq < self._least_seq:
            why = f"the log ends before it, but guard remembers {self._least_seq}: records were cut off"
            raise BrokenLog(LIVE, self.head.offset, self.head.seq + 1, why)
        memory.settle()
        memory.unwritten = {path: seq for path, seq in memory.unwritten.items() if seq > written}
        if self._mark is None:
            self._find_unwritten()

    def _skip_what_views_have(self) -> None:
        # After a long absence the views on disk are a shorter way to the present than the records.
        known = self._memory.head
        if known and self._mark and self._mark.seq - known.seq > _MOST_EVENTS_LEFT_BEHIND:
            self._log.check_place(known)
            self._memory.forget()

    def _find_unwritten(self) -> None:
        # Without a mark, as after a restart of the machine, each view that there ever was has to be looked at.
        wanted = self._files.older_views() | self._memory.unwritten
        found = {path: self._files.seq(path, kind_at(path)) for path in wanted}
        stale = {path: seq for path, seq in wanted.items() if found[path] != seq}
        self._memory.unwritten = stale
        self._fold_lost()

    def _fold_lost(self) -> None:
        # Views that have to be written and have no usable file, all at once: one by one each would read the log.
        folds, kinds = self._memory.folds, {p: kind_at(p) for p in self._memory.unwritten}
        unread = {path: kind for path, kind in kinds.items() if path not in folds}
        lost = [path for path, kind in unread.items() if self._files.seq(path, kind) == 0]
        if len(lost) > 1:
            needles = {path: kinds[path].needles(kinds[path].key_in(path) or "") for path in lost}
            folds.update(self._files.fold_again(needles, self._recent))

    def expect(self, kind: ViewKind[Any, Any], key: str = "", part: str = "") -> None:
        """Files are read one by one, when they are needed."""

    def expect_event(self, event_id: str) -> None:
        """The log is searched when it is asked."""

    def refuse_damage(self) -> None:
        if not self._memory.is_checked:
            self._log.check_links(self._log.live_start(), self.head)
            self._memory.is_checked = True

    def view(self, kind: ViewKind[D, Any], key: str = "") -> D | None:
        fold = self.fold(kind, key)
        return fold.document() if fold.reached.seq else None

    def fold(self, kind: ViewKind[Any, F], key: str = "") -> F:
        path = kind.path(key)
        self._memory.settle()
        fold = self._memory.folds.get(path)
        if fold is None:
            fold = self._files.load(kind, key, self._mark, self._recent) or kind.fold(key)
            self._memory.folds[path] = fold
        return cast(F, fold)

    def recovery_reason(self, kind: ViewKind[Any, Any], key: str = "") -> str | None:
        self.fold(kind, key)
        path = kind.path(key)
        has_leftover = self._files.discard_leftover(path)
        return self._files.recovered.get(path) or ("temp_file_exists" if has_leftover else None)

    def find_event(self, event_id: str) -> BaseEvent | None:
        return self._log.find_by_id(event_id)

    def append(self, *events: BaseEvent) -> Sequence[LogEntry]:
        if not events:
            return ()
        memory, head = self._memory, self.head
        if head.offset >= self._segment_max:
            head = self._rotate()
        if head.seq == 0:
            self._refuse_orphans()
        try:
            entries = self._log.append(events, head)
        except BaseException:
            memory.forget()
            raise
        memory.add(entries)
        self._recent.entries.extend(entries)
        self._unsynced = False
        return entries

    def _refuse_orphans(self) -> None:
        # A log is begun only where no view speaks of an earlier one.
        for kind in view_kinds():
            for path in self._files.paths(kind):
                raise BrokenLog(LIVE, 0, 1, f"the log is missing, but {path} was made from it")

    def _rotate(self) -> Position:
        """Seal the live segment, if every view can be written first, else it grows on; return where the next record goes."""
        if not self._write_views():
            return self.head
        kept = self._files.checkpoint()
        seqs = dict(kept.views) if kept else {}
        for entry in self._log.entries(self._log.live_start() if kept else START):
            seqs.update((path, entry.position.seq) for path in touched_paths(entry.event))
        try:
            self._files.write(CHECKPOINT_PATH, make_checkpoint(seqs, self.head), durable=True)
        except OSError as error:
            self._notice(f"guard cannot begin a new segment of the log: {error.strerror}")
            return self.head
        head = self._memory.head = self._log.seal(self.head)
        self._lock.set_mark(head)
        self._mark, self._recent = head, Recent(head, [])
        return head

    def __exit__(self, *_: object) -> None:
        # Writes the views that lag, or leaves them to the process that waits for the lock.
        try:
            if self._memory.head is not None:
                self._settle()
        finally:
            self._log.close()

    def _settle(self) -> None:
        if self._unsynced:
            # Another process may have died between its write and its sync; what we read must not be lost after we act on it.
            self._log.sync()
        behind = self.head.seq - (self._mark.seq if self._mark else 0)
        if behind <= _MOST_EVENTS_LEFT_BEHIND and self._lock.others_wait():
            return
        self._write_views()

    def _write_views(self) -> bool:
        # Whether every view on disk is now current. A view that cannot be written never fails the change.
        self._memory.settle()
        try:
            self._fold_lost()
        except (OSError, GuardError) as error:
            self._notice(f"guard cannot fold the views again ({error}); the log has everything")
            return False
        unwritten = self._memory.unwritten
        for path in list(unwritten):
            kind = kind_at(path)
            try:
                fold = self.fold(kind, kind.key_in(path) or "")
                self._files.write(path, fold.document())
            except UntrustedFolder as error:
                self._notice(f"{error.message}; guard goes by the log")
                continue
            except (OSError, GuardError) as error:
                self._notice(f"guard cannot write {path} ({error}); the log has everything")
                continue
            del unwritten[path]
        if not unwritten and self._mark != self.head:
            self._lock.set_mark(self.head)
            self._mark, self._recent = self.head, Recent(self.head, [])
        return not unwritten
