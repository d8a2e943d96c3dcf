"""Work out the tree without a task's commits, in git's objects alone: no file, no index and no ref is touched.

A revert is a merge: what the commits made of their parent is taken back from what is there now.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from guard.core.base.text import escape, plural
from guard.core.plan.boxes import clear_task
from guard.core.prove.file_roles import matches_glob
from guard.core.rollback.lines import without_added_lines
from guard.rescue.changes import empty_tree
from guard.rollback.merge import (
    FILES,
    Entry,
    Stages,
    merge_trees,
    tree_of,
    with_entries,
    without_drivers,
)
from guard.snapshots.project import Project

TRAILER = "Guard-Rollback"
_LONGEST_SUBJECT = 200
_MOST_LISTED = 100


@dataclass(frozen=True)
class RevertResult:
    """The tree without the commits, or the paths that conflict."""

    tree: str
    conflicts: tuple[bytes, ...] = ()


@dataclass(frozen=True)
class RevertRules:
    """What guard does about certain files instead of a conflict."""

    union: tuple[str, ...] = ()
    """Files whose lines belong to many tasks, as globs: the lines of this one go."""
    plan_file: bytes | None = None
    """The plan's path in the tree: guard clears the task's box."""
    name: str = ""
    """The task's name in the plan."""


def revert_commits(
    project: Project, tree: str, commits: Sequence[str], rules: RevertRules | None = None
) -> RevertResult:
    """Take these commits, the newest first, out of the tree; of a merge, what it brought to its first parent.

    The project of a call with rules has an index of guard's own.
    """
    merging = without_drivers(project)
    for newest, before in _runs(project, commits):
        merged = merge_trees(merging, base=newest, ours=tree, theirs=before)
        left, chosen = set(merged.conflicts), dict[bytes, Entry | None]()
        for path, stages in merged.conflicts.items():
            data = _resolve(project, rules, path, stages) if rules is not None else None
            if data is not None:
                oid = project.line("hash-object", "-w", "--stdin", stdin=data)
                chosen[path] = (stages[2][0], oid)
                left.discard(path)
        if left:
            return RevertResult(merged.tree, tuple(sorted(left)))
        tree = with_entries(project, merged.tree, chosen)
    return RevertResult(tree)


def _resolve(project: Project, rules: RevertRules, path: bytes, stages: Stages) -> bytes | None:
    """Return the file without what the task put in; None if that is a conflict."""
    if not {1, 2, 3} <= stages.keys() or any(mode not in FILES for mode, _ in stages.values()):
        return None
    after, now, before = (project.call("cat-file", "blob", stages[stage][1]) for stage in (1, 2, 3))
    if path == rules.plan_file:
        return clear_task(now, rules.name)
    if any(matches_glob(os.fsdecode(path), glob) for glob in rules.union):
        return without_added_lines(before, after, now)
    return None


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
