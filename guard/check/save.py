"""What would be lost with an iteration, saved: snapshots, what was left to be committed, and commits that were thrown away."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from guard.check.subject import CheckSubject
from guard.core.base.text import plural
from guard.core.config.settings import Settings
from guard.core.events.baseline import DirtyFile
from guard.core.events.snapshot import Snapshot
from guard.core.work.count import Work
from guard.errors import GuardError, RepositoryProblem
from guard.git.dirty import Dirty
from guard.iteration.attribution import not_the_agents
from guard.iteration.baseline import keep_lost
from guard.system.clock import Clock

if TYPE_CHECKING:
    from guard.check.leftovers import Leftovers


@dataclass(frozen=True)
class Saving:
    """The ways in which a check keeps the work of its iteration safe."""

    subject: CheckSubject
    settings: Settings
    clock: Clock
    warn: Callable[[str], None]

    def snapshot(self) -> Snapshot:
        """The work tree as it is."""
        from guard.check.leftovers import kept

        return kept(self.subject, self.settings, self.clock.now())

    def after_snapshot(self, error: RepositoryProblem) -> RepositoryProblem:
        """Git cannot answer, so there is no verdict; but what is in the work tree is kept all the same."""
        try:
            kept = self.snapshot()
        except GuardError as second:
            self.warn(f"no snapshot could be taken: {second.message}")
            return error
        return RepositoryProblem(
            error.message, f"{error.hint or 'mend it'}; the work tree is safe: {kept.recover}"
        )

    def say_what_git_does_not_see(self, kept: Snapshot) -> None:
        """Git passes over what it cannot read; who says that nothing was left has to know of it."""
        if not kept.whole:
            self.warn(f"not everything can be read, so something may be left: {kept.skipped[0]}")

    def may_be_hidden(self) -> bool:
        """Whether rules outside of the work tree, which git obeys and nobody commits, changed since the baseline."""
        rules, began = self.subject.repository.common_dir / "info/exclude", self.subject.baseline.at
        with suppress(OSError):
            if began is not None and rules.stat().st_ctime > began.timestamp():
                self.warn(f"{rules} was changed by the iteration: it may hide files from git")
                return True
        return False

    def keep_lost(self, work: Work) -> None:
        """Commits that the iteration threw away are pinned, and it is said where."""
        subject, limit = self.subject, self.settings.completion_check.git_timeout_seconds
        ref = keep_lost(
            subject.repository, subject.baseline, work, subject.environ, self.clock.now(), limit
        )
        if ref is not None:
            self.warn(f"{plural(work.lost, 'commit')} lost by the iteration, kept by {ref}")

    def leftovers(
        self, left: tuple[DirtyFile, ...], dirty: Dirty, held: Mapping[str, str] | None = None
    ) -> "Leftovers":
        """What the iteration left, ready to be committed; `held` is what must not be, and why."""
        from guard.check.leftovers import Leftovers

        return Leftovers(
            self.subject,
            self.settings,
            left,
            dirty,
            self.not_the_agents(left) if held is None else held,
            self.clock.now(),
            self.warn,
        )

    def not_the_agents(self, left: tuple[DirtyFile, ...]) -> Mapping[str, str]:
        """Which of these files are not shown to be the agent's alone, and why."""
        subject = self.subject
        return not_the_agents(
            subject.repository,
            subject.baseline,
            left,
            subject.environ,
            self.settings.completion_check.git_timeout_seconds,
        )
