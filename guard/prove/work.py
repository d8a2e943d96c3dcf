"""Find out what is to be proven: the commit, the checks that it concerns, and what each of them is held against."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from guard.context.invocation import RUN_REPO, Invocation
from guard.core.hooks.event_kinds import MARK
from guard.core.iteration.baseline import BASELINE, RecordedBaseline
from guard.core.prove.file_roles import matches_glob
from guard.core.prove.judge_work import ProofJudgement
from guard.core.prove.proofs import PROOFS, Bases, Proofs, choose_bases
from guard.core.prove.settings import Moment, ProveCheck, ProveSettings
from guard.core.work.history import foreign_commits, foreign_tips
from guard.errors import WrongUsage
from guard.git.history import read_history
from guard.git.reader import RepositoryReader
from guard.git.refs import commit_of, first_parent, has_commit, read_refs
from guard.prove.absent_objects import find_missing
from guard.prove.tree_diff import TreeDiff

_MOST_FOREIGN = 5
_OID = re.compile("[0-9a-f]{40}(?:[0-9a-f]{24})?")


@dataclass(frozen=True)
class ProveTerms:
    """What the caller asked for."""

    baseline: str | None = None
    head: str | None = None
    no_cache: bool = False
    flags: Mapping[str, Any] = field(default_factory=dict)
    since: str | None = None
    """The commit that an iteration began at, if the user named it; else the recorded baseline counts."""
    settings: ProveSettings | None = None
    """The settings of that iteration."""
    run: str | None = None
    iteration: int | None = None
    moment: Moment = "end"
    only: tuple[str, ...] = ()
    """The names of the checks to run; empty for all."""


@dataclass(frozen=True)
class CommittedWork:
    """A commit and what it is held against."""

    guard: Invocation
    terms: ProveTerms
    settings: ProveSettings

    @cached_property
    def git(self) -> RepositoryReader:
        return reader_of(self.guard)

    @cached_property
    def head(self) -> str:
        return commit_of(self.git, self.terms.head or "HEAD")

    @cached_property
    def proofs(self) -> Proofs | None:
        return self.guard.store.view(PROOFS, self.guard.worktree_key)

    @cached_property
    def _recorded(self) -> RecordedBaseline | None:
        return self.guard.store.view(BASELINE, self.guard.worktree_key)

    @property
    def checks(self) -> tuple[ProveCheck, ...]:
        found = self.settings.checks_at(self.terms.moment)
        unknown = [name for name in self.terms.only if name not in {each.name for each in found}]
        if unknown:
            names = ", ".join(each.name for each in found) or "none"
            raise WrongUsage(
                f"no check is named {unknown[0]!r}", f"these checks are configured: {names}"
            )
        if not found:
            raise WrongUsage(
                "no command is named that the work must pass",
                "give one with --command 'pytest -q', or set prove.command in your own config",
            )
        return tuple(each for each in found if not self.terms.only or each.name in self.terms.only)

    @property
    def counts(self) -> bool:
        """Whether later work may be held against this proof: an agent, or a baseline of one's choice, could prove anything."""
        return not (is_agents(self.guard) or self.terms.baseline or self.terms.since)

    def bases_of(self, check: ProveCheck) -> Bases:
        if self.terms.baseline:
            named = self._named(self.terms.baseline)
            return Bases(named, named)
        if self.terms.since:
            return Bases(self.terms.since, self.terms.since)
        return choose_bases(self.proofs, check, self.head, self._begun, self._is_older)

    @cached_property
    def _begun(self) -> str | None:
        """Return where the run began; without one, or if that is only later than this commit, the commit before."""
        recorded = self._recorded
        first = recorded.first_head if recorded is not None else None
        if recorded is not None and first is not None and first != self.head:
            if not self._has_commit(first) or self._is_older(first, self.head):
                return first
            refs = read_refs(self.git)
            if refs.branch == recorded.branch and refs.head == self.head:
                return first  # The history of its own branch was rewritten.
            shared = self.git.line("merge-base", first, self.head)
            if shared is None:
                return first  # History was thrown away, or git is told to hide it.
            if shared != self.head:
                return shared
        return first_parent(self.git, self.head)

    def _named(self, revision: str) -> str:
        """Return the commit that a revision names; an id is one even if no such object is here."""
        if _OID.fullmatch(revision) and not self._has_commit(revision):
            return revision
        return commit_of(self.git, revision)

    def find_missing(self, bases: Bases) -> ProofJudgement | None:
        """Return why the work cannot be judged for want of a commit or a file; None if all is here."""
        return find_missing(self.git, self.head, bases.failures, bases.tests)

    @cached_property
    def _is_older(self) -> Any:
        @cache
        def is_older(one: str, other: str) -> bool:
            # A commit that is gone is no ancestor; git says so with an exit code of its own.
            if one == other or not self._has_commit(one):
                return one == other
            return self.git.line("rev-list", "--count", "--max-count=1", one, f"^{other}") == "0"

        return is_older

    def _has_commit(self, commit: str) -> bool:
        return has_commit(self.git, commit)

    @cached_property
    def foreign(self) -> tuple[str, ...]:
        """Return the newest commits of others that came with the work since the run began."""
        recorded = self._recorded
        if recorded is None or self.terms.baseline:
            return ()
        history = read_history(self.git, recorded)
        return foreign_tips(history, self.head, foreign_commits(history))[:_MOST_FOREIGN]

    def diff_of(self, check: ProveCheck, bases: Bases) -> TreeDiff:
        tests = self.settings.tests
        return TreeDiff(self.git, bases.tests, self.head, check.command, tests, self.foreign)

    def concerns(self, check: ProveCheck, bases: Bases, change: TreeDiff) -> bool:
        """Tell whether the check has to be run: the change touches its paths, or what steers its tests."""
        if not check.paths or (check.kind == "tests" and change.files.steering):
            return True
        since = TreeDiff(self.git, bases.failures, self.head, check.command, self.settings.tests)
        paths = {entry.path for diff in (change, since) for entry in diff.entries}
        return any(matches_glob(path, glob) for path in paths for glob in check.paths)


def reader_of(guard: Invocation) -> RepositoryReader:
    limit = guard.config.settings.completion_check.git_timeout_seconds
    return RepositoryReader(guard.repository, guard.environ, limit)


def is_agents(guard: Invocation) -> bool:
    """Tell whether guard was called by an agent that `guard run` started in this work tree."""
    root = str(guard.repository.root)
    return MARK in guard.environ and guard.environ.get(RUN_REPO) == root
