"""Carry out a revert: stage it, announce it, bring it into the work tree, and move the branch as the last step."""

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass

from guard.core.base.paths import path_line, spell
from guard.core.rollback.journal import REFS, RollbackJournal
from guard.core.snapshots.snapshot import Snapshot
from guard.rescue.commits import Committer
from guard.rescue.move_branch import (
    IndexLocked,
    hold_index,
    move_under_lock,
    new_index_name,
    ref_update,
)
from guard.rollback.place import RollbackPlace
from guard.rollback.prepare import BranchPosition, PreparedRevert, RevertOrder, Stopped, prepared
from guard.rollback.recover import settle, work_tree
from guard.rollback.revert import revert_message
from guard.rollback.stage import Meanwhile, StagedRollback, begin, bring, stage
from guard.snapshots.project import Project

Keep = Callable[[], Snapshot]
"""Takes a snapshot of the work tree."""
Announce = Callable[[str, str], None]
"""Told where the branch stands and where it is to go, before anything is touched."""


@dataclass(frozen=True)
class RolledBack:
    """A reverted task."""

    task_id: str
    head: str
    to_sha: str
    """The revert; the commit before where there was nothing to revert."""
    files: tuple[str, ...]
    snapshot: str | None
    unsigned: str = ""
    """Why the revert is not signed, though the user signs."""


def roll_back(
    place: RollbackPlace, order: RevertOrder, lock: int, keep: Keep, announce: Announce
) -> RolledBack:
    """Revert a task's commits; raise `Stopped`, with everything as it was, if that cannot be done.

    The caller has the lock of all rollbacks, and has settled those that were killed.
    """
    with prepared(place, [order], dry=False) as ready:
        head = ready.standing.head
        if not ready.changed:
            announce(head, head)
            return RolledBack(order.task_id, head, head, (), None)
        snapshot = keep().id
        made = _Making(place, order, ready)
        staged = made.staged(snapshot)
    announce(head, staged.journal.to_sha)
    _carry_out(place, staged, ready, lock)
    files = tuple(path_line(change.path) for change in ready.changed)
    return RolledBack(order.task_id, head, staged.journal.to_sha, files, snapshot, made.unsigned)


class _Making:
    """Makes the commit of a revert, and stages its files in a folder."""

    def __init__(self, place: RollbackPlace, order: RevertOrder, ready: PreparedRevert) -> None:
        self._place, self._order, self._ready = place, order, ready
        self.unsigned = ""

    def staged(self, snapshot: str) -> StagedRollback:
        project, head = self._place.project(), self._ready.standing.head
        commit = self._commit(project)
        self._place.journals.mkdir(mode=0o700, exist_ok=True)
        folder = self._place.journals / f"{self._order.task_id}.{os.urandom(6).hex()}"
        paths = [change.path for change in self._ready.changed]
        with closing(work_tree(self._place)) as target:
            stage(project, folder, paths, commit, target)
        journal = RollbackJournal(
            task_id=self._order.task_id,
            worktree=spell(os.fsencode(self._place.repository.root)),
            ref=spell(os.fsencode(self._ready.standing.ref)),
            head=head,
            to_sha=commit,
            index=new_index_name(),
            snapshot=snapshot,
            paths=tuple(map(spell, paths)),
            new_folders=tuple(map(spell, self._new_folders(paths))),
        )
        return begin(folder, journal)

    def _commit(self, project: Project) -> str:
        """Make the commit and pin it at once, so that no `git gc` removes it."""
        order, ready = self._order, self._ready
        committer = Committer(
            project.with_index(project.repository.git_dir / "index"),
            self._place.shadow,
            order.task_id,
            0,
        )
        message = revert_message(order.task_id, order.name, order.title, order.commits)
        made = committer.commit(ready.tree, ready.standing.head, message)
        self.unsigned = committer.unsigned
        project.call("update-ref", "--no-deref", "-m", "guard: pin", f"{REFS}/{made}", made)
        return made

    def _new_folders(self, paths: Sequence[bytes]) -> list[bytes]:
        root = os.fsencode(self._place.repository.root)
        folders = {
            b"/".join(parts[:size])
            for parts in (path.split(b"/")[:-1] for path in paths)
            for size in range(1, len(parts) + 1)
        }
        return sorted(one for one in folders if not os.path.isdir(os.path.join(root, one)))


def _carry_out(
    place: RollbackPlace, staged: StagedRollback, ready: PreparedRevert, lock: int
) -> None:
    """Bring the revert in. It is always settled while the index is held, so that no git commits what is half done."""
    trouble: str | None = None
    with ExitStack() as stack:
        try:
            project = place.project()
            held = stack.enter_context(hold_index(project, staged.journal.index, ready.changed))
            _refuse_moved(project, ready.standing)
            trouble = _brought(place, project, staged, ready.standing, (held, lock))
        except IndexLocked as error:
            raise Stopped("not_ready", f"{error}", error.hint) from None
        except Meanwhile as error:
            raise Stopped("changed_meanwhile", f"{error}", "try again") from None
        finally:
            settled = settle(place, staged)
    if not settled.moved:
        raise Stopped("changed_meanwhile", f"the branch was not moved: {trouble}", "try again")


def _brought(
    place: RollbackPlace,
    project: Project,
    staged: StagedRollback,
    standing: BranchPosition,
    lends: Sequence[int],
) -> str | None:
    with closing(work_tree(place)) as target:
        bring(staged, target)
    journal = staged.journal
    reason = f"guard: rollback {journal.task_id}"
    moving = (standing.ref, journal.to_sha, journal.head, reason)
    with ref_update(project, place.shadow, *moving) as words:
        return move_under_lock(project, words, lends)


def _refuse_moved(project: Project, standing: BranchPosition) -> None:
    if project.commit_of(standing.ref) != standing.head:
        raise Stopped("changed_meanwhile", "somebody committed meanwhile", "try again")
