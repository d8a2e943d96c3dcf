"""The iteration that a check is about: where it happens, and what is known of its agent."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from math import inf
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from guard.context.invocation import Invocation
from guard.core.base.first_use import dataclass
from guard.core.check.evidence import Cutoff
from guard.core.classify import Classification
from guard.core.config.settings import Settings
from guard.core.cost.usage import UNKNOWN, Usage
from guard.core.hooks.event_kinds import MARK
from guard.core.hooks.git.state import COMMITS
from guard.core.iteration.baseline import Baseline
from guard.core.tool_calls.agent_loop import LoopFound
from guard.git.locate import Repository
from guard.git.reader import RepositoryReader
from guard.iteration.attribution import Away
from guard.iteration.current import Iteration
from guard.iteration.other_trees import refs_of_others
from guard.system.clock import Deadline

if TYPE_CHECKING:
    from guard.probe.base import ProbeQuestion, Topic

SAVE_SHARE = 1 / 3
"""The part of a check's time that is left to save the work tree, if git has used up the rest."""


@dataclass(frozen=True)
class CheckSubject:
    """One iteration in one work tree, and whom to ask about it."""

    guard: Invocation
    iteration: Iteration
    settings: Settings
    agent: str | None = None
    session: str | None = None
    spec: str | None = None
    output: Classification | None = None
    """What the agent's output means, where guard saw it."""
    ended_by_guard: Cutoff | None = None
    hooks_loop: LoopFound | None = None
    """What the agent repeated by the word of its hooks, if its output does not tell."""
    usage: Usage = UNKNOWN
    """What the iteration used, as far as its agent tells."""
    away: tuple[Away, ...] = ()
    """The times in which no guard watched: what changed then may be the user's."""
    aside: frozenset[str] = frozenset()
    """The paths that earlier checks found to have changed in such times."""

    @property
    def repository(self) -> Repository:
        return self.guard.repository

    @property
    def workspace(self) -> Path:
        return self.guard.workspace.path

    @property
    def baseline(self) -> Baseline:
        return self.iteration.baseline

    @property
    def git_limit(self) -> float:
        return self.settings.completion_check.git_timeout_seconds

    @cached_property
    def deadline(self) -> Deadline:
        """Return the end of the time that git may take in this check; the rest is kept for a snapshot after it."""
        return Deadline(self.settings.completion_check.max_seconds * (1 - SAVE_SHARE))

    @contextmanager
    def stop_clock(self) -> Iterator[None]:
        """Keep what this block takes, which has a limit of its own, out of the check's time."""
        begun = monotonic()
        try:
            yield
        finally:
            self.deadline.extend(monotonic() - begun)

    @cached_property
    def environ(self) -> Mapping[str, str]:
        """Return the caller's environment without the mark, so that guard's own children are not taken for the iteration's."""
        return {name: text for name, text in self.guard.environ.items() if name != MARK}

    @property
    def git(self) -> RepositoryReader:
        return RepositoryReader(self.repository, self.environ, self.git_limit)

    def other_refs(self) -> frozenset[str]:
        """Return the refs on which iterations of other work trees have worked since the baseline, as of now."""
        since = self.baseline.at
        if since is None:
            return frozenset()
        return refs_of_others(self.guard, self.repository, since)

    def noted_commits(self) -> frozenset[str]:
        """Return the commits that guard's hook in git noted in this work tree."""
        view = self.guard.store.view(COMMITS, self.guard.worktree_key)
        return view.known_oids() if view is not None else frozenset()

    def question(self, most_seconds: float = inf, topic: "Topic | None" = None) -> "ProbeQuestion":
        from guard.probe.base import ProbeQuestion

        assert self.agent is not None
        check = self.settings.completion_check
        return ProbeQuestion(
            agent=self.agent,
            session=self.session,
            command=check.probe_command or None,
            model=check.probe_model or None,
            cwd=self.repository.root,
            time_limit=min(check.probe_timeout_seconds, most_seconds),
            environ=self.environ,
            now=self.guard.clock.now(),
            topic=topic,
        )
