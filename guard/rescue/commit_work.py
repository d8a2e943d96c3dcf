"""Turn a snapshot into commits, as far as the state of the repository allows them."""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from guard.core.base.paths import path_line, unspell
from guard.core.base.text import escape, fit_line, plural
from guard.core.rescue.commit_message import rescue_trailer
from guard.core.rescue.groups import Group, mark_wip, untangle
from guard.core.rescue.state import RepositoryState, is_mass_deletion, is_snapshot_only, obstacle
from guard.core.snapshots.snapshot import (
    MOST_NAMED,
    HeldBack,
    PlannedCommit,
    Rescue,
    Snapshot,
    list_held_back,
)
from guard.errors import RepositoryProblem, StoreUnavailable
from guard.git.obstacles import RULE_FILES, GitObstacle, obstacle_to_read
from guard.rescue import changes
from guard.rescue.changes import PathChange
from guard.rescue.commits import Committer, ProvenTree, prove, rescue_branch, write_selection
from guard.rescue.move_branch import IndexLocked, move_with_index
from guard.rescue.order import Orders
from guard.rescue.repo_hooks import HookRefused, RepositoryHooks
from guard.rescue.select import CommitSelection, Planner, hold_unjudged
from guard.rescue.syntax_check import find_faults
from guard.rescue.task_boxes import Ticks, find_ticks
from guard.snapshots.collect import UNSTEADY
from guard.snapshots.project import Project
from guard.snapshots.shadow import Shadow, scratch_folder
from guard.snapshots.take import Taken
from guard.snapshots.walk import SPECIAL


class Rewritten(Exception):
    """A hook rewrote what was to be committed: the rescue goes on from a new snapshot."""

    def __init__(self, before: Snapshot) -> None:
        super().__init__(before.id)
        self.before = before


