"""Work out a revert and check that the repository is ready for it, before anything is touched."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from guard.core.base.paths import path_line
from guard.core.base.text import plural
from guard.core.rescue.state import RepositoryState, full_ref, obstacle
from guard.core.rollback.journal import PIN_REFS
from guard.core.snapshots.paths import GITLINK, folders_above
from guard.core.snapshots.snapshot import MOST_NAMED
from guard.errors import Refused
from guard.git.obstacles import GitObstacle
from guard.git.reader import RepositoryReader
from guard.git.status import list_special, parse_status, read_status, without_filters
from guard.rescue.changes import PathChange, list_changes
from guard.rescue.select import join_paths
from guard.rollback.merge import tree_of
from guard.rollback.place import RollbackPlace
from guard.rollback.revert import RevertRules, revert_commits
from guard.snapshots.project import Project
from guard.snapshots.safe_writer import PathRefused, SafeFolder
from guard.snapshots.shadow import scratch_folder

Why = Literal[
    "changed_meanwhile",
    "conflict",
    "dirty",
    "merged_elsewhere",
    "no_commits",
    "not_in_history",
    "not_ready",
    "shared",
]


class RollbackStopped(Refused):
    """A rollback that was not made, with nothing changed: a word for scripts, a sentence for people, and the paths."""

    def __init__(
        self, why: Why, message: str, hint: str | None = None, paths: Sequence[str] = ()
    ) -> None:
        super().__init__(message, hint)
        self.why, self.paths = why, tuple(paths)


_HINTS = {
    "detached": "check out the branch that the task was done on",
    "branch_changed": "check out the branch that the task was done on",
    "checked_out_elsewhere": "roll it back in the other work tree, or leave the branch there",
    "index_damaged": "repair the index; `git fsck` and `git reset` help",
    "index_lock": "wait for the git process that is at work, or find out which process made the lock",
}
_GO_ON = "finish or abort it; `git status` says how"


class BranchPosition(NamedTuple):
    """What a rollback moves (a branch by its full name, or HEAD), and where that stands."""

    ref: str
    head: str


def find_position(project: Project, branch: str | None) -> BranchPosition:
    """Where HEAD is, for a task that was done on this branch (None: on none); refused unless the state is plain."""
    state = project.state(branch)
    what = obstacle(state)
    if what == "detached" and full_ref(branch) is None:
        what = state.lock
    if what is not None:
        message = f"the repository is not ready: {_words(what, state, branch)}"
        raise RollbackStopped("not_ready", message, _HINTS.get(what, _GO_ON))
    ref = project.line_if_any("symbolic-ref", "--quiet", "HEAD") or "HEAD"
    head = project.commit_of("HEAD")
    if head is None:
        raise RollbackStopped("not_ready", "there is no commit yet, so nothing can be rolled back")
    try:
        project.refuse_obstacles(ref, f"{PIN_REFS}/{head}")
    except GitObstacle as error:
        raise RollbackStopped("not_ready", error.message, error.hint) from None
    return BranchPosition(ref, head)


def _words(what: str, state: RepositoryState, branch: str | None) -> str:
    if what in ("branch_changed", "detached"):
        here = state.branch or "no branch"
        return f"{here} is checked out, and the task was done on {full_ref(branch) or 'no branch'}"
    return what.replace("_", " ") + (" in progress" if what == state.operation else "")


def find_obstacles(
    project: Project, own: Project, changed: Sequence[PathChange]
) -> Mapping[bytes, str]:
    """Say which of the files that are to change may not: those that are not as the last commit has them, or that git hides.

    `own` has an index with the revert in it.
    """
    paths = frozenset(change.path for change in changed)
    found = dict(_find_unsupported(project, own, changed))
    found |= {path: why for path, why in _find_dirty(project) if path in paths}
    gone = frozenset(change.path for change in changed if change.letter == "D")
    new = [change.path for change in changed if change.letter == "A"]
    with closing(SafeFolder(project.repository.root)) as target:
        for path in new:
            if path not in found and (why := _find_in_the_way(target, path, gone)):
                found[path] = why
    return found


def _find_unsupported(
    project: Project, own: Project, changed: Sequence[PathChange]
) -> Iterator[tuple[bytes, str]]:
    modes = {change.path: (change.mode, change.old_mode) for change in changed}
    for path, both in modes.items():
        if GITLINK in both:
            yield path, "a submodule, which guard does not move"
    for path in (*_find_filtered(project, modes), *_find_filtered(own, modes, "--cached")):
        yield path, "under a filter such as LFS, which guard does not run"
    if project.line_if_any("config", "--type=bool", "core.sparseCheckout") == "true":
        for change in changed:
            if change.letter == "A":
                yield change.path, "new in a sparse checkout, which guard does not extend"


def _find_filtered(project: Project, paths: Collection[bytes], *where: str) -> Iterator[bytes]:
    """Those for which the attributes name a filter."""
    words = ("check-attr", *where, "-z", "--stdin", "filter")
    fields = project.call(*words, stdin=join_paths(paths)).split(b"\0")[:-1]
    for path, value in zip(fields[::3], fields[2::3], strict=True):
        if value not in (b"unspecified", b"unset"):
            yield path


def _find_dirty(project: Project) -> Iterator[tuple[bytes, str]]:
    left = project.deadline.left()
    git = without_filters(RepositoryReader(project.repository, project.environ, left))
    for entry in parse_status(read_status(git)):
        words = {"staged": entry.staged, "changed": entry.unstaged, "untracked": entry.untracked}
        yield entry.path, " and ".join(word for word, holds in words.items() if holds)
    for tracked in list_special(git):
        if tracked.hidden:
            yield tracked.path, "hidden from git (skip-worktree or assume-unchanged)"


def _find_in_the_way(target: SafeFolder, path: bytes, gone: Collection[bytes]) -> str | None:
    """What stands where a file is to be, unless the revert itself takes it away."""
    if any(folder in gone for folder in folders_above(path)):
        return None
    try:
        there = target.look(path, "0" * 40)
    except PathRefused as error:
        folder = target.root / os.fsdecode(path)
        kept = [
            inner_path for inner_path in _list_inside(target.root, folder) if inner_path not in gone
        ]
        if os.path.islink(folder) or not folder.is_dir() or kept:
            return f"{error}"
        return None
    return "something untracked or ignored stands in its place" if there else None


def _list_inside(root: Path, folder: Path) -> Iterator[bytes]:
    """Every file below a folder, and every link, by the path from the root."""
    top = os.fsencode(root)
    for here, folders, files in os.walk(os.fsencode(folder)):
        links = [name for name in folders if os.path.islink(os.path.join(here, name))]
        for name in (*files, *links):
            yield os.path.relpath(os.path.join(here, name), top)


_MOST_SAID = 5


@dataclass(frozen=True)
class RevertOrder:
    """The task to be rolled back."""

    task_id: str
    name: str
    """As the plan spells the id."""
    title: str
    branch: str | None
    """The one that it was done on."""
    commits: tuple[str, ...]
    """Its own, the newest first."""
    is_guards: bool = False
    """Whether the branch is guard's to move, wherever it is checked out."""
    is_ref_only: bool = False
    """Whether the branch moves alone, because it is checked out nowhere."""
    also_on: tuple[str, ...] = ()
    """Other branches that have the work too, and keep it."""
    rules: RevertRules = field(default_factory=RevertRules)


