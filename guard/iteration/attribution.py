"""Tell what an iteration left in a work tree from what the user did there.

A file that holds the work of both is held back from every rescue, and one that changed while no guard was watching is taken for
the user's. The next baseline takes both for the user's; the snapshots have them anyway.
"""

import os
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from math import inf
from pathlib import Path
from typing import NamedTuple

from guard.core.base.first_use import dataclass
from guard.core.base.paths import unspell
from guard.core.iteration.baseline import Baseline
from guard.core.iteration.facts import DirtyFile
from guard.core.work.leftovers import files_changed_since, paths_with_users_work
from guard.git.dirty import Dirty, read_dirty
from guard.git.reader import RepositoryReader
from guard.git.reflogs import paths_gone_from_stash
from guard.git.repeats import PathInCommit, read_entries

MIXED = "mixed with changes that were there before the iteration"
_NESTED = "nested_repository: "
STASHED = "it was in the stash before the iteration"
_SLACK_SECONDS = 2.0
"""A guard that is killed has looked at most so long before."""


class Away(NamedTuple):
    """A time in which the iteration was not watched, in seconds since the epoch."""

    since: float
    until: float = inf

    @classmethod
    def after_guard(cls, watched_until: float) -> "Away":
        return cls(watched_until + _SLACK_SECONDS)


@dataclass(frozen=True)
class LeftByIteration:
    """What is dirty now, what of it changed since the baseline, and which of these paths are taken for the user's."""

    dirty: Dirty
    changed: tuple[DirtyFile, ...]
    aside: frozenset[str]
    behind: frozenset[str] = frozenset()
    """Paths at which only HEAD moved: the work tree and the index have what the baseline's HEAD has."""

    def with_hidden(self, hidden: tuple[DirtyFile, ...]) -> "LeftByIteration":
        """Add files that git does not list."""
        listed = {file.path for file in self.dirty.files}
        more = tuple(file for file in hidden if file.path not in listed)
        dirty = replace(self.dirty, files=(*self.dirty.files, *more))
        return replace(self, dirty=dirty, changed=(*self.changed, *more))

    @cached_property
    def files(self) -> tuple[DirtyFile, ...]:
        """Return what the iteration left: changed since the baseline, and not set aside."""
        return tuple(file for file in self.changed if file.path not in self.aside | self.behind)


def left_by_iteration(
    git: RepositoryReader,
    baseline: Baseline,
    *,
    aside: frozenset[str] = frozenset(),
    away: Iterable[Away] = (),
) -> LeftByIteration:
    """Compare the work tree with the baseline; paths that changed last in one of the times `away` are set aside."""
    now = read_dirty(git, baseline.dirty)
    changed = files_changed_since(baseline.dirty, now.files)
    meanwhile = (
        _paths_changed_while(absence, git.repository.root, changed, now) for absence in away
    )
    return LeftByIteration(now, changed, aside.union(*meanwhile))


def paths_behind(
    git: RepositoryReader, baseline: Baseline, head: str | None, found: LeftByIteration
) -> frozenset[str]:
    """Return the paths that differ from HEAD only because commits from elsewhere moved it, such as a push into the branch."""
    staged = {unspell(file.path): file for file in found.changed if file.staged}
    if not staged or None in (head, baseline.head) or head == baseline.head:
        return frozenset()
    entries = (entry for _, has in read_entries(git, [f"{baseline.head} {head}"]) for entry in has)
    return frozenset(
        staged[entry.path].path
        for entry in entries
        if entry.path in staged and _is_as_at_baseline(staged[entry.path], entry)
    )


def _is_as_at_baseline(file: DirtyFile, entry: PathInCommit) -> bool:
    if entry.is_gone:
        return file.index is None and file.kind == "missing"
    return file.index == entry.blob and not file.unstaged


def shared_with_user(
    git: RepositoryReader, baseline: Baseline, left: tuple[DirtyFile, ...]
) -> dict[str, str]:
    """Return the paths of what was left that are not the agent's alone, each with the reason."""
    found: dict[str, str] = {}
    if baseline.stash and left:
        back = paths_gone_from_stash(git, baseline.stash)
        found |= {file.path: STASHED for file in left if file.path in back}
    mixed = paths_with_users_work(baseline.dirty, left)
    repositories = {file.path for file in left if file.kind == "repository"}
    return found | {path: _NESTED + MIXED if path in repositories else MIXED for path in mixed}


def _paths_changed_while(
    away: Away, root: Path, files: tuple[DirtyFile, ...], dirty: Dirty
) -> frozenset[str]:
    since = _paths_changed_after(away.since, root, files, dirty)
    return (
        since - _paths_changed_after(away.until, root, files, dirty) if away.until < inf else since
    )


def _paths_changed_after(
    moment: float, root: Path, files: tuple[DirtyFile, ...], dirty: Dirty
) -> frozenset[str]:
    return frozenset(
        file.path
        for file in files
        if any(_has_changed_after(moment, root, path) for path in dirty.paths([file]))
    )


def _has_changed_after(moment: float, root: Path, path: bytes) -> bool:
    # By the time of the last change of any kind, which no program can set; of a path that is gone, that of its folder.
    place = os.path.join(os.fsencode(root), path)
    while True:
        try:
            return os.lstat(place).st_ctime > moment
        except OSError:
            above = os.path.dirname(place.rstrip(b"/"))
            if above == place:
                return True
            place = above
