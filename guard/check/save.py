"""Save what would be lost with an iteration: snapshots of the work tree, and commits that were thrown away."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from guard.check.subject import CheckSubject
from guard.core.base.text import plural
from guard.core.iteration.events import DirtyFile
from guard.core.rescue.settings import SnapshotLimits
from guard.core.snapshots.snapshot import Occasion, Snapshot, SnapshotKind
from guard.core.work.count import Work
from guard.errors import GuardError, RepositoryProblem
from guard.iteration.attribution import shared_with_user
from guard.iteration.baseline import keep_lost
from guard.snapshots.project import Site
from guard.snapshots.take import take_and_prune


def take_snapshot(subject: CheckSubject, kind: SnapshotKind = "check") -> Snapshot:
    iteration = subject.iteration
    occasion = Occasion(kind, subject.guard.clock.now(), iteration.run, iteration.number)
    limits = SnapshotLimits(subject.settings.rescue)
    return take_and_prune(rescue_site(subject), occasion, limits=limits)


def rescue_site(subject: CheckSubject) -> Site:
    limit = subject.settings.rescue.time_limit_seconds
    return Site(subject.repository, subject.workspace, subject.environ, limit)


@dataclass(frozen=True)
class WorkKeeper:
    """Keeps the work of one iteration safe while it is checked."""

    subject: CheckSubject

    def snapshot(self) -> Snapshot:
        return take_snapshot(self.subject)

    def after_snapshot(self, error: RepositoryProblem) -> RepositoryProblem:
        """Return the error of a check that git could not answer; its hint tells where the work tree is safe."""
        try:
            kept = self.snapshot()
        except GuardError as second:
            self.warn(f"guard could not take a snapshot: {second.message}")
            return error
        hint = error.hint or "fix the repository"
        return RepositoryProblem(error.message, f"{hint}; the work tree is safe: {kept.recover}")

    def warn_of_unread(self, kept: Snapshot) -> None:
        # Git passes over what it cannot read, so "nothing was left" may be wrong.
        if not kept.whole:
            self.warn(f"guard cannot read every file, so something may be left: {kept.skipped[0]}")

    def may_be_hidden(self) -> bool:
        """Tell whether `info/exclude`, which git obeys and no commit shows, changed since the baseline."""
        rules, began = self.subject.repository.common_dir / "info/exclude", self.subject.baseline.at
        with suppress(OSError):
            if began is not None and rules.stat().st_ctime > began.timestamp():
                self.warn(f"the iteration changed {rules}, which may hide files from git")
                return True
        return False

    def keep_lost(self, work: Work) -> None:
        """Pin the commits that the iteration threw away, and say where."""
        subject = self.subject
        ref = keep_lost(subject.git, subject.baseline, work, subject.guard.clock.now())
        if ref is not None:
            self.warn(
                f"the iteration threw away {plural(work.lost, 'commit')}; guard keeps them at {ref}"
            )

    def shared_with_user(self, left: tuple[DirtyFile, ...]) -> Mapping[str, str]:
        return shared_with_user(self.subject.git, self.subject.baseline, left)

    def warn(self, message: str) -> None:
        self.subject.guard.output.warn(message)
