"""Carry out a revert: stage it, announce it, bring it into the work tree, and move the branch as the last step."""

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass

from guard.core.base.paths import path_line, spell
from guard.core.rollback.journal import PIN_REFS, RollbackJournal
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
    with prepare_revert(place, [order], dry=False) as ready:
        head = ready.position.head
        if not ready.changed:
            announce(head, head)
            return RolledBack(order.task_id, head, head, (), None)
        snapshot = keep().id
        made = _RevertMaker(place, order, ready)
        staged = made.staged(snapshot)
    announce(head, staged.journal.to_sha)
    _carry_out(place, staged, ready, lock)
    files = tuple(path_line(change.path) for change in ready.changed)
    return RolledBack(order.task_id, head, staged.journal.to_sha, files, snapshot, made.unsigned)


class _RevertMaker:
    """Makes the commit of a revert, and stages its files in a folder."""

    def __init__(self, place: RollbackPlace, order: RevertOrder, ready: PreparedRevert) -> None:
        self._place, self._order, self._ready = place, order, ready
        self.unsigned = ""

    def staged(self, snapshot: str) -> StagedRollback:
        project, head = self._place.project(), self._ready.position.head
        commit = self._commit(project)
        self._place.journals.mkdir(mode=0o700, exist_ok=True)
        folder = self._place.journals / f"{self._order.task_id}.{os.urandom(6).hex()}"
        paths = [change.path for change in self._ready.changed]
        with closing(work_tree(self._place)) as target:
            stage(project, folder, paths, commit, target)
        journal = RollbackJournal(
            task_id=self._order.task_id,
            worktree=spell(os.fsencode(self._place.repository.root)),
            ref=spell(os.fsencode(self._ready.position.ref)),
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
        made = committer.commit(ready.tree, ready.position.head, message)
        self.unsigned = committer.unsigned
        project.call("update-ref", "--no-deref", "-m", "guard: pin", f"{PIN_REFS}/{made}", made)
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
            _refuse_moved(project, ready.position)
            trouble = _bring_in_and_move(place, project, staged, ready.position, (held, lock))
        except IndexLocked as error:
            raise RollbackStopped("not_ready", f"{error}", error.hint) from None
        except ChangedMeanwhile as error:
            raise RollbackStopped("changed_meanwhile", f"{error}", "try again") from None
        finally:
            settled = settle(place, staged)
    if not settled.moved:
        raise RollbackStopped(
            "changed_meanwhile", f"the branch was not moved: {trouble}", "try again"
        )


def _bring_in_and_move(
    place: RollbackPlace,
    project: Project,
    staged: StagedRollback,
    position: BranchPosition,
    lends: Sequence[int],
) -> str | None:
    with closing(work_tree(place)) as target:
        bring_in(staged, target)
    journal = staged.journal
    reason = f"guard: rollback {journal.task_id}"
    moving = (position.ref, journal.to_sha, journal.head, reason)
    with ref_update(project, place.shadow, *moving) as words:
        return move_under_lock(project, words, lends)


def _refuse_moved(project: Project, position: BranchPosition) -> None:
    if project.commit_of(position.ref) != position.head:
        raise RollbackStopped("changed_meanwhile", "another commit was made meanwhile", "try again")
