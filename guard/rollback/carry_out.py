"""Carry out a revert: stage it, announce it, bring it into the work tree, and move the branch as the last step."""

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass

from guard.core.base.paths import spell
from guard.core.rollback.journal import PIN_REFS, RollbackJournal
from guard.core.snapshots.paths import folders_above
from guard.core.snapshots.snapshot import Snapshot
from guard.errors import RepositoryProblem
from guard.rescue import move_branch
from guard.rescue.commits import Committer
from guard.rollback.place import RollbackPlace
from guard.rollback.prepare import (
    BranchPosition,
    PreparedRevert,
    RevertOrder,
    RollbackStopped,
    prepare_revert,
)
from guard.rollback.recover import settle, work_tree
from guard.rollback.revert import revert_message
from guard.rollback.stage import ChangedMeanwhile, StagedRollback, begin, bring_in, stage
from guard.snapshots.project import Project

Keep = Callable[[], Snapshot]
"""Takes a snapshot of the work tree."""
Announce = Callable[[str, str], None]
"""Called with the commit of the branch now and with the revert, before guard touches anything."""


@dataclass(frozen=True)
class RolledBack:
    """A reverted task."""

    head: str
    to_sha: str
    """The revert; the commit before where there was nothing to revert."""
    snapshot: str | None
    unsigned: str = ""
    """Why the revert is not signed, though the user signs."""


def roll_back(
    place: RollbackPlace, order: RevertOrder, lock: int, keep: Keep, announce: Announce
) -> RolledBack:
    """Revert a task's commits; raise `Stopped`, with everything as it was, if that cannot be done.

    The caller has the lock of all rollbacks, and has settled those that were killed.
    """
    with prepare_revert(place, [order], dry=False) as ready:
        head = ready.position.head
        if not ready.changed:
            announce(head, head)
            return RolledBack(head, head, None)
        project = place.project()
        if order.is_ref_only:
            commit, unsigned = _commit_revert(place, project, order, ready)
            announce(head, commit)
            _move_alone(place, order, ready.position, commit, lock)
            return RolledBack(head, commit, None, unsigned)
        snapshot = keep().id
        commit, unsigned = _commit_revert(place, project, order, ready)
        move = BranchMove(order.task_id, f"guard: rollback {order.task_id}", commit, snapshot)
        staged = _stage(place, project, move, ready)
    announce(head, commit)
    _carry_out(place, staged, ready, move, lock)
    return RolledBack(head, commit, snapshot, unsigned)


def _move_alone(
    place: RollbackPlace, order: RevertOrder, position: BranchPosition, commit: str, lock: int
) -> None:
    """Move a branch that is checked out nowhere, by compare-and-swap."""
    project = place.project()
    words = (position.ref, commit, position.head, f"guard: rollback {order.task_id}")
    with move_branch.ref_update(project, place.shadow, *words) as command:
        trouble = move_branch.move_alone(project, command, (lock,))
    if trouble is not None and project.commit_of(position.ref) != commit:
        raise RollbackStopped(
            "changed_meanwhile", f"git could not move the branch: {trouble}", "try again"
        )
    unpin_commit(project, commit)


@dataclass(frozen=True)
class BranchMove:
    """A commit that a checked-out branch moves to, with its files."""

    task_id: str
    reason: str
    """For the reflog."""
    to_sha: str
    snapshot: str
    """The work tree as it was before."""


def move_checked_out(
    place: RollbackPlace,
    move: BranchMove,
    ready: PreparedRevert,
    lock: int,
    announce: Callable[[], None],
) -> None:
    """Move a checked-out branch, its index and its files to a commit that is pinned; `Stopped`, with all as it was, if not.

    The caller has the lock of all rollbacks.
    """
    staged = _stage(place, place.project(), move, ready)
    try:
        announce()
    except BaseException:
        staged.forget()
        raise
    _carry_out(place, staged, ready, move, lock)


