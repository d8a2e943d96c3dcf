"""Find the refs of other work trees in which agents or iterations of their own are under way: what they do is theirs."""

import os
from collections.abc import Iterator
from datetime import datetime, timedelta

from guard.context.invocation import Invocation
from guard.context.lease import is_running
from guard.core.base.paths import spell
from guard.core.iteration.run import RUN, OpenIteration, Run
from guard.git.gitdir_files import WorkTree, other_work_trees
from guard.git.locate import Repository

_LONGEST_BY_HAND = timedelta(hours=12)
"""How long before a baseline an iteration without a guard may have begun and still be under way."""


def refs_of_others(
    guard: Invocation,
    repository: Repository,
    since: datetime,
    taken: frozenset[str] = frozenset(),
) -> frozenset[str]:
    """Return the HEADs and branches on which others have worked since then.

    Work in a work tree that the agent made for itself counts. But agents that run side by side, each under a guard of its own,
    must not complete each other's iterations. `taken` are the roots of work trees that other agents have, spelled.
    """
    return frozenset(
        name
        for tree in other_work_trees(repository)
        if spell(os.fsencode(tree.root)) in taken or _is_used(guard, tree, since)
        for name in _refs_of(tree)
    )


def _refs_of(tree: WorkTree) -> Iterator[str]:
    yield spell(os.fsencode(tree.head))
    if tree.branch is not None:
        yield spell(tree.branch)


def _is_used(guard: Invocation, tree: WorkTree, since: datetime) -> bool:
    run = guard.store.view(RUN, guard.key_of(tree.root))
    return run is not None and _overlaps(guard, run, since)


def _overlaps(guard: Invocation, run: Run, since: datetime) -> bool:
    begun, last = run.open_iteration, run.last_iteration
    if last is not None and last.ended_at >= since:
        return True
    return begun is not None and _is_under_way(guard, begun, since)


def _is_under_way(guard: Invocation, begun: OpenIteration, since: datetime) -> bool:
    if begun.supervisor is None:
        # Nothing tells whether an iteration that was begun by hand goes on: it is given up after some hours.
        return begun.started_at >= since - _LONGEST_BY_HAND
    return is_running(begun.supervisor, guard.store)
