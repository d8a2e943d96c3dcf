"""The view files of a workspace: read, caught up from the log, replaced.

A view on disk is current up to the mark in the lock file, if there is one, or else up to its own place in the log. Where the
file is missing, damaged or of an older format, the view is folded again from the whole log.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from guard.core.fields import is_id
from guard.core.records import START, Entry, Position
from guard.core.replay import CHECKPOINT_PATH, Checkpoint, Replay, paths_touched
from guard.core.views import (
    DamagedView,
    Fold,
    NewerView,
    OlderView,
    ViewDocument,
    ViewKind,
    seal,
    unseal,
)
from guard.errors import StateProblem
from guard.files import Folder
from guard.store.log import Log

D = TypeVar("D", bound=ViewDocument)


class ViewFiles:
    """Views below one workspace folder."""

    def __init__(self, folder: Folder, log: Log, notice: Callable[[str], None]) -> None:
        self._folder = folder
        self._log = log
        self._notice = notice
        self._damaged: set[str] = set()

    def load(
        self,
        kind: ViewKind[D, Any],
        key: str,
        mark: Position | None,
        recent: list[Entry] | None = None,
    ) -> Fold[D] | None:
        """The view, caught up to the end of the log; None if no record ever touched it.

        `recent` are the records since the mark, if the caller has read them already.
        """
        path = kind.path(key)
        document = self._document(path, kind.document)
        if document is None:
            return self._fold_again(kind, key, mark)
        fold: Fold[D] = kind.fold(key)
        fold.restore(document)
        since: Iterable[Entry] = recent or ()
        if recent is None:
            since = self._log.entries(self._current_up_to(path, document.position(), mark))
        for entry in since:
            if path in paths_touched(entry.event):
                apply_to(fold, entry)
        return fold

    def _current_up_to(self, path: str, own: Position, mark: Position | None) -> Position:
        if mark is not None:
            return max(mark, own)
        kept = self.checkpoint()
        if kept is None or own.segment > kept.log.segment or kept.views.get(path) != own.seq:
            return own
        return Position(kept.log.segment + 1, 0, kept.seq, kept.log.hash)

    def _fold_again(
        self, kind: ViewKind[D, Any], key: str, mark: Position | None
    ) -> Fold[D] | None:
        path = kind.path(key)
        known = path in self._damaged or self._in_older_segments(path)
        if not known and not self._log.contains(kind.needle(key)):
            return None
        replay = Replay(only={path})
        for entry in self._log.entries(START):
            replay.feed(entry)
        fold = replay.folds.get(path)
        if fold and mark and fold.reached.seq <= mark.seq and path not in self._damaged:
            self._notice(f"{self._folder.named(path)} was missing; folded again from the log")
        return fold

    def _in_older_segments(self, path: str) -> bool:
        if not self._log.last_sealed():
            return False
        kept = self.checkpoint()
        return kept is None or path in kept.views

    def checkpoint(self) -> Checkpoint | None:
        """The checkpoint of the newest sealed segment, if it is there and sound."""
        kept = self._document(CHECKPOINT_PATH, Checkpoint)
        return kept if kept and kept.log.segment == self._log.last_sealed() else None

    def _document(self, path: str, document: type[D]) -> D | None:
        data = self.read(path)
        if data is None:
            return None
        try:
            return unseal(data, document)
        except NewerView as error:
            raise StateProblem(
                f"{self._folder.named(path)}: {error}; a newer guard wrote it",
                "upgrade guard; nothing was changed",
            ) from None
        except OlderView:
            self._damaged.add(path)
        except DamagedView as error:
            if path not in self._damaged:
                self._notice(
                    f"{self._folder.named(path)} is damaged ({error}); folded again from the log"
                )
            self._damaged.add(path)
        return None

    def read(self, path: str) -> bytes | None:
        """The bytes of a state file, None if there is none."""
        with self._folder.walk(path) as (folder, name):
            return folder.read(name) if folder else None

    def paths(self, kind: ViewKind[Any, Any]) -> Iterator[str]:
        """The view files of a kind that are on disk."""
        with self._folder.walk(f"{kind.folder}x") as (parent, _):
            names = [name for name in parent.names() if parent.is_folder(name)] if parent else []
        for key in ["", *filter(is_id, names)]:
            with self._folder.walk(kind.path(key)) as (folder, name):
                if folder is not None and name and folder.exists(name):
                    yield kind.path(key)

    def seq(self, path: str, kind: ViewKind[Any, Any]) -> int:
        """The record that the file on disk has reached, 0 if it cannot be used."""
        document = self._document(path, kind.document)
        return document.seq if document else 0

    def write(self, path: str, document: ViewDocument, *, durable: bool = False) -> None:
        """Replace the file; a damaged one is kept beside it."""
        with self._folder.walk(path, create=True) as (folder, name):
            assert folder is not None
            if path in self._damaged and folder.exists(name):
                folder.set_aside(name)
            folder.replace(name, seal(document), durable=durable)
        self._damaged.discard(path)

    def mark_damaged(self, path: str) -> None:
        """Have the file that is there now kept aside when the view is written."""
        self._damaged.add(path)


def apply_to(fold: Fold[Any], entry: Entry) -> None:
    """Take the entry into the fold unless it is in already."""
    if entry.position.seq > fold.reached.seq:
        fold.apply(entry.event)
        fold.reached = entry.position
