"""Whether a revert may touch the work tree: which of its files somebody has changed, and what guard cannot do for the user."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from guard.core.rescue.state import RepositoryState, full_ref, obstacle
from guard.git.reader import RepositoryReader
from guard.git.status import entries, status, tracked_specially, unfiltered
from guard.rescue.commits import PathChange
from guard.rescue.select import listed
from guard.rollback.errors import Stopped
from guard.snapshots.project import Project
from guard.snapshots.safe_writer import PathRefused as InTheWay
from guard.snapshots.safe_writer import SafeFolder

_GITLINK = b"160000"
_HINTS = {
    "detached": "check out the branch that the task was done on",
    "branch_changed": "check out the branch that the task was done on",
    "checked_out_elsewhere": "roll it back in the other work tree, or leave the branch there",
    "index_damaged": "mend the index; `git fsck` and `git reset` help",
    "index_lock": "wait for the git that is at work, or look whose lock that is",
}
_GO_ON = "finish or abort it; `git status` says how"


class BranchPosition(NamedTuple):
    """What a rollback moves: a branch by its full name, or HEAD; and where that stands."""

    ref: str
    head: str


def standing(project: Project, branch: str | None) -> BranchPosition:
    """Where HEAD is, for a task that was done on this branch (None: on none); refused unless the state is plain."""
    state = project.state(branch)
    what = obstacle(state)
    if what == "detached" and full_ref(branch) is None:
        what = _beside_detached(state)
    if what is not None:
        message = f"the repository is not ready: {_words(what, state, branch)}"
        raise Stopped("not_ready", message, _HINTS.get(what, _GO_ON))
    ref = project.line_if_any("symbolic-ref", "--quiet", "HEAD") or "HEAD"
    head = project.commit_of("HEAD")
    if head is None:
        raise Stopped("not_ready", "there is no commit yet, so nothing can be rolled back")
    return BranchPosition(ref, head)


def _beside_detached(state: RepositoryState) -> str | None:
    return state.lock


def _words(what: str, state: RepositoryState, branch: str | None) -> str:
    if what in ("branch_changed", "detached"):
        here = state.branch or "no branch"
        return f"{here} is checked out, and the task was done on {full_ref(branch) or 'no branch'}"
    return what.replace("_", " ") + (" in progress" if what == state.operation else "")


def obstacles(project: Project, own: Project, changed: Sequence[PathChange]) -> Mapping[bytes, str]:
    """Why the files that are to change may not: each is named that is not as the last commit has it, or that git hides.

    `own` has an index with the revert in it.
    """
    paths = frozenset(change.path for change in changed)
    found = dict(_unsupported(project, own, changed))
    found |= {path: why for path, why in _dirty(project) if path in paths}
    gone = frozenset(change.path for change in changed if change.letter == "D")
    new = [change.path for change in changed if change.letter == "A"]
    with closing(SafeFolder(project.repository.root)) as target:
        for path in new:
            if path not in found and (why := _in_the_way(target, path, gone)):
                found[path] = why
    return found


def _unsupported(
    project: Project, own: Project, changed: Sequence[PathChange]
) -> Iterator[tuple[bytes, str]]:
    modes = {change.path: (change.mode, change.old_mode) for change in changed}
    for path, both in modes.items():
        if _GITLINK in both:
            yield path, "a submodule, which guard does not move"
    for path in (*_filtered(project, modes), *_filtered(own, modes, "--cached")):
        yield path, "under a filter such as LFS, which guard does not run"
    if project.line_if_any("config", "--type=bool", "core.sparseCheckout") == "true":
        for change in changed:
            if change.letter == "A":
                yield change.path, "new in a sparse checkout, which guard does not extend"


def _filtered(project: Project, paths: Collection[bytes], *where: str) -> Iterator[bytes]:
    """Those for which the attributes name a filter."""
    words = ("check-attr", *where, "-z", "--stdin", "filter")
    fields = project.call(*words, stdin=listed(paths)).split(b"\0")[:-1]
    for path, value in zip(fields[::3], fields[2::3], strict=True):
        if value not in (b"unspecified", b"unset"):
            yield path


def _dirty(project: Project) -> Iterator[tuple[bytes, str]]:
    git = unfiltered(RepositoryReader(project.repository, project.environ, project.deadline.left()))
    for entry in entries(status(git)):
        words = {"staged": entry.staged, "changed": entry.unstaged, "untracked": entry.untracked}
        yield entry.path, " and ".join(word for word, holds in words.items() if holds)
    for tracked in tracked_specially(git):
        if tracked.hidden:
            yield tracked.path, "hidden from git (skip-worktree or assume-unchanged)"


def _in_the_way(target: SafeFolder, path: bytes, gone: Collection[bytes]) -> str | None:
    """What stands where a file is to be, unless the revert itself takes it away."""
    if any(above in gone for above in _above(path)):
        return None
    try:
        there = target.look(path, "0" * 40)
    except InTheWay as error:
        folder = target.root / os.fsdecode(path)
        kept = [one for one in _inside(target.root, folder) if one not in gone]
        if os.path.islink(folder) or not folder.is_dir() or kept:
            return f"{error}"
        return None
    return "something untracked or ignored stands in its place" if there else None


def _above(path: bytes) -> Iterator[bytes]:
    while b"/" in path:
        path = path.rpartition(b"/")[0]
        yield path


def _inside(root: Path, folder: Path) -> Iterator[bytes]:
    """Every file below a folder, and every folder with nothing in it, by the path from the root."""
    top = os.fsencode(root)
    for here, folders, files in os.walk(os.fsencode(folder)):
        links = [name for name in folders if os.path.islink(os.path.join(here, name))]
        for name in (*files, *links):
            yield os.path.relpath(os.path.join(here, name), top)
