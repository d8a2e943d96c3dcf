"""A commit made by plumbing, in an index of our own: invisible until one `update-ref`, and proven before it.

Nothing that the project can configure has a part in it: no hook, no filter, no signature. Its own index is told afterwards,
and only of the paths that were committed.
"""

import os
from collections.abc import Sequence
from typing import NamedTuple

from guard.core.rescuing import commit_message, shown
from guard.errors import RepositoryProblem
from guard.rescue.plan import Plan, listed
from guard.rescue.project import Project
from guard.rescue.shadow import Shadow
from guard.rescue.snapshots import Taken

_LINK = b"120000"
_MOST_BRANCHES = 50


class Change(NamedTuple):
    """One path that the commit changes."""

    letter: str
    mode: bytes
    oid: str
    path: bytes


def tree_of(project: Project, plan: Plan) -> str:
    """The tree in the index with the planned changes, written as objects that nothing refers to yet."""
    if plan.delete:
        project.call("update-index", "--force-remove", "-z", "--stdin", stdin=listed(plan.delete))
    if plan.add:
        words = ("update-index", "--add", "--replace", "-z", "--stdin")
        project.call(*words, stdin=listed(plan.add))
    # Blobs that the last commit names and the repository has not, as in a partial clone, are none of ours.
    return project.line("write-tree", "--missing-ok")


def changes(project: Project, head: str | None, tree: str) -> list[Change]:
    """What a tree changes against the last commit."""
    before = head or project.line("hash-object", "-t", "tree", "--stdin")
    fields = project.call("diff-tree", "-r", "-z", "--no-renames", before, tree).split(b"\0")[:-1]
    found = []
    for about, path in zip(fields[::2], fields[1::2], strict=True):
        _old_mode, mode, _old, oid, letter = about.split()
        found.append(Change(letter.decode(), mode, oid.decode(), path))
    return found


def prove(
    project: Project, shadow: Shadow, taken: Taken, plan: Plan, changed: Sequence[Change]
) -> None:
    """Refuse a commit that has anything but the planned paths, each with git's own conversion of the snapshot's bytes."""
    add, delete = frozenset(plan.add), frozenset(plan.delete)
    for change in changed:
        deleted = change.letter == "D"
        if change.path not in (delete if deleted else add):
            raise _unproven(change, "it was not to be committed")
        if not deleted and not _is_as_kept(project, shadow, taken, change):
            raise _unproven(change, "it changed since the snapshot")


def _is_as_kept(project: Project, shadow: Shadow, taken: Taken, change: Change) -> bool:
    kept = taken.kept[change.path]
    if (kept.mode == _LINK) != (change.mode == _LINK):
        return False
    if kept.oid == change.oid:
        return True
    data = shadow.call("cat-file", "blob", kept.oid)
    path = os.fsdecode(change.path)
    words = (
        ("hash-object", "--no-filters") if kept.mode == _LINK else ("hash-object", f"--path={path}")
    )
    return project.line(*words, "--stdin", stdin=data) == change.oid


def _unproven(change: Change, why: str) -> RepositoryProblem:
    return RepositoryProblem(f"{shown(change.path)}: {why}", "try again when nothing writes there")


class Committer:
    """Puts a proven tree on a branch."""

    def __init__(self, project: Project, run: str, iteration: int) -> None:
        self._project, self._run, self._iteration = project, run, iteration

    def commit(
        self, tree: str, head: str | None, changed: Sequence[Change], message: str | None
    ) -> str:
        """The commit, which no ref names yet."""
        named = [(change.letter, change.path) for change in changed]
        text = commit_message(message, named, self._run, self._iteration)
        parents = ("-p", head) if head else ()
        words = ("commit-tree", "--no-gpg-sign", *parents, "-F", "-", tree)
        return self._project.line(*words, stdin=text)

    def advance(self, branch: str, commit: str, head: str | None) -> None:
        """Move the branch, if it still is where it was."""
        old = head or "0" * len(commit)
        reason = f"guard: rescue {self._run}/{self._iteration}"
        self._project.call("update-ref", "-m", reason, branch, commit, old)

    def new_branch(self, commit: str) -> str:
        """A rescue branch at the commit; a name that is taken is never moved."""
        name = f"guard/rescue/{self._run}-{self._iteration}"
        for number in range(2, _MOST_BRANCHES):
            try:
                self.advance(f"refs/heads/{name}", commit, None)
            except RepositoryProblem:
                taken = ("rev-parse", "--verify", "--quiet", f"refs/heads/{name}")
                if self._project.line_if_any(*taken) is None:
                    raise
                name = f"guard/rescue/{self._run}-{self._iteration}-{number}"
            else:
                return name
        raise RepositoryProblem(f"there is no free name like {name}", "delete old rescue branches")


def tell_index(project: Project, head: str | None, changed: Sequence[Change]) -> str | None:
    """Bring the committed paths in the project's own index to the commit, and no others; why not, if it cannot be done.

    An index that is missing is left so: one with these paths alone would show all others as deleted.
    """
    if head is not None and not os.path.lexists(project.repository.git_dir / "index"):
        return "there is no index"
    ordered = sorted(changed, key=lambda change: change.letter != "D")
    lines = (b"%s %s\t%s\0" % _info(change) for change in ordered)
    try:
        project.call("update-index", "-z", "--index-info", stdin=b"".join(lines))
    except RepositoryProblem as error:
        return error.message
    return None


def _info(change: Change) -> tuple[bytes, bytes, bytes]:
    mode = b"0" if change.letter == "D" else change.mode
    return mode, change.oid.encode(), change.path
