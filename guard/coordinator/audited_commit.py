"""Find the commits of a task that passes its audit: its own, and nothing of what others committed meanwhile."""

import os
from collections.abc import Collection, Sequence

from guard.context.invocation import Invocation
from guard.core.agents.baseline import AGENT_BASELINE, baseline_key
from guard.core.base.first_use import dataclass
from guard.core.base.paths import spell
from guard.core.coordinator.entries import TaskInProgress
from guard.core.coordinator.requests import AuditedCommit
from guard.core.coordinator.state import Coordinator
from guard.errors import RepositoryProblem
from guard.git.authors import branches_by_agent, list_branches, read_authors
from guard.git.reader import RepositoryReader
from guard.git.refs import missing_commits

MOST_COMMITS = 10_000
TASK_BRANCHES = "refs/heads/guard/task/"
_HEADS = "refs/heads/"
_MOST_FILES = 1000


def audited_commit(
    guard: Invocation, git: RepositoryReader, state: Coordinator, task_id: str
) -> AuditedCommit | None:
    """Return the task's commits where HEAD is, else on a branch of its own; None if it has none."""
    work = state.work(task_id)
    if work is None:
        return None
    search = _OwnWork(guard, git, state, work)
    here = git.line("symbolic-ref", "--quiet", "HEAD")
    for branch in (here, *search.own_branches(here)):
        found = search.find(branch)
        if found is not None:
            return found
    return None


def own_commits(
    git: RepositoryReader, base: str, tip: str, earlier: Sequence[str] = ()
) -> tuple[str, ...]:
    """List the commits after the base, by first parents and the newest first, without those that `earlier` ones lead to."""
    gone = set(missing_commits(git, earlier)) if earlier else set()
    without = [base, *(oid for oid in earlier if oid not in gone)]
    stdin = "".join([f"{tip}\n", *(f"^{oid}\n" for oid in without)]).encode()
    words = ("rev-list", "--first-parent", "--topo-order", f"--max-count={MOST_COMMITS + 1}")
    found = tuple(git.ask(*words, "--stdin", stdin=stdin).decode().split())
    if len(found) > MOST_COMMITS:
        raise RepositoryProblem(
            f"the task has more than {MOST_COMMITS} commits", "revert them with `git revert`"
        )
    return found


@dataclass(frozen=True)
class _OwnWork:
    guard: Invocation
    git: RepositoryReader
    state: Coordinator
    work: TaskInProgress

    def own_branches(self, here: str | None) -> list[str]:
        """Return the task's own branch, and the one branch with the name of its developer, if there is one."""
        listed = list_branches(self.git)
        own = f"{TASK_BRANCHES}{self.work.task_id}"
        named = branches_by_agent(listed).get(self.work.developer_id.lower(), [])
        found = [own] if own in listed else named if len(named) == 1 else []
        return [branch for branch in found if branch != here]

    def find(self, branch: str | None) -> AuditedCommit | None:
        tip = self.git.line("rev-parse", "--verify", "--quiet", f"{branch or 'HEAD'}^{{commit}}")
        if tip is None:
            return None
        name = branch.removeprefix(_HEADS)[:512] if branch else None
        if self.work.base_sha is None:
            return AuditedCommit(tip, (), name)
        base = self.git.line("merge-base", self.work.base_sha, tip)
        if base is None:
            return None
        whole = own_commits(self.git, base, tip, self._ends_of_others())
        kept, shared_with = self._without_others(whole, branch)
        if not kept:
            return None
        base = self._parent(whole[-1]) or base
        has_others = kept != own_commits(self.git, base, kept[0])
        return AuditedCommit(
            kept[0],
            self._files(base, kept, alone=not has_others),
            name,
            base,
            kept if has_others else (),
            shared_with,
        )

    def _ends_of_others(self) -> list[str]:
        # What leads to the end of a task that had its place for itself is that task's.
        return [
            commit.commit_sha
            for task_id, commit in self.state.task_commits.items()
            if task_id != self.work.task_id and not commit.commits and not commit.shared_with
        ]

    def _without_others(
        self, commits: tuple[str, ...], branch: str | None
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the commits that are or may be the task's, and the tasks of which some of them may be."""
        others = self._neighbours(branch)
        theirs = {oid for commit in self.state.task_commits.values() for oid in commit.commits}
        shared = {
            oid
            for commit in self.state.task_commits.values()
            if commit.shared_with
            for oid in commit.commits
        }
        left = tuple(oid for oid in commits if oid not in theirs - shared)
        if not others or not left:
            return left, ()
        names = {name.lower() for name in others.values()}
        kept, unknown = list[str](), False
        for commit in read_authors(self.git, left):
            if commit.is_of(self.work.developer_id):
                kept.append(commit.oid)
            elif not any(commit.is_of(name) for name in names):
                kept.append(commit.oid)
                unknown = True
        return tuple(kept), tuple(others) if unknown else ()

    def _neighbours(self, branch: str | None) -> dict[str, str]:
        """Return the developers of other tasks that may have committed on this branch meanwhile, by task."""
        if branch is not None and branch == f"{TASK_BRANCHES}{self.work.task_id}":
            return {}
        root = spell(os.fsencode(self.git.repository.root))
        branches = list_branches(self.git)
        found = {
            other.task_id: other.developer_id
            for other in self.state.in_progress_tasks
            if other.task_id != self.work.task_id
            and f"{TASK_BRANCHES}{other.task_id}" not in branches
            and self._root_of(other) == root
        }
        passed = self.state.task_commits.items()
        return found | {
            task_id: task_id
            for task_id, commit in passed
            if self.work.task_id in commit.shared_with
        }

    def _root_of(self, other: TaskInProgress) -> str | None:
        # An agent works where it was sent from, unless something tells of another place.
        key = baseline_key(other.task_id, other.developer_id)
        baseline = self.guard.store.view(AGENT_BASELINE, key)
        return baseline.root if baseline is not None else None

    def _parent(self, oid: str) -> str | None:
        return self.git.line("rev-parse", "--verify", "--quiet", f"{oid}^")

    def _files(self, base: str, commits: Collection[str], *, alone: bool) -> tuple[str, ...]:
        words = ("diff-tree", "-r", "-z", "--name-only", "--no-commit-id")
        if alone:
            names = self.git.ask(*words, base, next(iter(commits)))
        else:
            stdin = "".join(f"{oid}\n" for oid in commits).encode()
            names = self.git.ask(*words, "-m", "--root", "--stdin", stdin=stdin)
        found = dict.fromkeys(spell(name) for name in names.split(b"\0") if name)
        return tuple(found)[:_MOST_FILES]
