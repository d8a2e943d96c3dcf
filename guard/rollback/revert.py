"""Work out the tree without a task's commits, in git's objects alone: no file, no index and no ref is touched.

A revert is a merge: what the commits made of their parent is taken back from what is there now. Git merges two commits over
their common ancestor, so three commits that no ref names stand for the three trees. The merge drivers that the repository's
settings name are programs of the agent's: where one is asked for, there is a conflict instead.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from guard.core.base.text import escape, plural
from guard.errors import RepositoryProblem
from guard.rescue.changes import empty_tree
from guard.snapshots.project import Project

TRAILER = "Guard-Rollback"
_SETTINGS = {
    "merge.conflictStyle": "merge",
    "merge.default": "text",
    "merge.directoryRenames": "false",
    "merge.renames": "true",
    "merge.renormalize": "false",
}
_STAND_IN = """\
tree {tree}
{parent}author guard <guard@localhost> 0 +0000
committer guard <guard@localhost> 0 +0000

Stands for a tree.
"""
_MERGE = ("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages")
_UNKNOWN_OPTION = 129
_MOST_DRIVERS = 200
_LONGEST_SUBJECT = 200
_MOST_LISTED = 100


@dataclass(frozen=True)
class RevertResult:
    """The tree without the commits, or the paths that conflict."""

    tree: str
    conflicts: tuple[bytes, ...] = ()


def revert_commits(project: Project, tree: str, commits: Sequence[str]) -> RevertResult:
    """Take these commits, the newest first, out of the tree; of a merge, what it brought to its first parent."""
    merging = replace(project, settings={**project.settings, **_SETTINGS, **_no_drivers(project)})
    for newest, before in _runs(project, commits):
        answer = _merge(merging, base=newest, ours=tree, theirs=before)
        if answer.conflicts:
            return answer
        tree = answer.tree
    return RevertResult(tree)


def tree_of(project: Project, commit: str) -> str:
    return project.line("rev-parse", "--verify", "--end-of-options", f"{commit}^{{tree}}")


def _runs(project: Project, commits: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the trees after and before each row of commits in which one is the parent of the next; a row goes at once."""
    parents = _first_parents(project, commits)
    at = 0
    while at < len(commits):
        newest = commits[at]
        while at + 1 < len(commits) and parents[commits[at]] == commits[at + 1]:
            at += 1
        parent = parents[commits[at]]
        before = tree_of(project, parent) if parent else empty_tree(project)
        yield tree_of(project, newest), before
        at += 1


def _first_parents(project: Project, commits: Sequence[str]) -> Mapping[str, str | None]:
    if not commits:
        return {}
    words = ("rev-list", "--no-walk=unsorted", "--parents", "--stdin")
    lines = project.line(*words, stdin="".join(f"{oid}\n" for oid in commits).encode())
    rows = [line.split() for line in lines.splitlines()]
    return {row[0]: row[1] if len(row) > 1 else None for row in rows}


def _merge(project: Project, base: str, ours: str, theirs: str) -> RevertResult:
    """Apply their changes since the base to ours."""
    root = _stand_in(project, base, None)
    sides = [_stand_in(project, tree, root) for tree in (ours, theirs)]
    codes = (0, 1, _UNKNOWN_OPTION)
    answer = project.call(*_MERGE, *sides, codes=codes)
    tree, *conflicts = answer.split(b"\0")[:-1] or [b""]
    if not tree:
        raise RepositoryProblem(
            "this git cannot merge without a work tree, so guard cannot roll back",
            "install git 2.38 or newer, or revert the commits yourself with `git revert`",
        )
    return RevertResult(tree.decode(), tuple(sorted(set(conflicts))))


def _stand_in(project: Project, tree: str, parent: str | None) -> str:
    text = _STAND_IN.format(tree=tree, parent=f"parent {parent}\n" if parent else "")
    return project.line("hash-object", "-w", "-t", "commit", "--stdin", stdin=text.encode())


def _no_drivers(project: Project) -> dict[str, str]:
    """Settings by which every configured merge driver fails, which git takes for a conflict."""
    words = ("config", "--null", "--name-only", "--get-regexp", r"^merge\..*\.driver$")
    names = sorted(set(project.call(*words, codes=(0, 1)).split(b"\0")[:-1]))
    if len(names) > _MOST_DRIVERS:
        raise RepositoryProblem(
            f"git's configuration names {len(names)} merge drivers, more than guard handles",
            "remove drivers that you do not need; `git config --get-regexp '^merge'` lists them",
        )
    return {os.fsdecode(name): "false" for name in names}


def revert_message(task_id: str, name: str, title: str, commits: Sequence[str]) -> bytes:
    """The message of a revert: the task, its commits, and a trailer that marks it as guard's."""
    subject = escape(f"Revert task {name}: {title}" if title else f"Revert task {name}")
    subject = " ".join(subject.split())
    if len(subject) > _LONGEST_SUBJECT:
        subject = subject[: _LONGEST_SUBJECT - 1] + "…"
    lines = [f"  {oid}" for oid in commits[:_MOST_LISTED]]
    more = len(commits) - len(lines)
    lines += [f"  and {plural(more, 'more commit')}"] if more > 0 else []
    body = "\n".join(["This takes back:", "", *lines])
    return f"{subject}\n\n{body}\n\n{TRAILER}: {task_id}\n".encode()