def pin_commit(project: Project, commit: str) -> None:
    """Give a commit a name until its branch has it, so that no `git gc` removes it."""
    project.call("update-ref", "--no-deref", "-m", "guard: pin", f"{PIN_REFS}/{commit}", commit)


def unpin_commit(project: Project, commit: str) -> None:
    with suppress(RepositoryProblem):
        project.call("update-ref", "--no-deref", "-d", f"{PIN_REFS}/{commit}", commit)


def _commit_revert(
    place: RollbackPlace, project: Project, order: RevertOrder, ready: PreparedRevert
) -> tuple[str, str]:
    """Make the commit and pin it at once, so that no `git gc` removes it; return it, and why it is not signed."""
    own = project.with_index(project.repository.git_dir / "index")
    committer = Committer(own, place.shadow, order.task_id, 0)
    message = revert_message(order.task_id, order.name, order.title, order.commits)
    made = committer.commit(ready.tree, ready.position.head, message)
    pin_commit(project, made)
    return made, committer.unsigned


def _stage(
    place: RollbackPlace, project: Project, move: BranchMove, ready: PreparedRevert
) -> StagedRollback:
    """Stage the files of the new commit in a folder, and write its journal."""
    place.journals.mkdir(mode=0o700, exist_ok=True)
    folder = place.journals / f"{move.task_id}.{os.urandom(6).hex()}"
    paths = [change.path for change in ready.changed]
    with closing(work_tree(place)) as target:
        stage(project, folder, paths, move.to_sha, target)
    journal = RollbackJournal(
        task_id=move.task_id,
        worktree=spell(os.fsencode(place.repository.root)),
        ref=spell(os.fsencode(ready.position.ref)),
        head=ready.position.head,
        to_sha=move.to_sha,
        index=move_branch.new_index_name(),
        snapshot=move.snapshot,
        paths=tuple(map(spell, paths)),
        new_folders=tuple(map(spell, _new_folders(place, paths))),
    )
    return begin(folder, journal)


def _new_folders(place: RollbackPlace, paths: Sequence[bytes]) -> list[bytes]:
    root = os.fsencode(place.repository.root)
    folders = {folder for path in paths for folder in folders_above(path)}
    return sorted(folder for folder in folders if not os.path.isdir(os.path.join(root, folder)))


def _carry_out(
    place: RollbackPlace,
    staged: StagedRollback,
    ready: PreparedRevert,
    move: BranchMove,
    lock: int,
) -> None:
    """Bring the revert in. It is always settled while the index is held, so that no git commits what is half done."""
    trouble: str | None = None
    with ExitStack() as stack:
        try:
            project = place.project()
            held = stack.enter_context(
                move_branch.hold_index(project, staged.journal.index, ready.changed)
            )
            if project.commit_of(ready.position.ref) != ready.position.head:
                why = "another process made a commit"
                raise RollbackStopped("changed_meanwhile", why, "try again")
            trouble = _bring_in_and_move(
                place, project, staged, ready.position, move.reason, (held, lock)
            )
        except move_branch.IndexLocked as error:
            raise RollbackStopped("not_ready", f"{error}", error.hint) from None
        except ChangedMeanwhile as error:
            raise RollbackStopped("changed_meanwhile", f"{error}", "try again") from None
        finally:
            settled = settle(place, staged)
    if not settled.moved:
        raise RollbackStopped(
            "changed_meanwhile", f"git could not move the branch: {trouble}", "try again"
        )


def _bring_in_and_move(
    place: RollbackPlace,
    project: Project,
    staged: StagedRollback,
    position: BranchPosition,
    reason: str,
    lends: Sequence[int],
) -> str | None:
    with closing(work_tree(place)) as target:
        bring_in(staged, target)
    journal = staged.journal
    moving = (position.ref, journal.to_sha, journal.head, reason)
    with move_branch.ref_update(project, place.shadow, *moving) as words:
        return move_branch.move_under_lock(project, words, lends)
