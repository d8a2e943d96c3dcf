"""Find what a rollback takes back, and on which branch: where the task's commits are, or where others brought them."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from guard.core.base.text import plural
from guard.core.coordinator.entries import LandedTask, TaskCommit
from guard.core.coordinator.state import Coordinator
from guard.core.rescue.state import full_ref
from guard.git.authors import SHARED_BRANCHES
from guard.git.commits import read_patches
from guard.git.locate import repository_at
from guard.git.reader import RepositoryReader
from guard.git.refs import missing_commits
from guard.rollback.history import commits_of_task
from guard.rollback.place import RollbackPlace
from guard.rollback.prepare import RevertOrder, RollbackStopped
from guard.snapshots.project import Project

HEADS = "refs/heads/"
_TASK_BRANCHES = f"{HEADS}guard/task/"
_MOST_COMPARED = 2000
_MOST_NAMED = 10


def find_order(place: RollbackPlace, state: Coordinator, task_id: str) -> RevertOrder:
    """Return the commits to revert and their branch; raise RollbackStopped if they are not known for certain."""
    return _OrderSearch(place, state, task_id).find()


def place_of_order(place: RollbackPlace, order: RevertOrder) -> RollbackPlace:
    """Return the place where the order's branch is checked out; this one if it is checked out nowhere."""
    ref = order.branch
    if ref is None or order.is_ref_only or not order.is_guards:
        return place
    where = checkouts_of(place.project(), ref)
    if not where or place.repository.root in where:
        return place
    return replace(place, repository=repository_at(where[0]))


def checkouts_of(project: Project, ref: str) -> list[Path]:
    """Return the work trees in which a branch is checked out."""
    return [folder for folder, branch in _work_trees(project) if branch == ref]


def _work_trees(project: Project) -> list[tuple[Path, str | None]]:
    found: list[tuple[Path, str | None]] = []
    for line in project.call("worktree", "list", "--porcelain", "-z").split(b"\0"):
        word, _, rest = line.partition(b" ")
        if word == b"worktree":
            found.append((Path(os.fsdecode(rest)), None))
        elif word == b"branch":
            found[-1] = (found[-1][0], os.fsdecode(rest))
    return found


def branches_with(project: Project, commit: str) -> list[str]:
    """Return the branches that have the commit, without the tasks' own."""
    words = ("for-each-ref", "--format=%(refname)", f"--contains={commit}", HEADS)
    listed = project.line(*words).splitlines()
    return [ref for ref in listed if not ref.startswith(_TASK_BRANCHES)]


