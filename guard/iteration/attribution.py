"""Whose a file is: what was left in a work tree, and cannot be shown to be the agent's alone.

What holds the work of both is held back from every rescue. What changed when no guard was watching is taken for the user's. The
next baseline takes both for the user's, and the snapshots have them anyway.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from guard.core.events.baseline import DirtyFile
from guard.core.iteration.baseline import Baseline
from guard.core.work.uncommitted import mixed_with_users
from guard.git.dirty import Dirty
from guard.git.locate import Repository
from guard.git.run import TIME_LIMIT_SECONDS
from guard.git.stashes import brought_back

MIXED = "mixed with changes that were there before the iteration"
STASHED = "it was in the stash before the iteration"
_SLACK_SECONDS = 2.0
"""A guard that is killed has looked at most so long before."""


def not_the_agents(
    repository: Repository,
    baseline: Baseline,
    left: tuple[DirtyFile, ...],
    environ: Mapping[str, str],
    time_limit: float = TIME_LIMIT_SECONDS,
) -> dict[str, str]:
    """The paths of what was left that are not the agent's alone, and why."""
    found: dict[str, str] = {}
    if baseline.stash and left:
        back = brought_back(repository, baseline.stash, environ, time_limit)
        found |= {file.path: STASHED for file in left if file.path in back}
    return found | dict.fromkeys(mixed_with_users(baseline.dirty, left), MIXED)


def unwatched(
    root: Path, left: tuple[DirtyFile, ...], dirty: Dirty, watched_until: float
) -> frozenset[str]:
    """The paths of what was left that changed after guard looked last: nobody can say who did that."""
    return changed_after(root, left, dirty, watched_until + _SLACK_SECONDS)


def changed_after(
    root: Path, files: tuple[DirtyFile, ...], dirty: Dirty, moment: float
) -> frozenset[str]:
    """The paths of these files that changed after this moment."""
    return frozenset(
        file.path
        for file in files
        if any(_changed_after(root, path, moment) for path in dirty.paths([file]))
    )


def _changed_after(root: Path, path: bytes, moment: float) -> bool:
    """By the time of the last change of any kind, which nobody can set; of what is gone, that of the folder it was in."""
    place = os.path.join(os.fsencode(root), path)
    while True:
        try:
            return os.lstat(place).st_ctime > moment
        except OSError:
            above = os.path.dirname(place.rstrip(b"/"))
            if above == place:
                return True
            place = above
