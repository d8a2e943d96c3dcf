"""Other work trees of the repository in which iterations of their own are under way: what is done there is not done here.

Work on another branch, or in another work tree that the agent made for itself, counts. But agents that run side by side, each
under a guard and in a work tree of its own, must not complete each other's iterations.
"""

import os
from collections.abc import Iterator
from datetime import datetime, timedelta

from guard.context.workspace import worktree_key
from guard.core.base.paths import spelled
from guard.core.iteration.run import RUN, OpenIteration, Run
from guard.git.gitdir_files import other_work_trees
from guard.git.locate import Repository
from guard.store import Store
from guard.system.process_identity import is_alive

_LONGEST_BY_HAND = timedelta(hours=12)
"""How long before a baseline an iteration that nobody watches over may have begun and still be under way."""


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
    begun, last = run.open_iteration, run.last_iteration
    if last is not None and last.ended_at >= since:
        return True
    return begun is not None and _is_under_way(begun, since)


def _is_under_way(begun: OpenIteration, since: datetime) -> bool:
    """Whether its guard lives; of one that was begun by hand nobody knows, so it is given up after some hours."""
    if begun.supervisor is None:
        return begun.started_at >= since - _LONGEST_BY_HAND
    return is_alive(begun.supervisor.pid, begun.supervisor.start)
