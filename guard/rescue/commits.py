"""Commits made by plumbing, in an index of our own: invisible until one `update-ref`, and proven before it.

Nothing that the project can configure has a part in it: no hook unless the user wants it, no filter, no signature but the
user's own. The project's index is told afterwards, and only of the paths that were committed.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from guard.core.base.paths import path_line
from guard.core.rescue.commit_message import commit_message
from guard.core.rescue.groups import Group
from guard.errors import RepositoryProblem
from guard.rescue.select import CommitSelection, listed
from guard.rescue.signing import Signing, signing
from guard.rescue.stale_locks import noted
from guard.snapshots.project import Project
from guard.snapshots.shadow import Shadow
from guard.snapshots.take import Taken

_LINK = b"120000"
_MOST_BRANCHES = 50
_SIGNING_SHARE = 0.4


class PathChange(NamedTuple):
    """One path that is changed."""

    letter: str
    mode: bytes
    oid: str
    path: bytes
    old_mode: bytes = b""
    old_oid: str = ""


class Proven(NamedTuple):
    """A tree that has the planned changes and no others."""

    head: str | None
    tree: str
    changed: Sequence[PathChange]


def tree_of(project: Project, plan: CommitSelection) -> str:
    """The tree in the index with the planned changes, written as objects that nothing refers to yet."""
    if plan.delete:
        project.call("update-index", "--force-remove", "-z", "--stdin", stdin=listed(plan.delete))
    if plan.add:
        words = ("update-index", "--add", "--replace", "-z", "--stdin")
        project.call(*words, stdin=listed(plan.add))
    return written_tree(project)


def written_tree(project: Project) -> str:
    """The tree in the index; blobs that the last commit names and a partial clone has not are none of ours."""
    return project.line("write-tree", "--missing-ok")


def changes(project: Project, head: str | None, tree: str) -> list[PathChange]:
    """What a tree changes against the last commit."""
    before = head or empty_tree(project)
    fields = project.call("diff-tree", "-r", "-z", "--no-renames", before, tree).split(b"\0")[:-1]
    found = []
    for about, path in zip(fields[::2], fields[1::2], strict=True):
        old_mode, mode, old, oid, letter = about.split()
        old_mode = old_mode.removeprefix(b":")
        found.append(PathChange(letter.decode(), mode, oid.decode(), path, old_mode, old.decode()))
    return found


def empty_tree(project: Project) -> str:
    """What to compare the first commit with."""
    return project.line("hash-object", "-t", "tree", "--stdin")


def prove(
    project: Project,
    shadow: Shadow,
    taken: Taken,
    plan: CommitSelection,
    changed: Sequence[PathChange],
) -> None:
    """Refuse a commit that has anything but the planned paths, each with git's own conversion of the snapshot's bytes."""
    add, delete = frozenset(plan.add), frozenset(plan.delete)
    for change in changed:
        deleted = change.letter == "D"
        if change.path not in (delete if deleted else add):
            raise _unproven(change, "it was not to be committed")
        if not deleted and not is_as_kept(project, shadow, taken, change):
            raise _unproven(change, "it changed since the snapshot")


def is_as_kept(project: Project, shadow: Shadow, taken: Taken, change: PathChange) -> bool:
    """Whether a blob is git's own conversion of what the snapshot has under its path."""
    if change.path not in taken.kept:
        return False
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


def _unproven(change: PathChange, why: str) -> RepositoryProblem:
    return RepositoryProblem(
        f"{path_line(change.path)}: {why}", "try again when nothing writes there"
    )


class Committer:
    """Puts proven trees on a branch."""

    def __init__(self, project: Project, notes: Path, run: str, iteration: int) -> None:
        self._project, self._run, self._iteration = project, run, iteration
        self._notes = notes
        self._signing = signing(project.environ, project.committer)
        self.unsigned = "no key is set" if self._signing and not self._signing.key else ""
        """Why commits are not signed, though the user signs."""

    def chain(
        self,
        groups: Sequence[Group],
        changed: Sequence[PathChange],
        head: str | None,
        messages: Sequence[bytes] = (),
    ) -> list[str]:
        """One commit for each group, the first upon the last commit; no ref names them yet."""
        by_path = {change.path: change for change in changed}
        messages = messages or [self.message(group) for group in groups]
        self._project.call("read-tree", head or "--empty")
        made: list[str] = []
        for group, message in zip(groups, messages, strict=True):
            named = [path for one in group.changes for path in (one.old_path, one.path) if path]
            put_into_index(self._project, [by_path[path] for path in named])
            parent = made[-1] if made else head
            made.append(self.commit(written_tree(self._project), parent, message))
        return made

    def message(self, group: Group) -> bytes:
        """What a commit says."""
        return commit_message(group.subject, group.body, self._run, self._iteration)

    def commit(self, tree: str, parent: str | None, message: bytes) -> str:
        """A commit, signed if the user signs and it can be done without asking."""
        words = ("commit-tree", *(("-p", parent) if parent else ()), "-F", "-")
        if self._signing is not None and not self.unsigned:
            try:
                return self._signed(self._signing, words, tree, message)
            except RepositoryProblem as error:
                self.unsigned = error.message
        return self._project.line(*words, "--no-gpg-sign", tree, stdin=message)

    def _signed(self, how: Signing, words: Sequence[str], tree: str, message: bytes) -> str:
        """A program that waits for a person, who is not there, must leave time for a commit without it."""
        project = replace(self._project, deadline=self._project.deadline.part(_SIGNING_SHARE))
        sign = f"--gpg-sign={how.key}"
        return project.line(*how.settings, *words, sign, tree, stdin=message)

    def advance(self, branch: str, commit: str, head: str | None) -> None:
        """Move the branch, if it still is where it was."""
        with self.moving(branch, commit, head) as words:
            self._project.call(*words)

    @contextmanager
    def moving(self, branch: str, commit: str, head: str | None) -> Iterator[Sequence[str]]:
        """The command that moves the branch; the locks that it makes are noted meanwhile."""
        old = head or "0" * len(commit)
        reason = f"guard: rescue {self._run}/{self._iteration}"
        repository = self._project.repository
        locks = (repository.common_dir / f"{branch}.lock", repository.git_dir / "HEAD.lock")
        with noted(self._notes, locks, commit):
            yield "update-ref", "-m", reason, branch, commit, old

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


def put_into_index(project: Project, changed: Sequence[PathChange]) -> None:
    """These changes in an index, deletions first: a file may have become a folder."""
    ordered = sorted(changed, key=lambda change: change.letter != "D")
    lines = (b"%s %s\t%s\0" % _info(change) for change in ordered)
    project.call("update-index", "-z", "--index-info", stdin=b"".join(lines))


def _info(change: PathChange) -> tuple[bytes, bytes, bytes]:
    mode = b"0" if change.letter == "D" else change.mode
    return mode, change.oid.encode(), change.path
