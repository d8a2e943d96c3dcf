"""Find what a task brings to the target: its commits, its branch, and where the two histories part."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from guard.core.coordinator.entries import TaskRevert
from guard.core.coordinator.state import Coordinator
from guard.errors import RepositoryProblem
from guard.rollback.merge import tree_of
from guard.snapshots.project import Project

TASK_BRANCHES = "refs/heads/guard/task/"
KEPT_REFS = "refs/guard/landed/"


@dataclass(frozen=True)
class TaskWork:
    """The work of a task that passed its audit."""

    task_id: str
    name: str
    title: str
    tip: str
    """The commit at which it passed."""
    commits: tuple[str, ...]
    """Its own commits, the newest first, where others' lie between them; else empty."""
    base_sha: str | None = None
    """Where the task's own commits begin, if they are not on a branch of the task's own."""
    others: tuple[str, ...] = ()
    """The last commits of other tasks."""
    revert: TaskRevert | None = None
    """The rollback of the task since it landed last."""
    may_change_tests: bool = False
    """Whether changes of tests in it need no review."""

    @property
    def branch(self) -> str:
        """The task's own branch, which need not exist."""
        return f"{TASK_BRANCHES}{self.task_id}"


def find_work(state: Coordinator, task_id: str) -> TaskWork | None:
    """Return the work of a completed task; None if it passed without commits."""
    commit, task = state.task_commits.get(task_id), state.task(task_id)
    if commit is None:
        return None
    name, title = (task.name, task.title) if task is not None else (task_id, "")
    return TaskWork(
        task_id,
        name,
        title,
        commit.commit_sha,
        commit.commits,
        commit.base_sha if commit.branch != f"guard/task/{task_id}" else None,
        _tips_of_others(state, task_id),
        state.reverted_tasks.get(task_id),
        may_change_tests=task is not None and task.may_change_tests,
    )


def _tips_of_others(state: Coordinator, task_id: str) -> tuple[str, ...]:
    tips = []
    for other_id, commit in state.task_commits.items():
        landed = state.landed_tasks.get(other_id)
        if other_id != task_id and not commit.shared_with:
            tips.append(landed.tip if landed is not None else commit.commit_sha)
    return tuple(tips)


def with_own_commits(project: Project, work: TaskWork, base: str) -> TaskWork:
    """Return the work with a list of its own commits, if commits of others lie between them and the base."""
    if work.commits or work.base_sha is None:
        return work
    words = ("rev-list", "--first-parent", "--topo-order")
    whole = project.line(*words, work.tip, f"^{base}").split()
    if not has_commits(project, work.tip, [work.base_sha]):
        return work
    earlier = [
        oid for oid in work.others if oid != work.tip and has_commits(project, work.tip, [oid])
    ]
    without = [f"^{oid}" for oid in (base, work.base_sha, *earlier)]
    own = project.line(*words, work.tip, *without).split()
    return work if own == whole or not own else replace(work, commits=tuple(own))


def find_base(project: Project, target: str, tip: str) -> str | None:
    """Return the newest commit of the target's own line of history that the task has; None if they share none.

    The merge base of git is not always on that line: after a merge that was rolled back it would be the task's own tip, and
    nothing of the task would come again.
    """
    words = ("rev-list", "--first-parent", "--parents", target, f"^{tip}")
    rows = project.line(*words).splitlines()
    if not rows:
        return target
    parents = rows[-1].split()[1:]
    return parents[0] if parents else None


def steps_of(project: Project, work: TaskWork, base: str, target: str) -> list[tuple[str, str]]:
    """Return the trees before and after each step of the work, in order: one step for all, or one for each own commit.

    What a rollback took back of commits that the branch still has comes first, as the reverse of that.
    """
    first: list[tuple[str, str]] = []
    revert = work.revert
    if revert is not None and revert.commits and _is_left_behind(project, work, revert, target):
        first = [(tree_of(project, revert.to_sha), tree_of(project, f"{revert.to_sha}^"))]
    if not work.commits:
        return [*first, (tree_of(project, base), tree_of(project, work.tip))]
    own = [
        (tree_of(project, f"{commit}^"), tree_of(project, commit))
        for commit in reversed(work.commits)
    ]
    return [*first, *own]


def _is_left_behind(project: Project, work: TaskWork, revert: TaskRevert, target: str) -> bool:
    """Tell whether the target has the rollback, and the task's branch has what was rolled back, but not the rollback."""
    return (
        has_commits(project, target, [revert.to_sha])
        and has_commits(project, work.tip, revert.commits)
        and not has_commits(project, work.tip, [revert.to_sha])
    )


def has_commits(project: Project, tip: str, commits: Sequence[str]) -> bool:
    """Tell whether all of these commits are in the history of the tip."""
    stdin = "".join(f"{oid}\n" for oid in commits) + f"^{tip}\n"
    try:
        return not project.line("rev-list", "--max-count=1", "--stdin", stdin=stdin.encode())
    except RepositoryProblem:
        return False


def subjects_of(project: Project, work: TaskWork, base: str, most: int) -> list[str]:
    """Return the subjects of the task's commits, the oldest first."""
    own = work.commits or (f"{work.tip}", f"^{base}")
    walk = ("--no-walk=unsorted",) if work.commits else ("--no-merges",)
    words = ("log", "-z", "--format=%s", f"--max-count={most}", *walk, *own)
    found = project.call(*words).decode(errors="replace").split("\0")
    return [line for line in reversed(found) if line]
