"""Rescue by the user's own program: a snapshot before it, and its commits compared with that afterwards."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from guard.core.base.paths import path_line
from guard.core.rescue.settings import SnapshotLimits
from guard.core.snapshots.snapshot import HeldBack, Occasion, Snapshot
from guard.rescue.changes import PathChange
from guard.rescue.commits import is_as_kept
from guard.rescue.select import CommitSelection, Planner
from guard.snapshots.fast_import import Listing
from guard.snapshots.project import Project, Site
from guard.snapshots.shadow import Shadow
from guard.snapshots.take import Taken, open_for_snapshot, promote, take

_BY = "by the rescue command"


@dataclass(frozen=True)
class UsersProgram:
    """What the program has to do."""

    site: Site
    occasion: Occasion
    limits: SnapshotLimits

    def before(self, paths: Sequence[bytes]) -> "ExpectedCommits":
        with self.open() as (project, shadow):
            wanted = sorted({path.rstrip(b"/") for path in paths})
            taken = take(project, shadow, self.occasion, wanted, self.limits)
            committed = project.tree(project.commit_of("HEAD"))
            plan = Planner(project, shadow, taken, committed, self.limits.settings).plan(wanted)
        return ExpectedCommits(self, taken, plan)

    @contextmanager
    def open(self) -> Iterator[tuple[Project, Shadow]]:
        project = self.site.project()
        with open_for_snapshot(project, self.site.workspace, self.occasion) as shadow:
            yield project, shadow


@dataclass(frozen=True)
class ExpectedCommits:
    """What the program's commits must have."""

    by: UsersProgram
    taken: Taken
    plan: CommitSelection

    @property
    def snapshot(self) -> Snapshot:
        return self.taken.snapshot

    def list_missing(self, ref: str) -> tuple[HeldBack, ...]:
        """List what this ref does not have as it was, and what it should not have."""
        with self.by.open() as (project, shadow):
            tree = project.tree(project.commit_of(ref))
            return tuple(self._find_missing(project, shadow, tree))

    def settle(self) -> None:
        with self.by.open() as (_project, shadow):
            promote(shadow, self.snapshot)

    def _find_missing(self, project: Project, shadow: Shadow, tree: Listing) -> Iterator[HeldBack]:
        for path in self.plan.add:
            mode, oid = tree.get(path, (b"", ""))
            if not oid:
                yield HeldBack(path=path_line(path), why=f"not_committed: {_BY}")
            elif not is_as_kept(project, shadow, self.taken, PathChange("M", mode, oid, path)):
                yield HeldBack(path=path_line(path), why=f"not_as_it_was: changed {_BY}")
        for path in self.plan.delete:
            if path in tree:
                yield HeldBack(path=path_line(path), why=f"not_committed: its deletion, {_BY}")
        there = frozenset(map(path_line, tree))
        for held in self.plan.held_back:
            if held.path not in there:
                yield held
            elif held.why.startswith("secret"):
                yield HeldBack(path=held.path, why=f"committed {_BY}: {held.why}"[:512])
