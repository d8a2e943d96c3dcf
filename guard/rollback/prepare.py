"""A revert, worked out and checked, before anything is touched."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from guard.core.base.paths import path_line
from guard.core.base.text import plural
from guard.core.snapshots.snapshot import MOST_NAMED
from guard.rescue.commits import PathChange, changes
from guard.rollback.errors import Stopped
from guard.rollback.place import RollbackPlace
from guard.rollback.preflight import BranchPosition, obstacles, standing
from guard.rollback.revert import reverted, tree_of
from guard.snapshots.project import Project
from guard.snapshots.shadow import scratch

_MOST_SAID = 5


@dataclass(frozen=True)
class RevertOrder:
    """The task to be rolled back."""

    task_id: str
    name: str
    """As the plan spells the id."""
    title: str
    branch: str | None
    """The one that it was done on."""
    commits: tuple[str, ...]
    """Its own, the newest first."""


@dataclass(frozen=True)
class PreparedRevert:
    """A revert that nothing stands against; without changes there is nothing to be done."""

    standing: BranchPosition
    tree: str
    changed: Sequence[PathChange]


@contextmanager
def prepared(
    place: RollbackPlace, orders: Sequence[RevertOrder], *, dry: bool
) -> Iterator[PreparedRevert]:
    """What becomes of the tree when these tasks are taken back one after the other; `Stopped` if anything stands against it.

    Dry, not even an object is written to the repository.
    """
    with scratch(place.workspace) as folder:
        project = place.project()
        own = project.with_index(folder / "index")
        own = own.writing_objects_to(folder / "objects") if dry else own
        yield _prepared(project, own, orders)


def _prepared(project: Project, own: Project, orders: Sequence[RevertOrder]) -> PreparedRevert:
    found = standing(project, orders[0].branch)
    tree = before = tree_of(own, found.head)
    for order in orders:
        _refuse_rewritten(own, order, found.head)
        answer = reverted(own, tree, order.commits)
        if answer.conflicts:
            raise _stopped_by(order, answer.conflicts)
        tree = answer.tree
    changed = changes(own, before, tree) if tree != before else []
    own.call("read-tree", tree)
    against = obstacles(project, own, changed)
    if against:
        raise Stopped(
            "dirty",
            f"{plural(len(against), 'file')} that would change cannot be: {_said(against)}",
            "commit, move or restore them first",
            [path_line(path) for path in sorted(against)[:MOST_NAMED]],
        )
    return PreparedRevert(found, tree, changed)


def _refuse_rewritten(own: Project, order: RevertOrder, head: str) -> None:
    """A commit that the branch does not have any more has nothing on it that could be taken back."""
    if not order.commits:
        return
    stdin = "".join(f"{oid}\n" for oid in order.commits).encode() + f"^{head}\n".encode()
    gone = own.line("rev-list", "--max-count=1", "--stdin", stdin=stdin)
    if gone:
        raise Stopped(
            "not_in_history",
            f"{gone[:12]} of task {order.name} is not in the history of HEAD: it was rewritten",
            "`git log` shows what became of it; revert that with `git revert`",
        )


def _stopped_by(order: RevertOrder, conflicts: Sequence[bytes]) -> Stopped:
    return Stopped(
        "conflict",
        f"task {order.name} cannot be reverted: later changes conflict in "
        + _said(dict.fromkeys(conflicts, "")),
        "revert it yourself with `git revert`, or roll back first what was built on it",
        [path_line(path) for path in conflicts[:MOST_NAMED]],
    )


def _said(paths: Mapping[bytes, str]) -> str:
    named = [
        f"{path_line(path)} ({why})" if why else path_line(path)
        for path, why in sorted(paths.items())
    ]
    more = len(named) - _MOST_SAID
    return ", ".join(named[:_MOST_SAID]) + (f" and {more} more" if more > 0 else "")
