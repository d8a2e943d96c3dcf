"""Save uncommitted work: a snapshot of the work tree in the shadow repository first, then, where that is safe, a commit.

The snapshot never touches the project. The commit appears on the branch by one compare-and-swap, or not at all. In a state
that is not plain (an operation in progress, another branch than at the baseline) it goes to a branch of its own.
"""

from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from guard.core.snapshots.snapshot import Occasion, Rescue
from guard.errors import RepositoryProblem, StateProblem
from guard.snapshots.project import Project, Site
from guard.snapshots.shadow import SHADOW_FOLDER, Shadow, refuse_untrusted
from guard.snapshots.take import open_for_snapshot, promote, prune_old, take

# Much to import, and not needed for a snapshot alone.
if TYPE_CHECKING:
    from guard.rescue.order import Orders

_SNAPSHOT_SHARE = 0.6


def rescue(site: Site, orders: "Orders", at: datetime) -> Rescue:
    """Keep the work tree, then commit what is ordered; a baseline that was on no branch allows no commit on one."""
    from guard.rescue.commit_work import Rewritten

    occasion = Occasion("by_hand" if orders.dry else "rescue", at, orders.run, orders.iteration)
    project = site.project()
    wanted = sorted({path.rstrip(b"/") for path in orders.paths})
    orders = replace(orders, paths=wanted)
    with open_for_snapshot(project, site.workspace, occasion) as shadow:
        _mend(project, shadow)
        before = None
        try:
            done = _attempt(project, shadow, occasion, orders, last=not orders.hooks)
        except Rewritten as rewritten:
            before = rewritten.before
            done = _attempt(project, shadow, occasion, orders, last=True)
            done = done.with_note(f"before a hook rewrote files: snapshot {before.id}")
        if done.reason in ("rescued", "nothing") and not done.held_back:
            for snapshot in filter(None, (before, done.snapshot)):
                promote(shadow, snapshot)
    prune_old(project, site.workspace, orders.limits.settings, at)
    return done


def mend_killed_rescue(site: Site) -> None:
    """Finish or take back what a killed rescue left half done, before uncommitted work is counted."""
    shadow = site.workspace / SHADOW_FOLDER
    if (shadow / "guard.locks").is_dir() and site.repository.git_dir_exists:
        try:
            refuse_untrusted(site.workspace)
        except (StateProblem, OSError):
            return  # A link in its place leads to files that are not guard's; the snapshot refuses it too, and says so.
        project = site.project()
        _mend(project, Shadow(shadow, site.environ, project.deadline))


def _mend(project: Project, shadow: Shadow) -> None:
    from guard.rescue.move_branch import sweep_index
    from guard.rescue.stale_locks import sweep_locks, unfinished_commits

    moved = False
    with suppress(RepositoryProblem):
        commits = unfinished_commits(shadow.path)
        moved = bool(commits) and project.with_brief_deadline().commit_of("HEAD") in commits
    sweep_index(project.repository.git_dir, moved)
    sweep_locks(shadow.path)


def _attempt(
    project: Project, shadow: Shadow, occasion: Occasion, orders: "Orders", *, last: bool
) -> Rescue:
    from guard.rescue.commit_work import CommitAttempt

    early = project.deadline.part(_SNAPSHOT_SHARE)
    hurried = replace(project, deadline=early), replace(shadow, deadline=early)
    taken = take(*hurried, occasion, orders.paths, orders.limits)
    return CommitAttempt(project, shadow, taken, orders, last).commit()
