"""The view of the newest baseline of a work tree."""

from typing import Any, Literal

from pydantic import Field

from guard.core.base.fields import Id, Instant, Line
from guard.core.iteration.events import BaselineRecorded, RepositoryStanding
from guard.core.log.events import IterationNumber
from guard.core.log.view import Fold, ViewDocument, ViewKind

EMPTY = "empty"
"""The baseline of a repository without a commit."""


class Baseline(RepositoryStanding):
    """What an iteration is measured against: recorded when it began, or named afterwards by a revision."""

    run: Id
    iteration: IterationNumber
    at: Instant | None
    """None if it was named afterwards."""
    baseline: Id
    revision: Line | None = None
    """The revision that was named: nothing is known then of other branches, and everything dirty is the iteration's."""


class RecordedBaseline(Baseline, ViewDocument):
    """The newest baseline of one work tree."""

    schema_: Literal["guard/baseline/1"] = Field("guard/baseline/1", alias="schema")
    worktree: Id

    def key(self) -> str:
        return self.worktree


class BaselineFold(Fold[RecordedBaseline]):
    document_class = RecordedBaseline

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._fields: dict[str, Any] = {}

    def restore(self, document: RecordedBaseline) -> None:
        self.reached = document.position()
        self._fields = {name: getattr(document, name) for name in Baseline.model_fields}

    def apply(self, event: BaselineRecorded) -> None:
        names = [name for name in Baseline.model_fields if name != "revision"]
        self._fields = {name: getattr(event, name) for name in names} | {"revision": None}

    def contents(self) -> dict[str, Any]:
        return {"worktree": self.key, **self._fields}


BASELINE: ViewKind[RecordedBaseline, BaselineFold] = ViewKind(
    document=RecordedBaseline,
    fold=BaselineFold,
    events=(BaselineRecorded,),
    key=lambda event: event.worktree,
    folder="worktrees.d/",
    file="/baseline.json",
    needles=lambda _key: (b'"type":"baseline_recorded"',),
)