class CommitAttempt:
    """One attempt to commit what a snapshot has; if it is stopped, the result names the snapshot."""

    def __init__(
        self, project: Project, shadow: Shadow, taken: Taken, orders: Orders, last: bool = True
    ) -> None:
        self._project, self._shadow, self._taken = project, shadow, taken
        self._orders, self._last = orders, last
        self._held_back = orders.held
        self._groups: Sequence[Group] = ()
        self._messages: Sequence[bytes] = ()
        self._ticks: Ticks | None = None
        self._notes: list[str] = []

    def commit(self) -> Rescue:
        """Return what became of it; raise `Rewritten` if a hook needs another attempt, unless this is the last one."""
        try:
            state = self._project.state(self._orders.baseline_branch)
        except GitObstacle as error:
            return self._report_obstacle(error)
        except RepositoryProblem as error:
            return self._result("not_plain:git", error.message)
        what = obstacle(state)
        if what is not None and is_snapshot_only(state, what):
            return self._report_only_snapshot(what)
        try:
            self._refuse_obstacles(state, what)
            self._project = self._project.without_filters()
            with scratch_folder(self._shadow.path.parent) as folder:
                own = self._project.with_index(folder / "index")
                own = own.with_object_folder(folder / "objects") if self._orders.dry else own
                return self._commit_plan(own, state, folder)
        except GitObstacle as error:
            return self._report_obstacle(error)
        except (RepositoryProblem, StoreUnavailable) as error:
            return self._result("refused", error.message)
        except OSError as error:
            return self._result("refused", f"no room for an index: {error.strerror}")

    def _refuse_obstacles(self, state: RepositoryState, what: str | None) -> None:
        """Raise `GitObstacle` before anything is written: a link or a special file where git would write or read."""
        orders, root = self._orders, self._project.repository.root
        branch = os.fsdecode(unspell(state.branch)) if state.branch else "HEAD"
        aside = what is not None or orders.on_branch
        own = f"refs/heads/{rescue_branch(orders.run, orders.iteration)}"
        self._project.refuse_obstacles(own if aside else branch)
        for path, why in self._taken.unread.items():
            if why == SPECIAL and os.fsdecode(path).rpartition("/")[2] in RULE_FILES:
                raise obstacle_to_read(root / os.fsdecode(path), SPECIAL)

    def _commit_plan(self, own: Project, state: RepositoryState, folder: Path) -> Rescue:
        branch = os.fsdecode(unspell(state.branch)) if state.branch else None
        head = own.commit_of(branch or "HEAD")
        gone = head is None and self._orders.baseline_head is not None
        head = own.commit_of(f"{self._orders.baseline_head}") if gone else head
        own.call("read-tree", head or "--empty")
        before = own.tree(head)
        known = (own, self._shadow, self._taken, before)
        planner = Planner(*known, self._orders.limits.settings, self._orders.since)
        plan = planner.plan(self._orders.paths)
        self._held_back = (*self._orders.held, *plan.held_back, *self._list_not_saved(plan))
        if plan.ignored:
            files = plural(plan.ignored, "ignored file")
            self._notes.append(f"{files} written since the baseline in the snapshot only")
        if is_mass_deletion(len(plan.delete) - plan.moved, len(before)):
            return self._report_only_snapshot("mass_deletion")
        tree, plan = self._write_tree(own, plan)
        changed = changes.list_changes(own, head, tree) if tree else []
        if tree is None or not changed:
            return self._report_nothing(own, state, head, plan, tree)
        prove(own, self._shadow, self._taken, plan, changed)
        proven = ProvenTree(head, tree, changed)
        reason = "on_branch" if self._orders.on_branch else None
        what = obstacle(state) or ("branch_gone" if gone else reason)
        self._group(own, proven, what)
        if self._orders.dry:
            return self._report_plan(branch, what)
        if self._orders.hooks and what is None:
            what = self._ask_hooks(own, plan, proven, folder)
        else:
            self._notes.append("no hook was run")
        if what is not None or branch is None:
            return self._put_on_new_branch(own, proven, f"{what}")
        return self._put_on_branch(own, proven, branch)

    def _write_tree(
        self, own: Project, plan: CommitSelection
    ) -> tuple[str | None, CommitSelection]:
        """Return the tree that is to be committed, None without a change, and the plan without what git refuses to add."""
        if not plan.add and not plan.delete:
            return None, plan
        refused: dict[bytes, str] = {}
        tree = write_selection(own, plan, refused)
        self._held_back = (*self._held_back, *hold_unjudged(refused))
        return tree, replace(plan, add=tuple(path for path in plan.add if path not in refused))

    def _list_not_saved(self, plan: CommitSelection) -> list[HeldBack]:
        """Name what could not be read: git does not see what is in it either."""
        named = {entry.path for entry in plan.held_back}
        return [
            HeldBack(path=path_line(path), why=fit_line(f"not_saved: {why}"))
            for path, why in sorted(self._taken.unread.items())
            if path_line(path) not in named and why not in (SPECIAL, UNSTEADY)
        ]

    def _group(self, own: Project, proven: ProvenTree, what: str | None) -> None:
        """Group the changes in commits of one thought each; boxes are ticked only on the branch that has the work."""
        before = proven.head or changes.empty_tree(own)
        described = changes.describe_changes(own, before, proven.tree)
        groups = untangle(self._orders.grouping(described))
        faults = find_faults(own, groups, proven.changed)
        self._groups = [mark_wip(group, faults) for group in groups]
        if faults:
            first = f"{path_line(min(faults))} ({faults[min(faults)]})"
            more = f" and {len(faults) - 1} more" if len(faults) > 1 else ""
            self._notes.append(f"committed as wip, because it does not parse: {first}{more}")
        if self._orders.tasks is None or what is not None:
            return
        self._ticks = find_ticks(
            self._project, own, self._shadow, self._taken, proven, self._orders.tasks, faults
        )

    def _report_plan(self, branch: str | None, what: str | None) -> Rescue:
        plain = what is None and branch
        where = f"on {escape(_short_name(branch))}" if plain else f"on a branch of its own ({what})"
        return self._result("planned", f"{plural(len(self._groups), 'commit')} {where}")

    def _ask_hooks(
        self, own: Project, plan: CommitSelection, proven: ProvenTree, folder: Path
    ) -> str | None:
        """Return why the repository's hooks refuse. One that rewrites files is asked once more with what it wrote."""
        own.call("update-index", "-q", "--refresh", codes=(0, 1))
        hooks = RepositoryHooks(own, folder / "index")
        refused = None
        try:
            hooks.allow()
            mark = rescue_trailer(self._orders.run, self._orders.iteration)
            committer = self._committer(own)
            self._messages = hooks.edit_messages(
                [*map(committer.message, self._all_groups())], mark
            )
        except HookRefused as error:
            self._notes.append(str(error))
            refused = "hook_refused"
        else:
            self._notes.append(f"{' and '.join(dict.fromkeys(hooks.ran)) or 'no hook'} was run")
        return self._check_after_hooks(own, plan, proven) or refused

    def _check_after_hooks(
        self, own: Project, plan: CommitSelection, proven: ProvenTree
    ) -> str | None:
        """Return why the files can no longer be committed; what a hook deleted is not committed as deleted."""
        root = os.fsencode(self._project.repository.root)
        gone = [path for path in plan.add if not os.path.lexists(os.path.join(root, path))]
        if gone:
            self._notes.append(f"a hook deleted {path_line(gone[0])}; the snapshot has it")
            return "hook_refused"
        own.call("read-tree", proven.head or "--empty")
        if write_selection(own, plan) == proven.tree:
            return None
        if not self._last:
            raise Rewritten(self._taken.snapshot)
        self._notes.append("a hook rewrites files each time")
        return "hook_refused"

    def _put_on_new_branch(self, own: Project, proven: ProvenTree, what: str) -> Rescue:
        committer = self._committer(own)
        self._ticks = None
        commits = self._chain(own, committer, proven)
        other = committer.new_branch(commits[-1])
        reason = what if what == "on_branch" else f"not_plain:{what}"
        why = "as asked" if what == "on_branch" else _words(what)
        return self._result(reason, f"{why}: committed on {other}", commits, other)

    def _put_on_branch(self, own: Project, proven: ProvenTree, branch: str) -> Rescue:
        committer = self._committer(own)
        commits = self._chain(own, committer, proven)
        changed = self._with_ticks(own, committer, proven, commits)
        try:
            with committer.branch_update(branch, commits[-1], proven.head) as words:
                trouble = move_with_index(self._project, proven.head, changed, words)
        except (RepositoryProblem, IndexLocked) as error:
            if self._ticks is not None:
                self._ticks.take_back(self._project)
            if isinstance(error, IndexLocked):
                return self._put_on_new_branch(own, proven, "index_lock")
            self._ticks = None
            raise
        if trouble is not None:
            self._notes.append(f"its index still has the state before: {trouble}")
        files = plural(len(proven.changed), "file")
        return self._result(
            "rescued", f"{files} committed on {escape(_short_name(branch))}", commits
        )

    def _committer(self, own: Project) -> Committer:
        return Committer(own, self._shadow.path, self._orders.run, self._orders.iteration)

    def _chain(self, own: Project, committer: Committer, proven: ProvenTree) -> list[str]:
        """Make commits that add up to the proven tree; no ref names them yet."""
        messages = self._messages[: len(self._groups)]
        commits = committer.chain(self._groups, proven.changed, proven.head, messages)
        if changes.write_tree(own) != proven.tree:
            raise RepositoryProblem("the commits do not add up to what was proven", "try again")
        if committer.unsigned:
            self._notes.append(f"not signed: {committer.unsigned}")
        return commits

    def _with_ticks(
        self, own: Project, committer: Committer, proven: ProvenTree, commits: list[str]
    ) -> Sequence[PathChange]:
        """Add a commit if boxes can be ticked. The work tree is ticked first, so that a killed guard unticks none."""
        ticks = self._ticks
        if ticks is None:
            return proven.changed
        changes.update_index(own, [ticks.change])
        message = (*self._messages[len(self._groups) :], committer.message(ticks.group))[0]
        commit = committer.commit(changes.write_tree(own), commits[-1], message)
        if not ticks.write(self._project):
            self._notes.append("the task file was changed meanwhile: nothing is ticked in it")
            self._ticks = None
            return proven.changed
        commits.append(commit)
        return [
            *(change for change in proven.changed if change.path != ticks.change.path),
            ticks.change,
        ]

    def _report_nothing(
        self,
        own: Project,
        state: RepositoryState,
        head: str | None,
        plan: CommitSelection,
        tree: str | None,
    ) -> Rescue:
        mends = head is not None and tree is not None and obstacle(state) is None
        if mends and not self._orders.dry:
            with suppress(RepositoryProblem):
                self._mend_index(own, f"{head}", plan, f"{tree}")
        if not self._held_back:
            return self._result("nothing", "nothing was left to commit")
        return self._result("held_back", "nothing else to commit")

    def _mend_index(self, own: Project, head: str, plan: CommitSelection, tree: str) -> None:
        """Repair the index that a rescue left behind when it was killed after its commit: it shows the work as deleted."""
        differing = self._project.call("diff-index", "--cached", "-z", "--name-only", head)
        behind = set(plan.add) & set(differing.split(b"\0"))
        if behind:
            listed = changes.list_changes(own, None, tree)
            there = [change for change in listed if change.path in behind]
            with suppress(IndexLocked):
                move_with_index(self._project, head, there, ("rev-parse", "--git-dir"))

    def _report_obstacle(self, error: GitObstacle) -> Rescue:
        return self._result("not_plain:obstacle", f"{error.message}: kept in the snapshot only")

    def _report_only_snapshot(self, what: str) -> Rescue:
        return self._result(f"not_plain:{what}", f"{_words(what)}: kept in the snapshot only")

    def _result(
        self, reason: str, detail: str, commits: Sequence[str] = (), branch: str | None = None
    ) -> Rescue:
        held = self._held_back
        if held:
            self._notes.append(f"{plural(len(held), 'path')} held back: {held[0].why}")
        return Rescue(
            commits=tuple(commits),
            snapshot=self._taken.snapshot,
            held_back=list_held_back(held),
            branch=branch,
            reason=reason,
            detail=fit_line("; ".join([detail, *self._notes])),
            plan=self._plan(),
            ticked=tuple(fit_line(task) for task in self._ticks.tasks) if self._ticks else (),
        )

    def _plan(self) -> tuple[PlannedCommit, ...]:
        return tuple(
            PlannedCommit(
                subject=fit_line(group.subject),
                files=len(group.changes),
                paths=tuple(path_line(change.path) for change in group.changes[:MOST_NAMED]),
            )
            for group in self._all_groups()
        )

    def _all_groups(self) -> list[Group]:
        return [*self._groups, *([self._ticks.group] if self._ticks else [])]


def _short_name(branch: str | None) -> str:
    return (branch or "").removeprefix("refs/heads/")


def _words(what: str) -> str:
    return f"no commit on the branch ({what.replace('_', ' ')})"
