"""Look at the branches of a repository: which is checked out where, and which tasks' branches can go."""

from collections.abc import Sequence

from guard.core.coordinator.landing_events import LandingCommit
from guard.errors import RepositoryProblem
from guard.rollback.order import checkouts_of
from guard.snapshots.project import Project


def keep_tips(project: Project, commits: Sequence[LandingCommit]) -> None:
    """Give the tasks' own commits a name that stays when their branches go."""
    for landed in commits:
        if project.commit_of(landed.kept_ref) != landed.tip:
            words = ("update-ref", "--no-deref", "-m", "guard: landed")
            project.call(*words, landed.kept_ref, landed.tip)


def delete_branch(project: Project, branch: str, tip: str) -> str | None:
    """Delete a task's branch if all of it has landed; return why it is kept, and "" if it is gone."""
    now = project.commit_of(branch)
    if now is None:
        return ""
    if now != tip:
        return "it has commits that have not landed"
    where = checkouts_of(project, branch)
    if where:
        return f"it is checked out in {where[0]}"
    try:
        project.call("update-ref", "-m", "guard: landed", "-d", branch, tip)
    except RepositoryProblem as error:
        return error.message
    return ""
