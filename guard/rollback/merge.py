"""Merge trees in git's objects alone: no file, no index and no ref is touched.

Git merges two commits over their common ancestor, so three commits that no ref names stand for the three trees. The merge
drivers that the repository's settings name are programs of the agent's: where one is asked for, there is a conflict instead.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from guard.errors import RepositoryProblem
from guard.rescue.changes import PathChange, update_index, write_tree
from guard.snapshots.project import Project

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
_MERGE = ("merge-tree", "--write-tree", "-z", "--no-messages")
_UNKNOWN_OPTION = 129
_MOST_DRIVERS = 200
FILES = (b"100644", b"100755")
_NOTHING = b"0"
Entry = tuple[bytes, str]
"""The mode and the blob of a file in a tree."""
Stages = Mapping[int, tuple[bytes, str]]
"""The mode and the blob of a path in the base (1), in ours (2) and in theirs (3)."""


@dataclass(frozen=True)
class MergedTree:
    """The merged tree; where paths conflict, it has the marks of the conflict in them."""

    tree: str
    conflicts: Mapping[bytes, Stages] = field(default_factory=dict)


def without_drivers(project: Project) -> Project:
    """Return a copy that merges by git's own rules alone."""
    return replace(project, settings={**project.settings, **_SETTINGS, **_no_drivers(project)})


def merge_trees(project: Project, base: str, ours: str, theirs: str) -> MergedTree:
    """Apply what theirs changed since the base to ours; the project is one `without_drivers`."""
    if theirs in (base, ours):
        return MergedTree(ours)
    root = _stand_in(project, base, None)
    sides = [_stand_in(project, tree, root) for tree in (ours, theirs)]
    codes = (0, 1, _UNKNOWN_OPTION)
    answer = project.call(*_MERGE, *sides, codes=codes)
    tree, *lines = answer.split(b"\0")[:-1] or [b""]
    if not tree:
        raise RepositoryProblem(
            "this git cannot merge without a work tree, which guard needs for this",
            "install git 2.38 or newer, or merge or revert the commits yourself",
        )
    conflicts: dict[bytes, dict[int, tuple[bytes, str]]] = {}
    for line in lines:
        about, _, path = line.partition(b"\t")
        mode, oid, stage = about.split()
        conflicts.setdefault(path, {})[int(stage)] = (mode, oid.decode())
    return MergedTree(tree.decode(), conflicts)


def tree_of(project: Project, commit: str) -> str:
    return project.line("rev-parse", "--verify", "--end-of-options", f"{commit}^{{tree}}")


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


def entry_at(project: Project, tree: str, path: bytes) -> Entry | None:
    """Return the file at a path of a tree; None if there is none."""
    listed = project.call("ls-tree", "-z", "--full-tree", tree, "--", os.fsdecode(path))
    about, _, name = listed.split(b"\0")[0].partition(b"\t")
    if name != path:
        return None
    mode, _kind, oid = about.split()
    return mode, oid.decode()


def with_entries(project: Project, tree: str, entries: Mapping[bytes, Entry | None]) -> str:
    """Return the tree with these files in it; None removes one."""
    if not entries:
        return tree
    project.call("read-tree", tree)
    changes = [
        PathChange("D", _NOTHING, "0" * len(tree), path)
        if entry is None
        else PathChange("M", entry[0], entry[1], path)
        for path, entry in entries.items()
    ]
    update_index(project, changes)
    return write_tree(project)
