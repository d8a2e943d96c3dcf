"""The view of the newest baseline of a work tree."""

from typing import Literal

from pydantic import Field

from guard.core.base.fields import Id, Instant, Line, Oid
from guard.core.iteration.events import (
    BaselineEvent,
    BaselineRecorded,
    BaselineSnapshotLost,
    RepositoryStanding,
)
from guard.core.log.events import IterationNumber
from guard.core.log.view import FieldsFold, ViewDocument, worktree_view

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

    schema_: Literal["guard/baseline/2"] = Field("guard/baseline/2", alias="schema")
    worktree: Id
    first_head: Oid | None
    """The commit that the first iteration of the same run began at."""

    def key(self) -> str:
        return self.worktree


class BaselineFold(FieldsFold[RecordedBaseline]):
    document_class = RecordedBaseline

    def apply(self, event: BaselineEvent) -> None:
        if isinstance(event, BaselineSnapshotLost):
            if self._fields.get("baseline") == event.baseline:
                self._fields["kept"] = None
            return
        known = self._fields if self._fields.get("run") == event.run else {"first_head": event.head}
        names = Baseline.model_fields.keys() - {"revision"} | {"worktree"}
        taken = {name: getattr(event, name) for name in names}
        self._fields = {**taken, "revision": None, "first_head": known["first_head"]}


BASELINE = worktree_view(
    RecordedBaseline,
    BaselineFold,
    (BaselineRecorded, BaselineSnapshotLost),
    "baseline",
    b'"type":"baseline_recorded"',
    b'"type":"baseline_snapshot_lost"',
)