@dataclass(frozen=True)
class _OrderSearch:
    place: RollbackPlace
    state: Coordinator
    task_id: str

    @property
    def _commit(self) -> TaskCommit:
        return self.state.task_commits[self.task_id]

    def find(self) -> RevertOrder:
        task = self.state.task(self.task_id)
        name, title = (task.name, task.title) if task else (self.task_id, "")
        landed = self.state.landed_tasks.get(self.task_id)
        ref, commits = (
            self._of_landed(landed, name)
            if landed is not None and landed.mode != "found"
            else self._of_recorded(landed, name)
        )
        if not commits:
            raise RollbackStopped(
                "no_commits",
                f"task {name} has no commits that guard knows of: it passed its audit at"
                f" {self._commit.commit_sha[:12]}, where it had begun",
                "revert its commits with `git revert`; `git log` shows them",
            )
        project = self.place.project()
        is_guards = ref is not None and (landed is not None or ref.startswith(_TASK_BRANCHES))
        is_ref_only = is_guards and ref is not None and not checkouts_of(project, ref)
        also_on: tuple[str, ...] = ()
        if landed is not None and ref is not None:
            also_on = tuple(on for on in branches_with(project, commits[0]) if on != ref)
        return RevertOrder(
            self.task_id,
            name,
            title,
            ref,
            commits,
            is_guards=is_guards,
            is_ref_only=is_ref_only,
            also_on=also_on,
        )

    def _of_landed(self, landed: LandedTask, name: str) -> tuple[str, tuple[str, ...]]:
        project, commits = self.place.project(), (landed.commit_sha,)
        here = project.line_if_any("symbolic-ref", "--quiet", "HEAD")
        for ref in (landed.target, here):
            tip = project.commit_of(ref) if ref is not None else None
            if ref is None or tip is None:
                continue
            if self._has(tip, commits):
                return ref, commits
            same = self._find_same(tip, self._commit.base_sha, landed.commit_sha, commits)
            if same:
                return ref, same
            if ref == landed.target:
                break
        raise RollbackStopped(
            "not_in_history",
            f"commit {landed.commit_sha[:12]}, by which task {name} landed, is not in the history of"
            f" {landed.target.removeprefix(HEADS)} any more",
            "find what became of it with `git log`, and revert that with `git revert`",
        )

    def _of_recorded(
        self, landed: LandedTask | None, name: str
    ) -> tuple[str | None, tuple[str, ...]]:
        commit = self._commit
        commits = self._own_commits()
        self._refuse_shared(commits, name)
        recorded = full_ref(commit.branch)
        if recorded is None or not commits:
            return recorded, commits
        project = self.place.project()
        if landed is not None and landed.target != recorded:
            recorded = landed.target
        here = project.line_if_any("symbolic-ref", "--quiet", "HEAD")
        if here is None:
            return recorded, commits
        if here == recorded:
            self._refuse_merged_elsewhere(here, commits, name)
            return here, commits
        if self._is_shared_branch(recorded) and project.commit_of(recorded) is not None:
            return recorded, commits
        found = self._find_on(here, commits)
        return (here, found) if found else (recorded, commits)

    def _own_commits(self) -> tuple[str, ...]:
        commit = self._commit
        if commit.commits:
            gone = missing_commits(self._git, commit.commits)
            if gone:
                raise RollbackStopped(
                    "not_in_history",
                    f"commit {gone[0][:12]} of the task is not in the repository any more",
                    "find what became of it with `git log` and `git reflog`, and revert that with `git revert`",
                )
            return commit.commits
        recorded = list(self.state.task_commits)
        before = recorded[: recorded.index(self.task_id)]
        earlier = [
            other.commit_sha
            for other_id in before
            if not (other := self.state.task_commits[other_id]).shared_with and not other.commits
        ]
        return commits_of_task(self._git, commit.base_sha, commit.commit_sha, earlier)

    @property
    def _git(self) -> RepositoryReader:
        place = self.place
        return RepositoryReader(place.repository, place.environ, place.time_limit)

    def _refuse_shared(self, commits: Sequence[str], name: str) -> None:
        """Refuse if some of the commits may be another task's; one that has passed since has commits of its own."""
        left = []
        for other_id in self._commit.shared_with:
            other = self.state.task_commits.get(other_id)
            if other is None or other.commit_sha in commits or self._begins_within(other, commits):
                left.append(self.state.task_name(other_id))
        if left:
            named = ", ".join(left[:_MOST_NAMED])
            raise RollbackStopped(
                "shared",
                f"task {name} was worked on in the same place as {named}: nothing tells whose the"
                f" {plural(len(commits), 'commit')} up to {commits[0][:12] if commits else '?'} are",
                "revert the task's commits with `git revert`; agents with a work tree of their own cannot be mixed up",
            )

    @staticmethod
    def _begins_within(other: TaskCommit, commits: Sequence[str]) -> bool:
        return not set(other.commits).isdisjoint(commits) or other.base_sha in commits

    def _refuse_merged_elsewhere(self, here: str, commits: tuple[str, ...], name: str) -> None:
        """Refuse to revert on the branch of a task alone if its work is also where everything comes together."""
        if self._is_shared_branch(here):
            return
        trees = _work_trees(self.place.project())
        main = trees[0][1] if trees else None
        for ref in dict.fromkeys((main, self.state.landing_target)):
            if ref is None or ref == here or self.place.project().commit_of(ref) is None:
                continue
            if self._find_on(ref, commits) or self._has_content(ref):
                where = next((f" in {folder}" for folder, branch in trees if branch == ref), "")
                raise RollbackStopped(
                    "merged_elsewhere",
                    f"the work of task {name} is also on {ref.removeprefix(HEADS)}, where it would stay",
                    f"roll it back{where} on {ref.removeprefix(HEADS)}",
                )

    def _is_shared_branch(self, ref: str) -> bool:
        return ref.removeprefix(HEADS) in SHARED_BRANCHES or ref == self.state.landing_target

    def _find_on(self, ref: str, commits: tuple[str, ...]) -> tuple[str, ...]:
        """Return the commits as the branch has them: merged, rebased or squashed; empty if it does not have all."""
        tip = self.place.project().commit_of(ref)
        if tip is None:
            return ()
        if self._has(tip, commits):
            return commits
        return self._find_same(tip, self._commit.base_sha, self._commit.commit_sha, commits)

    def _has(self, tip: str, commits: Sequence[str]) -> bool:
        stdin = "".join(f"{oid}\n" for oid in commits).encode() + f"^{tip}\n".encode()
        words = ("rev-list", "--max-count=1", "--stdin")
        return not self._git.ask(*words, stdin=stdin).strip()

    def _has_content(self, ref: str) -> bool:
        """Tell whether a branch has every file as the task left it, in whatever commits it came there."""
        base, last = self._commit.base_sha, self._commit.commit_sha
        if base is None or self._commit.commits:
            return False
        words = ("diff-tree", "-r", "-z", "--no-renames")
        changed = set(self._git.ask(*words, "--name-only", base, last).split(b"\0"))
        differ = set(self._git.ask(*words, "--name-only", last, ref).split(b"\0"))
        return bool(changed - {b""}) and changed.isdisjoint(differ - {b""})

    def _find_same(
        self, tip: str, base: str | None, last: str, commits: Sequence[str]
    ) -> tuple[str, ...]:
        """Return the commits on a branch that make the same change, each for one or one for all; empty if there are none."""
        fork = self._git.line("merge-base", tip, last)
        if fork is None or base is None:
            return ()
        words = ("rev-list", "--no-merges", f"--max-count={_MOST_COMPARED}", tip, f"^{last}")
        theirs = self._git.ask(*words).decode().split()
        patches: dict[str, str] = {}
        for oid, patch in read_patches(self._git, theirs):
            patches.setdefault(patch, oid)
        own = [patch for _, patch in read_patches(self._git, commits)]
        if own and len(own) == len(commits) and all(patch in patches for patch in own):
            return tuple(patches[patch] for patch in own)
        whole = next((patch for _, patch in read_patches(self._git, [f"{last} {base}"])), None)
        return (patches[whole],) if whole is not None and whole in patches else ()
