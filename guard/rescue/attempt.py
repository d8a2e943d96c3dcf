"""From a snapshot that is safe to a commit, as far as the state of the repository allows one."""

import os
from collections.abc import Sequence

from guard.core.paths import unspelled
from guard.core.rescuing import (
    HeldBack,
    Rescue,
    State,
    capped_held,
    cut,
    is_mass_deletion,
    obstacle,
    snapshot_only,
)
from guard.core.text import plural, visible
from guard.errors import RepositoryProblem, StoreUnavailable
from guard.rescue.commits import Change, Committer, changes, prove, tell_index, tree_of
from guard.rescue.limits import Limits
from guard.rescue.plan import Plan, Planner
from guard.rescue.project import Project
from guard.rescue.shadow import Shadow, scratch
from guard.rescue.snapshots import Taken


class Attempt:
    """One try at committing what a snapshot has; whatever stops it, the snapshot is named."""

    def __init__(
        self,
        project: Project,
        shadow: Shadow,
        taken: Taken,
        run: str,
        iteration: int,
        limits: Limits,
    ) -> None:
        self._project, self._shadow, self._taken = project, shadow, taken
        self._run, self._iteration, self._limits = run, iteration, limits
        self._held_back: tuple[HeldBack, ...] = ()

    def commit(
        self, baseline_branch: str | None, paths: Sequence[bytes], message: str | None
    ) -> Rescue:
        """What became of it."""
        try:
            state = self._project.state(baseline_branch)
        except RepositoryProblem as error:
            return self._result("not_plain:git", error.message)
        what = obstacle(state)
        if what is not None and snapshot_only(state, what):
            return self._only_snapshot(what)
        try:
            with scratch(self._shadow.path.parent) as folder:
                own = self._project.with_index(folder / "index")
                return self._committed(own, state, paths, message)
        except (RepositoryProblem, StoreUnavailable) as error:
            return self._result("refused", error.message)
        except OSError as error:
            return self._result("refused", f"no room for an index: {error.strerror}")

    def _committed(
        self, own: Project, state: State, paths: Sequence[bytes], message: str | None
    ) -> Rescue:
        branch = os.fsdecode(unspelled(state.branch)) if state.branch else None
        head = own.commit_of(branch or "HEAD")
        own.call("read-tree", head or "--empty")
        before = own.tree(head)
        plan = Planner(own, self._shadow, self._taken, before, self._limits).plan(paths)
        self._held_back = plan.held_back
        if is_mass_deletion(len(plan.delete), len(before)):
            return self._only_snapshot("mass_deletion")
        tree = tree_of(own, plan) if plan.add or plan.delete else None
        changed = changes(own, head, tree) if tree else []
        if tree is None or not changed:
            return self._nothing(own, state, head, plan, tree)
        prove(own, self._shadow, self._taken, plan, changed)
        committer = Committer(own, self._run, self._iteration)
        commit = committer.commit(tree, head, changed, message)
        what = obstacle(state)
        if what is None and branch is not None:
            committer.advance(branch, commit, head)
            return self._rescued(branch, commit, tell_index(self._project, head, changed), changed)
        other = committer.new_branch(commit)
        detail = f"{_words(f'{what}')}: committed on {other}"
        return self._result(f"not_plain:{what}", detail, (commit,), other)

    def _rescued(
        self, branch: str, commit: str, trouble: str | None, changed: Sequence[Change]
    ) -> Rescue:
        where = visible(branch.removeprefix("refs/heads/"))
        detail = f"{plural(len(changed), 'file')} committed on {where}; no hook was run"
        if trouble is not None:
            detail += f"; its index still has the state before: {trouble}"
        return self._result("rescued", detail, (commit,))

    def _nothing(
        self, own: Project, state: State, head: str | None, plan: Plan, tree: str | None
    ) -> Rescue:
        if head is not None and tree is not None and obstacle(state) is None:
            self._mend_index(own, head, plan, tree)
        if not self._held_back:
            return self._result("nothing", "nothing was left to commit")
        count = plural(len(self._held_back), "path")
        return self._result("held_back", f"{count} held back, nothing else to commit")

    def _mend_index(self, own: Project, head: str, plan: Plan, tree: str) -> None:
        """A rescue that was killed after its commit left the index behind, which shows the work as deleted."""
        differing = self._project.call("diff-index", "--cached", "-z", "--name-only", head)
        behind = set(plan.add) & set(differing.split(b"\0"))
        if behind:
            there = [change for change in changes(own, None, tree) if change.path in behind]
            tell_index(self._project, head, there)

    def _only_snapshot(self, what: str) -> Rescue:
        return self._result(f"not_plain:{what}", f"{_words(what)}: kept in the snapshot only")

    def _result(
        self, reason: str, detail: str, commits: tuple[str, ...] = (), branch: str | None = None
    ) -> Rescue:
        return Rescue(
            commits=commits,
            snapshot=self._taken.snapshot,
            held_back=capped_held(self._held_back),
            branch=branch,
            reason=reason,
            detail=cut(detail),
        )


def _words(what: str) -> str:
    return f"no commit on the branch ({what.replace('_', ' ')})"
