"""A change under way in a folder of files: from taking the lock to letting it go."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from guard.core.events import Event
from guard.core.records import START, Entry, Position
from guard.core.replay import CHECKPOINT_PATH, VIEW_KINDS, checkpoint, paths_touched
from guard.core.views import Fold, ViewDocument, ViewKind
from guard.errors import GuardError
from guard.files import Folder
from guard.lock import LOCK, Lock
from guard.store.log import LIVE, Log
from guard.store.segments import BrokenLog
from guard.store.views import ViewFiles, apply_to

D = TypeVar("D", bound=ViewDocument)
F = TypeVar("F", bound=Fold[Any])
_MOST_EVENTS_LEFT_BEHIND = 200


@dataclass
class Memory:
    """What a store has read so far."""

    head: Position | None = None
    folds: dict[str, Fold[Any]] = field(default_factory=dict)
    unwritten: dict[str, int] = field(default_factory=dict)
    """Views that lag on disk, with the last record that touched each."""
    _pending: list[Entry] = field(default_factory=list)
    """Read or written, and not folded yet: that is done when somebody asks."""

    def forget(self) -> None:
        self.head = None
        self.folds.clear()
        self.unwritten.clear()
        self._pending.clear()

    def add(self, entries: list[Entry]) -> None:
        """Remember entries that were read or recorded."""
        if entries:
            self._pending += entries
            self.head = entries[-1].position

    def settle(self) -> None:
        """Fold what was taken."""
        for entry in self._pending:
            for path in paths_touched(entry.event):
                self.unwritten[path] = entry.position.seq
                if path in self.folds:
                    apply_to(self.folds[path], entry)
        self._pending.clear()


class FileChange:
    """A change under way, from taking the lock to letting it go."""

    def __init__(
        self,
        folder: Folder,
        lock: Lock,
        memory: Memory,
        segment_max: int,
        notice: Callable[[str], None],
    ) -> None:
        self._lock = lock
        self._memory = memory
        self._segment_max = segment_max
        self._notice = notice
        self._log = Log(folder)
        self._files = ViewFiles(folder, self._log, notice)
        self._mark: Position | None = None
        self._recent: list[Entry] = []
        self._since_mark = False
        """Whether `_recent` has every record since the mark."""
        self._unsynced = False

    @property
    def head(self) -> Position:
        assert self._memory.head is not None
        return self._memory.head

    def catch_up(self) -> None:
        """Read what others have recorded since."""
        self._log.hold()
        memory, self._mark = self._memory, self._lock.mark()
        try:
            self._skip_what_views_have()
            if memory.head is None:
                memory.head = self._mark or self._log.live_start()
                self._since_mark = memory.head == self._mark
            self._recent = list(self._log.entries(memory.head))
        except GuardError:
            memory.forget()
            raise
        memory.add(self._recent)
        self._unsynced = bool(self._recent)
        memory.head = self._log.after_sealed(self.head)
        written = self._mark.seq if self._mark else 0
        if self.head.seq < written:
            why = f"the log ends before it, but {LOCK} remembers {written}: records were cut off"
            raise BrokenLog(LIVE, self.head.offset, self.head.seq + 1, why)
        memory.settle()
        memory.unwritten = {path: seq for path, seq in memory.unwritten.items() if seq > written}
        if self._mark is None:
            self._find_unwritten()

    def _skip_what_views_have(self) -> None:
        """After a long absence the views on disk are a shorter way to the present than the records."""
        known = self._memory.head
        if known and self._mark and self._mark.seq - known.seq > _MOST_EVENTS_LEFT_BEHIND:
            self._log.still_has(known)
            self._memory.forget()

    def _find_unwritten(self) -> None:
        """Without a mark, each view that the live segment touches has to be looked at."""
        stale = self._memory.unwritten
        for path, seq in list(stale.items()):
            if self._files.seq(path, _kind_of(path)) == seq:
                del stale[path]

    def view(self, kind: ViewKind[D, Any], key: str = "") -> D | None:
        """The view as of now, events of this change included; None if nothing ever touched it."""
        fold = self.fold(kind, key)
        return fold.document() if fold.reached.seq else None

    def fold(self, kind: ViewKind[Any, F], key: str = "") -> F:
        """The same state while it is being built, to ask it for a part without freezing the whole."""
        path = kind.path(key)
        self._memory.settle()
        fold = self._memory.folds.get(path)
        if fold is None:
            recent = self._recent if self._since_mark else None
            fold = self._files.load(kind, key, self._mark, recent) or kind.fold(key)
            self._memory.folds[path] = fold
        return cast(F, fold)

    def append(self, *events: Event) -> Sequence[Entry]:
        """Record the events, all or none; they are durable when this returns."""
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
        self._recent += entries
        self._unsynced = False
        return entries

    def _refuse_orphans(self) -> None:
        """A log is begun only where no view speaks of an earlier one."""
        for kind in VIEW_KINDS:
            for path in self._files.paths(kind):
                raise BrokenLog(LIVE, 0, 1, f"the log is missing, but {path} was made from it")

    def _rotate(self) -> Position:
        """Seal the live segment, if every view can be written first, else it grows on; where the next record goes."""
        if not self._write_views():
            return self.head
        kept = self._files.checkpoint()
        seqs = dict(kept.views) if kept else {}
        for entry in self._log.entries(self._log.live_start() if kept else START):
            seqs.update((path, entry.position.seq) for path in paths_touched(entry.event))
        try:
            self._files.write(CHECKPOINT_PATH, checkpoint(seqs, self.head), durable=True)
        except OSError as error:
            self._notice(f"the log was not rotated: {error.strerror}")
            return self.head
        head = self._memory.head = self._log.seal(self.head)
        self._lock.set_mark(head)
        self._mark, self._recent, self._since_mark = head, [], True
        return head

    def end(self) -> None:
        """Write the views that lag, or leave them to whoever waits for the lock."""
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
        """Whether every view on disk is now current. A view that cannot be written never fails the change."""
        self._memory.settle()
        unwritten = self._memory.unwritten
        for path in list(unwritten):
            kind = _kind_of(path)
            try:
                fold = self.fold(kind, kind.key_in(path) or "")
                self._files.write(path, fold.document())
            except (OSError, GuardError) as error:
                self._notice(f"{path} could not be written ({error}); the log has everything")
                continue
            del unwritten[path]
        if not unwritten and self._mark != self.head:
            self._lock.set_mark(self.head)
            self._mark, self._recent, self._since_mark = self.head, [], True
        return not unwritten


def _kind_of(path: str) -> ViewKind[Any, Any]:
    return next(kind for kind in VIEW_KINDS if kind.key_in(path) is not None)
