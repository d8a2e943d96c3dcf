"""Check out the submodules of a slot, as linked work trees of the project's own: nothing is fetched.

So a commit that an agent makes in a submodule is in the project's submodule, too, and can be landed. Submodules that the
project's work tree does not have are left out here as well.
"""

import os
import shutil
from contextlib import suppress
from pathlib import Path

from guard.context.invocation import Invocation
from guard.errors import RepositoryProblem
from guard.git.locate import repository_at
from guard.git.reader import RepositoryReader
from guard.plan.work_tree import SlotTree, slot_invocation

_DEEPEST = 20


def has_changes(guard: Invocation, root: Path, depth: int = 0) -> bool:
    """Tell whether a submodule here has files that are not committed, or whether something else is in its place."""
    for path, _ in SlotTree(guard, root).submodules():
        place = root / path
        if os.path.lexists(place / ".git") and not place.is_symlink():
            try:
                if not SlotTree(guard, place).is_clean():
                    return True
                if depth < _DEEPEST and has_changes(guard, place, depth + 1):
                    return True
            except RepositoryProblem:
                return True
        elif place.is_symlink() or (place.is_dir() and any(place.iterdir())):
            return True
    return False


def fill_submodules(guard: Invocation, root: Path, depth: int = 0) -> None:
    """Check out in `root`, a work tree of this project, each submodule at the commit that is recorded there.

    What was there and is not committed is deleted: the caller saves it before.
    """
    for path, commit in SlotTree(guard, root).submodules():
        source, place = guard.repository.root / path, root / path
        try:
            if not repository_at(source).git_dir.is_dir():
                continue
        except RepositoryProblem:
            continue
        own = slot_invocation(guard, source)
        if not _has_commit(own, commit):
            guard.output.warn(
                f"the submodule {path} is left out: {source} does not have its commit {commit[:12]}"
            )
        elif os.path.realpath(place.parent) != os.fspath(place.parent):
            guard.output.warn(f"the submodule {path} is left out: a link leads away from it")
        else:
            _fill(own, place, commit)
            if depth < _DEEPEST:
                fill_submodules(own, place, depth + 1)


def _has_commit(guard: Invocation, commit: str) -> bool:
    git = RepositoryReader(guard.repository, guard.environ)
    return git.line("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}") is not None


def _fill(guard: Invocation, place: Path, commit: str) -> None:
    tree = SlotTree(guard, place)
    if place.is_symlink() or not tree.is_there:
        with suppress(FileNotFoundError):
            place.unlink() if place.is_symlink() else shutil.rmtree(place)
        tree.make(commit)
    elif tree.is_clean() and tree.head() == (commit, None):
        return
    tree.reset(None, commit)
    tree.delete(tree.strays(None))
