"""Fold the log into its views: every view at once, or those that a reader asks for."""

from collections.abc import Callable, Container, Iterator
from typing import Any, Literal

from pydantic import Field

from guard.core.base.fields import Seq
from guard.core.log.adoption import WorktreeAdopted
from guard.core.log.events import BaseEvent
from guard.core.log.record import START, LogEntry, Position
from guard.core.log.table import view_kinds, views_of
from guard.core.log.view import Fold, LogPosition, ViewDocument, ViewKind

Route = tuple[ViewKind[Any, Any], Callable[[Any], str], Callable[[str], str]]


class _Routes(dict[type[BaseEvent], tuple[Route, ...]]):
    """The views that each event touches, found when the first of its kind is met."""

    def __missing__(self, event: type[BaseEvent]) -> tuple[Route, ...]:
        found = tuple((kind, kind.key, kind.path) for kind in views_of(event))
        self[event] = found
        return found


_ROUTES = _Routes()
CHECKPOINT_PATH = "checkpoint.json"


class Checkpoint(ViewDocument):
    """Every view that there was when a segment was opened, with the last record that changed it.

    It spares a reader the older segments: a view that stands where the checkpoint says is current up to this segment, and a
    view that is not named here has no record in any older one.
    """

    schema_: Literal["guard/checkpoint/1"] = Field("guard/checkpoint/1", alias="schema")
    views: dict[str, Seq]


def make_checkpoint(views: dict[str, int], position: Position) -> Checkpoint:
    place = LogPosition(segment=position.segment, offset=position.offset, hash=position.hash)
    return Checkpoint(seq=position.seq, log=place, views=dict(sorted(views.items())))


class Replay:
    def __init__(self, only: Container[str] | None = None) -> None:
        self.folds: dict[str, Fold[Any]] = {}
        self.kinds: dict[str, ViewKind[Any, Any]] = {}
        self.position = START
        self._only = only

    def feed(self, entry: LogEntry) -> None:
        event, position, _ = entry
        self.position = position
        if type(event) is WorktreeAdopted:
            self._adopt(event, position)
            return
        for kind, key_of, path_of in _ROUTES[type(event)]:
            key = key_of(event)
            path = path_of(key)
            if self._only is not None and path not in self._only:
                continue
            fold = self.folds.get(path)
            if fold is None:
                fold = self.folds[path] = kind.fold(key)
                self.kinds[path] = kind
            fold.apply(event)
            fold.reached = position

    def _adopt(self, event: WorktreeAdopted, position: Position) -> None:
        for kind, path in _adopted(event):
            if self._only is None or path in self._only:
                fold = self.folds[path] = kind.fold(kind.key_in(path) or "")
                self.kinds[path] = kind
                feed_fold(fold, event, position, path)

    def checkpoint(self) -> Checkpoint:
        seqs = {path: fold.reached.seq for path, fold in self.folds.items()}
        return make_checkpoint(seqs, self.position)


def _adopted(event: WorktreeAdopted) -> Iterator[tuple[ViewKind[Any, Any], str]]:
    for kind in view_kinds():
        for path in event.views:
            if kind.key_in(path) is not None:
                yield kind, path


def feed_fold(fold: Fold[Any], event: BaseEvent, position: Position, path: str) -> None:
    """Have one view fold an event that touches it; `path` is the view's."""
    if type(event) is WorktreeAdopted:
        fold.adopt(event.views[path])
    else:
        fold.apply(event)
    fold.reached = position


def touched_paths(event: BaseEvent) -> list[str]:
    if type(event) is WorktreeAdopted:
        return [path for _, path in _adopted(event)]
    return [path_of(key_of(event)) for _, key_of, path_of in _ROUTES[type(event)]]
