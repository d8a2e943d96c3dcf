"""Merge a task's work onto the target's tip, in git's objects alone."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from guard.context.invocation import Invocation
from guard.core.base.paths import path_line
from guard.core.landing.settings import LandingSettings, RegeneratedFile
from guard.core.plan.boxes import tick_task
from guard.core.prove.file_roles import matches_glob
from guard.landing.work import TaskWork, find_base, steps_of, with_own_commits
from guard.rollback.merge import (
    Entry,
    MergedTree,
    Stages,
    entry_at,
    merge_trees,
    tree_of,
    with_entries,
    without_drivers,
)
from guard.snapshots.project import Project

_FILE = b"100644"
_LINK, _SUBMODULE = b"120000", b"160000"


@dataclass(frozen=True)
class MergeRules:
    """What guard does about certain files instead of a conflict."""

    settings: LandingSettings
    plan_file: bytes | None
    """The plan's path in the tree: guard alone ticks it."""
    runs_commands: bool = True
    """Whether the commands of `landing.regenerate` run; without them the file stays as it is."""


@dataclass(frozen=True)
class MergedTask:
    """The target's tree with the work of a task in it, or the paths that conflict and why."""

    base: str | None
    tree: str | None
    conflicts: tuple[bytes, ...] = ()
    detail: str = ""
    is_part: bool = False
    """Whether the branch has commits of others that are not in the tree."""


def merge_task(
    guard: Invocation,
    project: Project,
    scratch: Path,
    work: TaskWork,
    onto: str,
    target: str,
    rules: MergeRules,
) -> MergedTask:
    """Merge the work onto a commit that follows the target's tip; the project has an index of guard's own."""
    base = find_base(project, target, work.tip)
    if base is None:
        return MergedTask(None, None, (), "its branch shares no history with the target")
    work = with_own_commits(project, work, base)
    merging = without_drivers(project)
    begin = tree = tree_of(project, onto)
    redo: dict[str, RegeneratedFile] = {}
    for before, after in steps_of(project, work, base, target):
        own = _without_plan(project, before, after, rules.plan_file)
        merged = merge_trees(merging, before, tree, own)
        left, chosen = _resolve(project, scratch, merged, rules.settings)
        redo |= _files_to_regenerate(project, (before, tree, own), merged, rules.settings)
        unsolved = sorted(set(left) - {os.fsencode(name) for name in redo})
        if unsolved:
            return MergedTask(base, None, tuple(unsolved), _conflict_text(unsolved))
        for path in left:
            chosen[path] = _ours_or_theirs(merged.conflicts[path])
        tree = with_entries(project, merged.tree, chosen)
    if tree == begin and not redo:
        return MergedTask(base, tree, is_part=bool(work.commits))
    tree = _tick(project, tree, work.name, rules.plan_file)
    for file in redo.values() if rules.runs_commands else ():
        from guard.landing.regenerate import regenerate

        made = regenerate(guard, tree, onto, file, rules.settings.regenerate_seconds)
        if made.problem:
            return MergedTask(base, None, (os.fsencode(file.file),), made.problem)
        tree = _with_contents(project, tree, os.fsencode(file.file), made.data)
    return MergedTask(base, tree, is_part=bool(work.commits))


def _conflict_text(paths: Sequence[bytes]) -> str:
    return "conflicts in " + ", ".join(path_line(path) for path in paths[:20])


def _resolve(
    project: Project, scratch: Path, merged: MergedTree, settings: LandingSettings
) -> tuple[list[bytes], dict[bytes, Entry | None]]:
    """Resolve conflicts in files whose lines are all kept; return the other conflicts, and what the files are now."""
    left: list[bytes] = []
    chosen: dict[bytes, Entry | None] = {}
    for path, stages in merged.conflicts.items():
        is_union = any(matches_glob(os.fsdecode(path), glob) for glob in settings.union)
        if is_union and all(
            stage in stages and stages[stage][0] not in (_LINK, _SUBMODULE) for stage in (2, 3)
        ):
            chosen[path] = (stages[2][0], _union(project, scratch, stages))
        else:
            left.append(path)
    return left, chosen


def _union(project: Project, scratch: Path, stages: Stages) -> str:
    """Merge three blobs by lines, and keep the lines of both sides where they conflict."""
    names = []
    for stage in (2, 1, 3):
        path = scratch / f"stage-{stage}"
        oid = stages[stage][1] if stage in stages else None
        path.write_bytes(project.call("cat-file", "blob", oid) if oid else b"")
        names.append(os.fspath(path))
    made = project.call("merge-file", "-p", "-q", "--union", *names)
    return project.line("hash-object", "-w", "--stdin", stdin=made)


def _ours_or_theirs(stages: Stages) -> Entry | None:
    return stages.get(2) or stages.get(3)


def _files_to_regenerate(
    project: Project, trees: tuple[str, str, str], merged: MergedTree, settings: LandingSettings
) -> dict[str, RegeneratedFile]:
    """Return the files that both sides changed: a merge by lines of what a command made is not what it would make."""
    found = {}
    for file in settings.regenerate:
        path = os.fsencode(file.file)
        base, ours, theirs = (entry_at(project, tree, path) for tree in trees)
        if path in merged.conflicts or (ours != base and theirs != base and theirs is not None):
            found[file.file] = file
    return found


def _without_plan(project: Project, before: str, after: str, plan: bytes | None) -> str:
    """Return the task's tree with the plan file as it was: guard alone changes it."""
    if plan is None:
        return after
    known = entry_at(project, before, plan)
    return (
        after
        if entry_at(project, after, plan) == known
        else with_entries(project, after, {plan: known})
    )


def _tick(project: Project, tree: str, name: str, plan: bytes | None) -> str:
    there = entry_at(project, tree, plan) if plan is not None else None
    if plan is None or there is None or there[0] in (_LINK, _SUBMODULE):
        return tree
    data = project.call("cat-file", "blob", there[1])
    ticked = tick_task(data, name)
    return tree if ticked == data else _with_contents(project, tree, plan, ticked)


def _with_contents(project: Project, tree: str, path: bytes, data: bytes | None) -> str:
    if data is None:
        return with_entries(project, tree, {path: None})
    oid = project.line("hash-object", "-w", "--stdin", stdin=data)
    before = entry_at(project, tree, path)
    return with_entries(project, tree, {path: (before[0] if before else _FILE, oid)})
