"""Read the view files of a workspace, catch them up from the log, and replace them.

A view on disk is current up to the mark in the lock file, if there is one, or else up to its own place in the log. Where the
file is missing, damaged or of an older format, the view is folded again from the whole log. So is a registry
whose folder is not to be trusted: what stands in its place is neither read nor written, and the user is warned.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from guard.core.base.text import is_id
from guard.core.log.record import START, LogEntry, Position
from guard.core.log.replay import CHECKPOINT_PATH, Checkpoint, Replay, feed_fold, touched_paths
from guard.core.log.view import (
    DamagedView,
    Fold,
    NewerView,
    OlderView,
    ViewDocument,
    ViewKind,
    seal,
    unseal,
)
from guard.errors import GuardError, StateProblem
from guard.store.log import Log
from guard.system.private_files import Folder, UntrustedFolder

D = TypeVar("D", bound=ViewDocument)


class Recent(NamedTuple):
    """Every record after a place, read already: so that not each view has to read them again."""

    base: Position
    entries: list[LogEntry]


class ViewFiles:
    def __init__(self, folder: Folder, log: Log, notice: Callable[[str], None]) -> None:
        self._folder = folder
        self._log = log
        self._notice = notice
        self._damaged: set[str] = set()
        self.recovered: dict[str, str] = {}
        """Views whose file could not be used, and why."""
        self._checkpoint: Checkpoint | None = None

    def load(
        self, kind: ViewKind[D, Any], key: str, mark: Position | None, recent: Recent | None = None
    ) -> Fold[D] | None:
        """Return the view, caught up to the end of the log; None if no record ever touched it."""
        path = kind.path(key)
        document = self._own_document(kind, key)
        if document is None:
            return self._recover(kind, key, mark, recent)
        fold: Fold[D] = kind.fold(key)
        fold.restore(document)
        start = self._current_up_to(kind, key, document.position(), mark)
        if recent is not None and recent.base <= start:
            entries: Iterable[LogEntry] = recent.entries
        else:
            entries = self._log.entries(self._skip_to_mark(mark, kind.needles(key), start))
        for entry in entries:
            if path in touched_paths(entry.event):
                apply_to(fold, entry, path)
        return fold

    def _own_document(self, kind: ViewKind[D, Any], key: str) -> D | None:
        """The document at the view's path, if it is really that view's and not a copy of another."""
        path = kind.path(key)
        document = self._document(path, kind.document, kind)
        if document is None or document.key() == key:
            return document
        self._note_recovery(path, "is a copy of another view", "state_file_of_another_view")
        self._damaged.add(path)
        return None

    def _note_recovery(self, path: str, problem: str, reason: str) -> None:
        self._notice(f"{self._folder.path_of(path)} {problem}; guard folds it again from the log")
        self.recovered[path] = reason

    def _current_up_to(
        self, kind: ViewKind[D, Any], key: str, own: Position, mark: Position | None
    ) -> Position:
        # From where on the log has to be read: the checkpoint spares what was sealed since the view was written.
        kept = self.checkpoint() if mark is None or own.segment < mark.segment else None
        if kept and own.segment <= kept.log.segment and kept.views.get(kind.path(key)) == own.seq:
            return Position(kept.log.segment + 1, 0, kept.seq, kept.log.hash)
        return own

    def _skip_to_mark(
        self, mark: Position | None, needles: tuple[bytes, ...], start: Position
    ) -> Position:
        # The mark spares much of the rest. It is not believed where the log itself speaks of the view after the
        # view's own place: then the file is an old copy.
        if mark is None or mark <= start or start.segment != mark.segment:
            return start
        return start if self._log.mentions(needles, start, mark) else mark

    def _recover(
        self, kind: ViewKind[D, Any], key: str, mark: Position | None, recent: Recent | None
    ) -> Fold[D] | None:
        # A view without a usable file: none was written yet, or it was deleted or damaged.
        path = kind.path(key)
        if mark is not None:
            self._log.check_place(mark)
        known = path in self._damaged or self._in_older_segments(path)
        if not known and recent is None and not self._log.mentions(kind.needles(key)):
            return None
        fold = self.fold_again({path: kind.needles(key)}, recent).get(path)
        if fold and mark and fold.reached.seq <= mark.seq and path not in self._damaged:
            self._note_recovery(path, "was missing", "state_file_missing")
        return fold

    def fold_again(
        self, needles: dict[str, tuple[bytes, ...]], recent: Recent | None
    ) -> dict[str, Fold[Any]]:
        """Fold these views from their first record on, all in one reading; from the recent ones alone if all began there."""
        replay = Replay(only=needles)
        is_new = recent is not None and not (
            any(path in self._damaged or self._in_older_segments(path) for path in needles)
            or self._log.mentions(chain(*needles.values()), before=recent.base)
        )
        for entry in recent.entries if recent and is_new else self._log.entries(START):
            replay.feed(entry)
        return replay.folds

    def keys(self, kind: ViewKind[Any, Any], recent: Iterable[str]) -> list[str]:
        """List the keys that have a view of this kind: on disk, in the sealed segments, or among these paths."""
        found = self.paths(kind, only_trusted=kind.goes_by_log)
        paths = [*recent, *self.older_views(), *found]
        return sorted({key for path in paths if (key := kind.key_in(path)) is not None})

    def older_views(self) -> dict[str, int]:
        """Return every view that the sealed segments touch, with the last record there that changed it."""
        last = self._log.last_sealed()
        kept = self.checkpoint()
        if kept is not None or not last:
            return dict(kept.views) if kept else {}
        replay = Replay()
        for entry in self._log.entries(START):
            if entry.position.segment > last:
                break
            replay.feed(entry)
        return {path: fold.reached.seq for path, fold in replay.folds.items()}

    def _in_older_segments(self, path: str) -> bool:
        if not self._log.last_sealed():
            return False
        kept = self.checkpoint()
        return kept is None or path in kept.views

    def checkpoint(self) -> Checkpoint | None:
        """Return the checkpoint of the newest sealed segment, if it is there and sound."""
        last, kept = self._log.last_sealed(), self._checkpoint
        if kept is None or kept.log.segment != last:
            kept = self._checkpoint = self._document(CHECKPOINT_PATH, Checkpoint)
        return kept if kept and kept.log.segment == last else None

    def _document(
        self, path: str, document: type[D], kind: ViewKind[D, Any] | None = None
    ) -> D | None:
        data = self._read_trusted(path, kind) if kind else self.read(path)
        if data is None:
            return None
        try:
            return unseal(data, document)
        except NewerView as error:
            raise StateProblem(
                f"{self._folder.path_of(path)}: {error}; a newer guard wrote it",
                "upgrade guard; this guard changed nothing",
            ) from None
        except OlderView:
            self._damaged.add(path)
        except DamagedView as error:
            if path not in self._damaged:
                self._note_recovery(path, f"is damaged ({error})", "state_file_damaged")
            self._damaged.add(path)
            self.recovered[path] = "state_file_damaged"
        return None

    def _read_trusted(self, path: str, kind: ViewKind[D, Any]) -> bytes | None:
        # What took the place of a summary is set aside when the view is written.
        try:
            with self._folder.walk(path) as (folder, name):
                if kind.is_summary:
                    return self._read_summary(folder, name, path)
                return _read(folder, name)
        except UntrustedFolder as error:
            if not kind.goes_by_log:
                raise
            self._go_by_log(path, error)
        return None

    def _read_summary(self, folder: Folder | None, name: str, path: str) -> bytes | None:
        # A link, a folder or another user's file may have taken its place.
        try:
            return _read(folder, name)
        except StateProblem as error:
            self._go_by_log(path, error)
        return None

    def _go_by_log(self, path: str, error: StateProblem) -> None:
        self._notice(f"{error.message}; guard goes by the log")
        self._damaged.add(path)
        self.recovered[path] = "state_file_damaged"

    def read(self, path: str) -> bytes | None:
        with self._folder.walk(path) as (folder, name):
            return _read(folder, name)

    def paths(self, kind: ViewKind[Any, Any], *, only_trusted: bool = False) -> Iterator[str]:
        passed_over = (UntrustedFolder,) if only_trusted else ()
        names: list[str] = []
        with suppress(*passed_over), self._folder.walk(f"{kind.folder}x") as (parent, _):
            names = [name for name in parent.names() if parent.is_folder(name)] if parent else []
        for key in ["", *filter(is_id, names)]:
            with suppress(*passed_over), self._folder.walk(kind.path(key)) as (folder, name):
                if folder is not None and name and folder.exists(name):
                    yield kind.path(key)

    def seq(self, path: str, kind: ViewKind[Any, Any]) -> int | None:
        """Return the record that the file on disk has reached; 0 if there is no usable one, None if it must not be touched."""
        try:
            document = self._document(path, kind.document, kind)
        except (OSError, GuardError):
            return None
        return document.seq if document else 0

    def discard_leftover(self, path: str) -> bool:
        """Remove what a killed process left of a file that it was about to replace, and tell whether there was any.

        Only for the holder of the lock: for others it may be the file that is being written.
        """
        with self._folder.walk(path) as (folder, name):
            leftovers = [
                leftover
                for leftover in (f".{name}.tmp", f"{name}.tmp")
                if folder is not None and folder.exists(leftover)
            ]
            for leftover in leftovers:
                assert folder is not None
                folder.remove(leftover)
        return bool(leftovers)

    def write(self, path: str, document: ViewDocument, *, durable: bool = False) -> None:
        """Replace the file; a damaged one is kept beside it. Raises `UntrustedFolder` where nothing may be written."""
        with self._folder.walk(path, create=True) as (folder, name):
            assert folder is not None
            if path in self._damaged and folder.exists(name):
                folder.set_aside(name)
            folder.replace(name, seal(document), durable=durable)
        self._damaged.discard(path)

    def mark_damaged(self, path: str) -> None:
        """Have the file that is there now kept aside when the view is written."""
        self._damaged.add(path)


def _read(folder: Folder | None, name: str) -> bytes | None:
    return folder.read(name) if folder is not None else None


def apply_to(fold: Fold[Any], entry: LogEntry, path: str) -> None:
    if entry.position.seq > fold.reached.seq:
        feed_fold(fold, entry.event, entry.position, path)
