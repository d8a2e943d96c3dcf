"""Save what would be lost with an iteration: snapshots of the work tree, and commits that were thrown away."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from guard.check.subject import SAVE_SHARE, CheckSubject
from guard.core.base.first_use import dataclass
from guard.core.base.paths import spell, unspell
from guard.core.base.text import fit_line, plural
from guard.core.iteration.facts import DirtyFile
from guard.core.rescue.settings import SnapshotLimits
from guard.core.snapshots.paths import folders_above
from guard.core.snapshots.snapshot import Occasion, Snapshot, SnapshotKind
from guard.core.work.count import Work
from guard.core.work.leftovers import has_changed
from guard.errors import GuardError, RepositoryProblem
from guard.git.run import limit_git
from guard.iteration.attribution import shared_with_user
from guard.iteration.baseline import keep_lost
from guard.snapshots.inventory import open_shelf
from guard.snapshots.last_resort import add_snapshot
from guard.snapshots.project import Site
from guard.snapshots.shadow import ref_in_command
from guard.snapshots.take import take_and_prune
from guard.system.clock import Deadline

_MOST_NAMES = 5


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

    def after_snapshot(self, error: GuardError) -> GuardError:
        """Return the error of a check that could not go on; its hint tells where the work tree is safe."""
        longest = self.subject.settings.completion_check.max_seconds * SAVE_SHARE
        with limit_git(Deadline(longest)):
            return add_snapshot(self.subject.guard, error)

    def tell_what_is_kept(self, replaced: Sequence[str]) -> Iterator[str]:
        """Say of files of the user's that are no longer as they were which the baseline's snapshot has, and which not."""
        kept = self.subject.baseline.kept
        missing, inside = self._find_not_kept(replaced) if kept else (list(replaced), [])
        if kept and len(missing) < len(replaced):
            whose = f"{'the rest of ' if missing or inside else ''}the user's work"
            yield fit_line(f"{whose} from before the iteration is safe: {kept}")
        lacks = "the baseline's snapshot does not have"
        if missing:
            files = f"{plural(len(missing), 'file')} of the user's"
            yield fit_line(f"{lacks} {files} that changed since: {_join(missing)}")
        if inside:
            files = f"{plural(len(inside), 'file')} in folders"
            yield fit_line(f"{lacks} {files} that changed since: {_join(inside)}")

    def _find_not_kept(self, names: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return which of these files and folders the snapshot does not have, and what is missing in the folders it has."""
        subject, ref = self.subject, ref_in_command(self.subject.baseline.kept or "")
        limit = subject.settings.rescue.time_limit_seconds
        kept, lost = set[bytes](), list[bytes]()
        with (
            suppress(GuardError),
            open_shelf(subject.workspace, subject.environ, time_limit=limit) as shelf,
        ):
            if ref is not None:
                kept, lost = shelf.find_kept(ref, map(unspell, names)), shelf.list_lost(ref)
        missing = sorted(name for name in names if unspell(name).rstrip(b"/") not in kept)
        inside = (
            path for path in lost if not kept.isdisjoint(tuple(folders_above(path)) or (b".",))
        )
        return missing, sorted(map(spell, inside))

    def is_new(self, left: tuple[DirtyFile, ...]) -> bool:
        """Tell whether one of these files has changed since the iteration began."""
        return has_changed(self.subject.baseline.dirty, left)

    def warn_of_unread(self, kept: Snapshot) -> None:
        # Git passes over what it cannot read, so "nothing was left" may be wrong.
        if not kept.whole:
            self.warn(f"guard cannot read every file, so something may be left: {kept.skipped[0]}")

    def keep_lost(self, work: Work) -> None:
        """Pin the commits that the iteration threw away, and say where."""
        subject = self.subject
        try:
            ref = keep_lost(subject.git, subject.baseline, work, subject.guard.clock.now())
        except RepositoryProblem as error:
            thrown = f"{plural(work.lost, 'commit')} that the iteration threw away"
            self.warn(f"guard cannot keep {thrown}: {error.message}")
            return
        if ref is not None:
            self.warn(
                f"the iteration threw away {plural(work.lost, 'commit')}; guard keeps them at {ref}"
            )

    def shared_with_user(self, left: tuple[DirtyFile, ...]) -> Mapping[str, str]:
        return shared_with_user(self.subject.git, self.subject.baseline, left)

    def warn(self, message: str) -> None:
        self.subject.guard.output.warn(message)


def _join(names: Sequence[str]) -> str:
    return f"{', '.join(names[:_MOST_NAMES])}{' …' if names[_MOST_NAMES:] else ''}"