@dataclass(frozen=True)
class PreparedRevert:
    """A revert that nothing forbids; without changes there is nothing to be done."""

    position: BranchPosition
    tree: str
    changed: Sequence[PathChange]


@contextmanager
def prepare_revert(
    place: RollbackPlace, orders: Sequence[RevertOrder], *, dry: bool
) -> Iterator[PreparedRevert]:
    """Work out the tree without these tasks, taken back one after the other; `Stopped` if anything forbids it.

    In a dry run not even an object is written to the repository.
    """
    with scratch_folder(place.workspace) as folder:
        project = place.project()
        own = project.with_index(folder / "index")
        own = own.with_object_folder(folder / "objects") if dry else own
        yield _prepare(project, own, orders)


def _prepare(project: Project, own: Project, orders: Sequence[RevertOrder]) -> PreparedRevert:
    found = _find_branch(project, orders)
    tree = before = tree_of(own, found.head)
    for order in orders:
        _refuse_rewritten(own, order, found.head)
        answer = revert_commits(own, tree, order.commits, order.rules)
        if answer.conflicts:
            raise _conflict_error(order, answer.conflicts)
        tree = answer.tree
    changed = list_changes(own, before, tree) if tree != before else []
    own.call("read-tree", tree)
    if not orders[0].is_ref_only:
        refuse_dirty(project, own, changed)
    return PreparedRevert(found, tree, changed)


def _find_branch(project: Project, orders: Sequence[RevertOrder]) -> BranchPosition:
    first = orders[0]
    if len({order.branch for order in orders}) > 1:
        raise RollbackStopped(
            "not_ready",
            "the tasks are on different branches",
            "roll them back one after the other, the latest first",
        )
    if not first.is_ref_only or first.branch is None:
        return find_position(project, first.branch)
    head = project.commit_of(first.branch)
    if head is None:
        raise RollbackStopped("not_ready", f"there is no branch {first.branch}")
    try:
        project.refuse_obstacles(first.branch, f"{PIN_REFS}/{head}")
    except GitObstacle as error:
        raise RollbackStopped("not_ready", error.message, error.hint) from None
    return BranchPosition(first.branch, head)


def refuse_dirty(project: Project, own: Project, changed: Sequence[PathChange]) -> None:
    """Raise if a file that is to change is not as HEAD has it, or anything is in its way; `own` has the new index."""
    against = find_obstacles(project, own, changed)
    if against:
        raise RollbackStopped(
            "dirty",
            f"cannot change {plural(len(against), 'file')}: {_name_paths(against)}",
            "commit, move or restore them first",
            [path_line(path) for path in sorted(against)[:MOST_NAMED]],
        )


def _refuse_rewritten(own: Project, order: RevertOrder, head: str) -> None:
    """Refuse a commit that the branch does not have any more: nothing of it can be taken back."""
    if not order.commits:
        return
    stdin = "".join(f"{oid}\n" for oid in order.commits).encode() + f"^{head}\n".encode()
    gone = own.line("rev-list", "--max-count=1", "--stdin", stdin=stdin)
    if gone:
        raise RollbackStopped(
            "not_in_history",
            f"commit {gone[:12]} of task {order.name} is not in the history of {order.branch or 'HEAD'} any more",
            "find what became of it with `git log`, and revert that with `git revert`",
        )


def _conflict_error(order: RevertOrder, conflicts: Sequence[bytes]) -> RollbackStopped:
    return RollbackStopped(
        "conflict",
        f"cannot revert task {order.name}: later changes conflict in "
        + _name_paths(dict.fromkeys(conflicts, "")),
        "revert it yourself with `git revert`, or first roll back what was built on it",
        [path_line(path) for path in conflicts[:MOST_NAMED]],
    )


def _name_paths(paths: Mapping[bytes, str]) -> str:
    named = [
        f"{path_line(path)} ({why})" if why else path_line(path)
        for path, why in sorted(paths.items())
    ]
    more = len(named) - _MOST_SAID
    return ", ".join(named[:_MOST_SAID]) + (f" and {more} more" if more > 0 else "")
