"""Settle a rollback, whole or killed anywhere: finish it if the branch has moved, else undo it."""

import os
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from guard.core.base.paths import unspell
from guard.core.rollback.journal import PIN_REFS, RollbackJournal, SettledRollback
from guard.errors import RepositoryProblem
from guard.git.locate import repository_at
from guard.rescue.changes import PathChange, list_changes, update_index
from guard.rescue.move_branch import settle_index
from guard.rescue.stale_locks import sweep_locks
from guard.rollback.place import RollbackPlace
from guard.rollback.stage import StagedRollback, list_under_way, remove_empty_folders, take_back
from guard.snapshots.git_state import parse_stages
from guard.snapshots.project import Project
from guard.snapshots.restore import folder_identities
from guard.snapshots.safe_writer import SafeFolder


def settle_all(place: RollbackPlace) -> list[SettledRollback]:
    """Settle every rollback that was killed; the caller has the lock of all rollbacks."""
    found = list_under_way(place.journals)
    settled = [settle(_place_of(place, staged.journal), staged) for staged in found]
    _sweep_pins(place)
    return settled


def _sweep_pins(place: RollbackPlace) -> None:
    """Unpin reverts whose rollback was killed before it was under way."""
    with suppress(RepositoryProblem):
        git = place.project()
        for ref in git.line("for-each-ref", "--format=%(refname)", PIN_REFS).splitlines():
            git.call("update-ref", "--no-deref", "-d", ref)


def _place_of(place: RollbackPlace, journal: RollbackJournal) -> RollbackPlace:
    """A killed rollback may have been in another work tree of the repository."""
    root = Path(os.fsdecode(unspell(journal.worktree)))
    if root == place.repository.root:
        return place
    try:
        return replace(place, repository=repository_at(root))
    except RepositoryProblem:
        raise RepositoryProblem(
            f"a rollback of {journal.task_id} was killed in {root}, which no longer exists",
            f"restore that work tree, or delete what is in {place.journals}",
        ) from None


def settle(place: RollbackPlace, staged: StagedRollback) -> SettledRollback:
    journal = staged.journal
    if (place.shadow / "guard.locks").is_dir():
        sweep_locks(place.shadow)
    project = place.project()
    moved = has_revert(project, os.fsdecode(unspell(journal.ref)), journal.to_sha)
    left: list[str] = []
    with closing(work_tree(place)) as target:
        if not moved:
            left = take_back(staged, target, _paths_committed_since(project, journal))
        settle_index(place.repository.git_dir, journal.index, moved=moved)
        if moved:
            _mend_index(project, journal)
            remove_empty_folders(staged, target)
    with suppress(RepositoryProblem):
        pin = f"{PIN_REFS}/{journal.to_sha}"
        project.call("update-ref", "--no-deref", "-d", pin, journal.to_sha)
    staged.forget()
    return SettledRollback(
        journal.task_id, journal.head, journal.to_sha, moved, tuple(left), journal.snapshot
    )


def work_tree(place: RollbackPlace) -> SafeFolder:
    repository = place.repository
    forbidden = folder_identities([place.workspace, repository.git_dir, repository.common_dir])
    return SafeFolder(repository.root, forbidden=forbidden, durable=True)


def has_revert(project: Project, ref: str, to_sha: str) -> bool:
    """Tell whether the revert is on the branch, also below later commits."""
    tip = project.commit_of(ref)
    if tip is None:
        return False
    try:
        return project.line("merge-base", to_sha, tip) == to_sha
    except RepositoryProblem:
        return False


def _paths_committed_since(project: Project, journal: RollbackJournal) -> frozenset[bytes]:
    """Paths that the branch has otherwise by now, because they were committed as they are."""
    tip = project.commit_of("HEAD")
    if tip is None or tip == journal.head:
        return frozenset()
    return frozenset(change.path for change in list_changes(project, journal.head, tip))


def _mend_index(project: Project, journal: RollbackJournal) -> None:
    """Where the index was not swapped, give the paths in it that still are as before what the revert has."""
    entries = parse_stages(project.call("ls-files", "-z", "--stage"))
    staged = {entry.path: (entry.mode, entry.oid) for entry in entries}
    changed = list_changes(project, journal.head, journal.to_sha)
    behind = [change for change in changed if staged.get(change.path) == _old_entry(change)]
    if behind:
        update_index(project, behind)


def _old_entry(change: PathChange) -> tuple[bytes, str] | None:
    return (change.old_mode, change.old_oid) if change.letter != "A" else None
