"""Other work trees of the repository in which iterations of their own are under way: what is done there is not done here.

Work on another branch, or in another work tree that the agent made for itself, counts. But agents that run side by side, each
under a guard and in a work tree of its own, must not complete each other's iterations.
"""

import os
from collections.abc import Iterator
from datetime import datetime

from guard.core.paths import spelled
from guard.core.runs import RUN, Run
from guard.git.folders import other_work_trees
from guard.git.locate import Repository
from guard.store import Store
from guard.workspace import worktree_key


def names_of_others(store: Store, repository: Repository, since: datetime | None) -> frozenset[str]:
    """The refs on which iterations of other work trees have worked since then, spelled."""
    return frozenset(_names(store, repository, since)) if since is not None else frozenset()


def _names(store: Store, repository: Repository, since: datetime) -> Iterator[str]:
    for tree in other_work_trees(repository):
        run = store.view(RUN, worktree_key(tree.root))
        if run is not None and _overlaps(run, since):
            yield spelled(os.fsencode(tree.head))
            if tree.branch is not None:
                yield spelled(tree.branch)


def _overlaps(run: Run, since: datetime) -> bool:
    last = run.last_iteration
    return run.open_iteration is not None or (last is not None and last.ended_at >= since)
